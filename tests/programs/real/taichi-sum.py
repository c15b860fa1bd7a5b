# SPDX-License-Identifier: Apache-2.0
"""Fills a field and adds it up on arch=cuda: taichi-sum.py taichi|quadrants."""
import importlib
import sys

ti = importlib.import_module(sys.argv[1])
ti.init(arch=ti.cuda, device_memory_GB=0.5)
assert ti.lang.impl.current_cfg().arch == ti.cuda, "fell back to another device"

N = 10000
x = ti.field(ti.i32, shape=N)
total = ti.field(ti.i64, shape=())


@ti.kernel
def fill():
    for i in x:
        x[i] = i * i % 1000


@ti.kernel
def add():
    for i in x:
        total[None] += x[i]


fill()
add()
assert total[None] == sum(i * i % 1000 for i in range(N)), total[None]
print("sum right")
