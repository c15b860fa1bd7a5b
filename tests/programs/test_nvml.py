# SPDX-License-Identifier: Apache-2.0
"""Monitoring tools from the Python registry see the programs that run, with their memory."""
import re
import shutil
import subprocess

import pytest

from conftest import SOFTGPU, ROOT, run

HELD_MB = 1234
CONTEXT_MB = 300


@pytest.fixture
def busy(gpu, program, ptx):
    """A program that holds HELD_MB of device 0 until the test is over: its pid."""
    with subprocess.Popen([program("kernels"), ptx("nvcc"), str(HELD_MB)], env=gpu, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        line = process.stdout.readline()
        assert line.startswith("ready"), line
        yield int(line.split()[1])
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def check_used(used_mb):
    """The context, what was asked for, and at most a few blocks for the module."""
    assert CONTEXT_MB + HELD_MB <= int(used_mb) <= CONTEXT_MB + HELD_MB + 32


def check_shown(line, out):
    """What a tool prints has a line as the pattern, whose group is the process's memory in MiB."""
    found = re.search(line, out)
    assert found, out
    check_used(found[1])


def test_nvidia_ml_py_reads_the_process_and_its_memory(gpu, venv, busy):
    python = venv("nvml", "requirements-nvml.txt") / "python"
    out = run([python, "-c", """
from pynvml import *
nvmlInit()
device = nvmlDeviceGetHandleByIndex(0)
for p in nvmlDeviceGetComputeRunningProcesses(device):
    print("process", p.pid, p.usedGpuMemory >> 20)
memory = nvmlDeviceGetMemoryInfo(device)
print("used", memory.used >> 20, "total", memory.total >> 20)
print("idle", nvmlDeviceGetMemoryInfo(nvmlDeviceGetHandleByIndex(1)).used >> 20)
"""], gpu)
    words = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    pid, used_mb = (int(word) for word in words["process"])
    assert pid == busy
    check_used(used_mb)
    assert int(words["used"][0]) >= used_mb
    assert int(words["idle"][0]) < used_mb


def test_gpustat_shows_the_process(gpu, venv, busy):
    out = run([venv("nvml", "requirements-nvml.txt") / "gpustat", "--show-pid", "--no-color"], gpu)
    check_shown(rf"/{busy}\((\d+)M\)", out)


def test_nvitop_shows_the_process(gpu, venv, busy):
    out = run([venv("nvml", "requirements-nvml.txt") / "nvitop", "-1", "--ascii"], gpu | {"TERM": "xterm"})
    check_shown(rf"\| +0 +{busy} C +\S+ +(\d+)MiB ", out)


def test_nvtop_shows_the_process(gpu, busy):
    if not shutil.which("nvtop"):
        pytest.skip("nvtop is not installed: Debian has it in contrib only")
    out = run(["timeout", "--preserve-status", "-s", "INT", "3", "script", "-qc", "nvtop -C", "/dev/null"],
              gpu | {"TERM": "xterm"})
    assert str(busy) in out, out


def test_softgpu_smi_shows_the_process(gpu, busy):
    out = run([ROOT / "build/bin/softgpu-smi"], gpu)
    check_shown(rf"\| +0 +{busy} .* (\d+)MiB \|", out)
    out = run([ROOT / "build/bin/softgpu-smi", "-q"], gpu)
    check_shown(rf"Process ID +: {busy}\n(?: {{12}}.*\n)*? {{12}}Used GPU Memory +: (\d+) MiB", out)


def test_both_libraries_are_there_under_every_name():
    for name in ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"]:
        assert (SOFTGPU / name).exists(), name
