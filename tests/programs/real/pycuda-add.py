# SPDX-License-Identifier: Apache-2.0
"""PyCUDA loads PTX from a file and launches it: pycuda-add.py PTX-FILE."""
import sys

import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda

N = 5000
a, b = np.arange(N, dtype=np.float32), np.full(N, 3, dtype=np.float32)
total = np.empty_like(a)
add = cuda.module_from_file(sys.argv[1]).get_function("vector_add")
add(cuda.In(a), cuda.In(b), cuda.Out(total), np.int32(N), block=(128, 1, 1), grid=(40, 1))
assert (total == a + b).all()
print("sum right")
