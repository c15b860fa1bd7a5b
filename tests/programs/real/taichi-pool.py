# SPDX-License-Identifier: Apache-2.0
"""Takes arrays out of Taichi's stream-ordered pool and gives some back: one line of input, one step.

Prints after each step what the driver says that its pool has reserved of the device.
"""
import ctypes
import gc
import sys

import taichi as ti

RESERVED_MEM_CURRENT = 5
MIB = 1 << 20

ti.init(arch=ti.cuda, device_memory_GB=0.5)
x = ti.field(ti.i32, shape=1000)


@ti.kernel
def fill():
    for i in x:
        x[i] = i


def step():
    ti.sync()
    reserved = ctypes.c_uint64()
    assert driver.cuMemPoolGetAttribute(pool, RESERVED_MEM_CURRENT, ctypes.byref(reserved)) == 0
    print("reserved", reserved.value, flush=True)
    sys.stdin.readline()


fill()
driver, pool = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
step()
first, second = ti.ndarray(ti.f32, shape=3 * MIB), ti.ndarray(ti.f32, shape=5 * MIB)
step()
del first
gc.collect()
step()
assert driver.cuMemPoolTrimTo(pool, 0) == 0
step()
del second
gc.collect()
assert driver.cuMemPoolTrimTo(pool, 0) == 0
step()
