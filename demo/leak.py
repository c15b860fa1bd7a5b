# SPDX-License-Identifier: Apache-2.0
"""A program on tinygrad that forgets to let go: 64 MiB of the device's memory more every now and then, up to 3 GiB.

It never ends by itself.
"""
import time

import numpy as np
from tinygrad import Tensor

N = 16 << 20
kept = []
while True:
    if len(kept) < 48:
        kept.append(Tensor(np.full(N, len(kept), dtype=np.float32)).realize())
        print(f"holds {64 * len(kept)} MiB", flush=True)
    time.sleep(0.2)
