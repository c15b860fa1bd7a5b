# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA target: NVVM makes PTX, the driver's linker links it."""
import numpy as np
from numba import cuda

N = 1000


@cuda.jit
def add(a, b, total):
    i = cuda.grid(1)
    if i < a.size:
        total[i] = a[i] + b[i]


@cuda.jit
def block_sums(x, sums):
    shared = cuda.shared.array(128, dtype=np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    shared[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(sums, 0, shared[0])


a, b = np.arange(N, dtype=np.float32), np.full(N, 2, dtype=np.float32)
total, sums = np.zeros_like(a), np.zeros(1, dtype=np.float32)
add[8, 128](a, b, total)
block_sums[8, 128](total, sums)
assert (total == a + b).all()
assert sums[0] == (a + b).sum()
print("sums right")
