# SPDX-License-Identifier: Apache-2.0
"""Triton compiles for a device that need not be there; what it makes is run by the driver API."""
import ctypes
import math
import random

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

BLOCK, N, SIDE = 256, 1000, 64


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    some = at < n
    tl.store(out + at, tl.load(x + at, mask=some) + tl.load(y + at, mask=some), mask=some)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def product(a, b, c, SIDE: tl.constexpr, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    sum = tl.zeros((TILE, TILE), dtype=tl.float32)
    for at in range(0, SIDE, TILE):
        x = tl.load(a + i[:, None] * SIDE + at + k[None, :])
        y = tl.load(b + (at + k[:, None]) * SIDE + j[None, :])
        sum += tl.dot(x, y, input_precision="ieee")
    tl.store(c + i[:, None] * SIDE + j[None, :], sum)


cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    assert result == 0, result


def launch(function, types, constants, grid, *values):
    """Triton's kernels have two more parameters than their source: scratch memory, which these do not use."""
    signature = dict(zip(function.arg_names, types.split())) | {name: "constexpr" for name in constants}
    for capability in (75, 80):
        made = triton.compile(ASTSource(function, signature, constexprs=constants),
                              target=GPUTarget("cuda", capability, 32))
        module, entry = ctypes.c_void_p(), ctypes.c_void_p()
        check(cuda.cuModuleLoadData(ctypes.byref(module), made.asm["ptx"].encode()))
        check(cuda.cuModuleGetFunction(ctypes.byref(entry), module, function.__name__.encode()))
        slots = [ctypes.c_int(v) if isinstance(v, int) else v.address for v in (*values, *[Memory()] * 2)]
        pointers = (ctypes.c_void_p * len(slots))(*[ctypes.cast(ctypes.byref(s), ctypes.c_void_p) for s in slots])
        for memory in values:
            if isinstance(memory, Memory):
                memory.write()
        check(cuda.cuLaunchKernel(entry, *grid, made.metadata.num_warps * 32, 1, 1, made.metadata.shared, None,
                                  pointers, None))
        yield


class Memory:
    """An array of the device's, as it is before each launch; none is a null pointer."""

    def __init__(self, kind=ctypes.c_float, content=()):
        self.host = (kind * len(content))(*content)
        self.address = ctypes.c_uint64()
        if content:
            check(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.sizeof(self.host)))

    def write(self):
        check(cuda.cuMemcpyHtoD_v2(self.address, self.host, ctypes.sizeof(self.host)))

    def read(self):
        out = type(self.host)()
        check(cuda.cuMemcpyDtoH_v2(out, self.address, ctypes.sizeof(out)))
        return list(out)


def close(got, wanted):
    return all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) for a, b in zip(got, wanted, strict=True))


context = ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
random.seed(1)

x, y = [[random.uniform(-2, 2) for _ in range(N)] for _ in range(2)]
dx, dy, out = Memory(content=x), Memory(content=y), Memory(content=[0] * N)
for _ in launch(add, "*fp32 *fp32 *fp32 i32", {"BLOCK": BLOCK}, (4, 1, 1), dx, dy, out, N):
    assert close(out.read(), [a + b for a, b in zip(x, y)])

rows, width = 5, 200
for _ in launch(softmax, "*fp32 *fp32 i32", {"BLOCK": BLOCK}, (rows, 1, 1), dx, out, width):
    for r in range(rows):
        e = [math.exp(v) for v in x[r * width:(r + 1) * width]]
        assert close(out.read()[r * width:(r + 1) * width], [v / sum(e) for v in e])

numbers = [random.randrange(16) for _ in range(N)]
bins = Memory(ctypes.c_int, [0] * 16)
for _ in launch(count, "*i32 *i32 i32", {"BLOCK": BLOCK}, (4, 1, 1), Memory(ctypes.c_int, numbers), bins, N):
    assert bins.read() == [numbers.count(n) for n in range(16)]

a, b = [[random.uniform(-1, 1) for _ in range(SIDE * SIDE)] for _ in range(2)]
c = Memory(content=[0] * SIDE * SIDE)
for _ in launch(product, "*fp32 *fp32 *fp32", {"SIDE": SIDE, "TILE": 32}, (2, 2, 1), Memory(content=a),
                Memory(content=b), c):
    assert close(c.read(), [sum(a[i * SIDE + k] * b[k * SIDE + j] for k in range(SIDE))
                            for i in range(SIDE) for j in range(SIDE)])
print("kernels right")
