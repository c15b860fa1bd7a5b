# SPDX-License-Identifier: Apache-2.0
"""Monitoring tools from the Python registry see the programs that run, with their memory."""
import os
import re
import subprocess

import pytest

from building import UNAVAILABLE
from conftest import SOFTGPU, ROOT, run
from cudart import compiled

HELD_MB = 1234
CONTEXT_MB = 300

# As NVML and the driver number them.
NOT_SUPPORTED = 3
ILLEGAL_ADDRESS_XID = 31


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
    """It draws on a terminal until it is ended: the test reads until the process is there with its memory."""
    found = subprocess.run([ROOT / "tests/programs/nvtop"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if found.returncode == UNAVAILABLE:
        pytest.skip("nvtop cannot be fetched")
    assert found.returncode == 0, found.stderr
    shown, out = None, b""
    with subprocess.Popen(["timeout", "60", "script", "-qfc", f"stty cols 150 rows 40; {found.stdout.strip()} -C",
                           "/dev/null"], env=gpu | {"TERM": "xterm"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as terminal:
        while not shown and (piece := os.read(terminal.stdout.fileno(), 65536)):
            out += piece
            shown = re.search(rb"\b%d\b.* Compute .*?\b(\d+)MiB" % busy, out)
        terminal.terminate()
    assert shown, out[-4000:]
    check_used(shown[1])


def test_softgpu_smi_shows_the_process(gpu, busy):
    out = run([ROOT / "build/bin/softgpu-smi"], gpu)
    check_shown(rf"\| +0 +{busy} .* (\d+)MiB \|", out)
    out = run([ROOT / "build/bin/softgpu-smi", "-q"], gpu)
    check_shown(rf"Process ID +: {busy}\n(?: {{12}}.*\n)*? {{12}}Used GPU Memory +: (\d+) MiB", out)


def test_both_libraries_are_there_under_every_name():
    for name in ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"]:
        assert (SOFTGPU / name).exists(), name


class Forwarded:
    """A program that holds HELD_MB of device 0 until the test is over, its calls executed by a broker of its own, and
    the environment of others whose calls the same broker has executed."""

    def __init__(self, env, command):
        script = 'echo "$COTENANT_FORWARD $LD_LIBRARY_PATH"; exec "$@"'
        command = [ROOT / "build/bin/cotenant", "forward", "--", "sh", "-c", script, "sh", *command]
        self.process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        socket, path = self.process.stdout.readline().split()
        self.env = env | {"COTENANT_FORWARD": socket, "LD_LIBRARY_PATH": path}
        line = self.process.stdout.readline()
        assert line.startswith("ready"), line
        self.pid = int(line.split()[1])

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture
def forwarded(gpu, program, ptx):
    """forwarded(): one such program."""
    made = []

    def start():
        made.append(Forwarded(gpu, [program("kernels"), ptx("nvcc"), str(HELD_MB)]))
        return made[-1]
    yield start
    for one in made:
        one.end()


LISTED = """
from pynvml import *
nvmlInit()
for i in range(nvmlDeviceGetCount()):
    device = nvmlDeviceGetHandleByIndex(i)
    for p in nvmlDeviceGetComputeRunningProcesses(device):
        print("process", i, p.pid, p.usedGpuMemory >> 20)
"""


def test_the_guests_library_lists_the_guests_processes_alone(gpu, venv, forwarded):
    """Two commands, each with a broker of its own, and a program that has the device itself: to a command there are
    its own processes, to whoever has the device there are all."""
    python = venv("nvml", "requirements-nvml.txt") / "python"
    two = [forwarded(), forwarded()]
    for one in two:
        words = run([python, "-c", LISTED], one.env).split()
        assert words[:3] == ["process", "0", str(one.pid)] and len(words) == 4
        check_used(words[3])
    assert len(run([python, "-c", LISTED], gpu).splitlines()) == 2


TOLD = """
from pynvml import *
nvmlInit()
print(nvmlSystemGetDriverVersion(), nvmlSystemGetCudaDriverVersion(), nvmlDeviceGetCount())
for i in range(nvmlDeviceGetCount()):
    device = nvmlDeviceGetHandleByIndex(i)
    uuid, pci = nvmlDeviceGetUUID(device), nvmlDeviceGetPciInfo(device)
    same = [nvmlDeviceGetHandleByUUID(uuid), nvmlDeviceGetHandleByPciBusId(pci.busId),
            nvmlDeviceGetHandleBySerial(nvmlDeviceGetSerial(device))]
    print(nvmlDeviceGetName(device), uuid, pci.busId, pci.busIdLegacy, pci.bus, pci.pciDeviceId,
          [nvmlDeviceGetIndex(one) for one in same], nvmlDeviceGetCudaComputeCapability(device))
    print(nvmlDeviceGetMemoryInfo(device).total, nvmlDeviceGetMemoryInfo(device, version=nvmlMemory_v2).total,
          nvmlDeviceGetEnforcedPowerLimit(device), nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM),
          nvmlDeviceGetTemperatureThreshold(device, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
          nvmlDeviceGetPowerManagementLimitConstraints(device), nvmlDeviceGetGraphicsRunningProcesses(device))
"""


def test_the_guests_library_tells_what_the_hosts_does(gpu, venv):
    python = venv("nvml", "requirements-nvml.txt") / "python"
    told = run([python, "-c", TOLD], gpu)
    assert run([ROOT / "build/bin/cotenant", "forward", "--", python, "-c", TOLD], gpu) == told
    assert "[1, 1, 1]" in told


def test_the_guests_devices_are_those_of_its_driver(gpu, venv):
    """Fewer than the host's, and by other numbers."""
    python = venv("nvml", "requirements-nvml.txt") / "python"
    told = run([python, "-c", TOLD], gpu).splitlines()
    forward = [ROOT / "build/bin/cotenant", "forward", "--", python, "-c", TOLD]
    fewer = run(forward, gpu | {"CUDA_VISIBLE_DEVICES": "1"}).splitlines()
    assert fewer[0].split()[2:] == ["1"]
    assert fewer[1:] == [line.replace("[1, 1, 1]", "[0, 0, 0]") for line in told[3:5]]


FIELDS = """
from pynvml import *
nvmlInit()
device = nvmlDeviceGetHandleByIndex(1)
# The last is none.
for value in nvmlDeviceGetFieldValues(device, [NVML_FI_DEV_ECC_CURRENT, (NVML_FI_DEV_NVLINK_LINK_COUNT, 1), 188, 5000]):
    print(value.fieldId, value.scopeId, value.valueType, value.nvmlReturn, value.value.ullVal, value.timestamp > 0)
print(nvmlDeviceGetSupportedEventTypes(device))
"""


def test_the_guests_library_tells_values_by_number(gpu, venv):
    python = venv("nvml", "requirements-nvml.txt") / "python"
    told = run([python, "-c", FIELDS], gpu)
    assert run([ROOT / "build/bin/cotenant", "forward", "--", python, "-c", FIELDS], gpu) == told
    assert told.splitlines()[-2].startswith(f"5000 0 0 {NOT_SUPPORTED} ")


WAITS = """
from pynvml import *
nvmlInit()
device = nvmlDeviceGetHandleByIndex(0)
sets = [nvmlEventSetCreate() for _ in range(2)]
for one in sets:
    nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, one)
print("ready", flush=True)
for one in sets:
    event = nvmlEventSetWait_v2(one, 60000)
    print(nvmlDeviceGetIndex(event.device), event.eventType, event.eventData)
    try:
        nvmlEventSetWait_v2(one, 0)
    except NVMLError_Timeout:
        print("no more")
    nvmlEventSetFree(one)
try:
    nvmlEventSetWait_v2(sets[0], 0)
except NVMLError_InvalidArgument:
    print("freed")
try:
    nvmlDeviceRegisterEvents(device, 1 << 40, nvmlEventSetCreate())
except NVMLError_NotSupported:
    print("no such type")
"""


def test_the_guests_library_waits_for_events(gpu, venv):
    """A kernel fails on the device, and each set is told once."""
    python = venv("nvml", "requirements-nvml.txt") / "python"
    command = [ROOT / "build/bin/cotenant", "forward", "--", python, "-c", WAITS]
    # Not compiled while somebody waits.
    failing = [compiled("faults"), "address"]
    with subprocess.Popen(command, env=gpu, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        run(failing, gpu)
        told = process.stdout.read()
    assert told == 2 * f"0 8 {ILLEGAL_ADDRESS_XID}\nno more\n" + "freed\nno such type\n"


def test_what_is_not_forwarded_is_told_once(gpu, venv, tmp_path):
    """In the file for it alone: a tool's output is a terminal that it draws on."""
    python = venv("nvml", "requirements-nvml.txt") / "python"
    log = tmp_path / "log"
    command = [ROOT / "build/bin/cotenant", "forward", "--", python, "-c", """
from pynvml import *
nvmlInit()
for i in range(3):
    try:
        nvmlDeviceGetTopologyCommonAncestor(nvmlDeviceGetHandleByIndex(0), nvmlDeviceGetHandleByIndex(1))
    except NVMLError_NotSupported:
        print("not supported")
"""]
    assert run(command, gpu) == 3 * "not supported\n"
    run(command, gpu | {"COTENANT_ERRLOG": str(log)})
    assert log.read_text() == "cotenant: nvmlDeviceGetTopologyCommonAncestor is not forwarded\n"


def test_gpustat_shows_the_guests_process(venv, forwarded):
    one = forwarded()
    out = run([venv("nvml", "requirements-nvml.txt") / "gpustat", "--show-pid", "--no-color"], one.env)
    check_shown(rf"/{one.pid}\((\d+)M\)", out)


def test_nvitop_shows_the_guests_process(venv, forwarded):
    one = forwarded()
    out = run([venv("nvml", "requirements-nvml.txt") / "nvitop", "-1", "--ascii"], one.env | {"TERM": "xterm"})
    check_shown(rf"\| +0 +{one.pid} C +\S+ +(\d+)MiB ", out)
