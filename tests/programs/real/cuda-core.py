# SPDX-License-Identifier: Apache-2.0
"""cuda.core: a program compiled, launched and compared."""
import ctypes

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

N = 1000
device = Device()
device.set_current()
stream = device.create_stream()
program = Program('extern "C" __global__ void squares(int *x, int n)'
                  "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = i * i; }",
                  code_type="c++", options=ProgramOptions(arch="compute_80"))
kernel = program.compile("ptx").get_kernel("squares")
buffer = device.memory_resource.allocate(4 * N, stream=stream)
launch(stream, LaunchConfig(grid=8, block=128), kernel, buffer, ctypes.c_int(N))
pinned = (ctypes.c_int * N)()
stream.sync()

from cuda.bindings import driver

assert driver.cuMemcpyDtoH(ctypes.addressof(pinned), int(buffer.handle), 4 * N)[0].value == 0
assert list(pinned) == [i * i for i in range(N)]
buffer.close(stream)
print("squares right")
