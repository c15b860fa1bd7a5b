# SPDX-License-Identifier: Apache-2.0
"""The driver-API programs of this folder on the software GPU."""
import subprocess

import pytest

from conftest import SOFTGPU, run


@pytest.mark.parametrize("compiler", ["nvcc", "nvcc-debug", "nvrtc", "clang", "clang-target"])
def test_kernels_are_right_whoever_compiled_them(gpu, program, ptx, compiler):
    assert "six kernels right" in run([program("kernels"), ptx(compiler)], gpu)


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc", "clang"])
@pytest.mark.parametrize("name", ["pipeline", "graph", "ipc", "vmm", "threads", "hosts", "atomics"])
def test_program_is_right(gpu, program, ptx, name, compiler):
    run([program(name), ptx(compiler)], gpu)


@pytest.mark.parametrize("name", ["kernels", "pipeline", "threads"])
def test_program_is_right_with_compiled_kernels(gpu, program, ptx, tmp_path, name):
    gpu |= {"SOFTGPU_JIT": "1", "SOFTGPU_LOG": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in ("compiled", "from the cache"):
        out = run([program(name), ptx("nvcc")], gpu)
        assert "interpreted" not in out or "there is no softgpu-jitc" in out
    if (SOFTGPU / "softgpu-jitc").exists():
        assert list((tmp_path / "cache" / "softgpu").glob("*.jit"))


def test_without_a_compiler_the_interpreter_serves_and_says_so(gpu, program, ptx, tmp_path):
    gpu |= {"SOFTGPU_JIT": "1", "SOFTGPU_LOG": "1", "SOFTGPU_JITC": str(tmp_path / "nothing")}
    out = run([program("kernels"), ptx("nvcc")], gpu)
    assert "six kernels right" in out and out.count("kernels are interpreted: ") == 1, out


@pytest.mark.parametrize("kernel_ns", [None, "5000000"])
def test_event_times_are_the_devices(gpu, program, kernel_ns):
    """As the model has them, or as SOFTGPU_KERNEL_NS says, whatever the grid."""
    if kernel_ns:
        gpu["SOFTGPU_KERNEL_NS"] = kernel_ns
    assert "times right" in run([program("clock"), *filter(None, [kernel_ns])], gpu)


def test_two_programs_at_once_are_both_right(gpu, program, ptx):
    commands = [[program("kernels"), ptx("nvcc")], [program("threads"), ptx("clang")]] * 2
    running = [subprocess.Popen(c, env=gpu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for c in commands]
    for process in running:
        out, _ = process.communicate(timeout=240)
        assert process.returncode == 0, out


def test_200_processes_start_at_once(gpu, program):
    start = program("start")
    running = [subprocess.Popen([start], env=gpu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for _ in range(200)]
    outs = [process.communicate(timeout=240)[0] for process in running]
    assert [out for process, out in zip(running, outs) if process.returncode != 0] == []
