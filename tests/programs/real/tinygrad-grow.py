# SPDX-License-Identifier: Apache-2.0
"""Keeps tensors of 64 MiB until there is no more memory; says what tinygrad raised, and whether they are whole."""
import numpy as np
from tinygrad import Tensor

N = 16 << 20
kept = []
try:
    while len(kept) < 256:
        kept.append(Tensor(np.full(N, len(kept), dtype=np.float32)).realize())
except MemoryError as error:
    print(f"MemoryError after {len(kept)}: {error}")
whole = all(tensor[at].item() == i for i, tensor in enumerate(kept) for at in (0, N - 1))
print("tensors", "whole" if whole else "damaged")
