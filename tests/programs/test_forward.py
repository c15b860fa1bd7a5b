# SPDX-License-Identifier: Apache-2.0
"""The driver-API programs of this folder through `cotenant forward`: the same results as directly."""
import pytest

from conftest import ROOT, run

COTENANT = ROOT / "build" / "bin" / "cotenant"


def forward(command, env, **more):
    """What a command prints when its CUDA calls are executed beside it."""
    return run([COTENANT, "forward", "--", *command], env, **more)


@pytest.mark.parametrize("name", ["kernels", "pipeline", "graph", "ipc", "vmm", "threads", "hosts"])
def test_program_prints_the_same(gpu, program, ptx, name):
    command = [program(name), ptx("nvcc")]
    assert forward(command, gpu) == run(command, gpu)
