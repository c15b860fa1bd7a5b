# SPDX-License-Identifier: Apache-2.0
"""cuda.bindings: NVRTC compiles, the driver loads and launches."""
import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void saxpy(float a, float *x, float *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}"""


def check(result):
    assert result[0].value == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
context = check(driver.cuCtxCreate(None, 0, device))
program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
check(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
check(nvrtc.nvrtcGetPTX(program, ptx))
module = check(driver.cuModuleLoadData(np.char.array(ptx).ctypes.data))
kernel = check(driver.cuModuleGetFunction(module, b"saxpy"))

n = 1000
a = np.array([2.0], dtype=np.float32)
x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
expected = a * x + y
dx, dy = check(driver.cuMemAlloc(x.nbytes)), check(driver.cuMemAlloc(y.nbytes))
stream = check(driver.cuStreamCreate(0))
check(driver.cuMemcpyHtoDAsync(dx, x.ctypes.data, x.nbytes, stream))
check(driver.cuMemcpyHtoDAsync(dy, y.ctypes.data, y.nbytes, stream))
values = [a, np.array([int(dx)], dtype=np.uint64), np.array([int(dy)], dtype=np.uint64), np.array([n], dtype=np.uint64)]
args = np.array([v.ctypes.data for v in values], dtype=np.uint64)
check(driver.cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, stream, args.ctypes.data, 0))
check(driver.cuMemcpyDtoHAsync(y.ctypes.data, dy, y.nbytes, stream))
check(driver.cuStreamSynchronize(stream))
assert (y == expected).all()
print("saxpy right")
