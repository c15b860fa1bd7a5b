# SPDX-License-Identifier: Apache-2.0
"""The driver-API programs of this folder through `cotenant forward`: the same results as directly, and
what is left when one of the processes is killed."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import HERE, ROOT, make, run, toolkit
from processes import children_called, read
from waiting import eventually

COTENANT = ROOT / "build" / "bin" / "cotenant"

# What is promised: a call answers within so long when the host's side is gone.
LOST_SECONDS = 2
# What a busy machine adds.
LATE_SECONDS = 58


def forward(command, env, **more):
    """What a command prints when its CUDA calls are executed beside it."""
    return run([COTENANT, "forward", "--", *command], env, **more)


@pytest.mark.parametrize("name", ["kernels", "pipeline", "graph", "ipc", "vmm", "threads", "hosts", "linking"])
def test_program_prints_the_same(gpu, program, ptx, name):
    command = [program(name), ptx("nvcc")]
    assert forward(command, gpu) == run(command, gpu)


def test_every_call_may_wait(gpu, program, ptx):
    assert "six kernels right" in forward([program("kernels"), ptx("nvcc")], gpu | {"COTENANT_SYNC": "1"})


def test_order_between_threads_is_kept(gpu, program, ptx):
    """However long each command is delayed in the worker."""
    command = [program("order"), ptx("nvcc")]
    assert forward(command, gpu | {"COTENANT_JITTER_US": "500"}) == run(command, gpu)


def counts(env, command, tmp_path):
    """Posted calls, calls that waited, doorbells, bytes copied on the way, as the guest's library counts them."""
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    forward(command, env | {"COTENANT_STATS": "1", "COTENANT_ERRLOG": str(log)})
    found = re.search(r"(\d+) posted, (\d+) asked, (\d+) doorbells, (\d+) bytes copied", log.read_text())
    return tuple(int(n) for n in found.groups())


def test_launches_wait_for_nobody(gpu, program, ptx, tmp_path):
    few = counts(gpu, [program("launches"), ptx("nvcc"), "1000"], tmp_path)
    many = counts(gpu, [program("launches"), ptx("nvcc"), "2000"], tmp_path)
    assert many[0] - few[0] == 1000
    assert many[1] == few[1]


@pytest.mark.parametrize("how, times", [("pinned", 0), ("registered", 0), ("pageable", 4)])
@pytest.mark.parametrize("size", [8 << 10, 8 << 20])
def test_memory_that_the_device_reaches_is_not_copied_on_the_way(gpu, program, tmp_path, how, times, size):
    """There and back, in one dimension and in two."""
    assert counts(gpu, [program("copies"), how, str(size)], tmp_path)[3] == times * size


def test_a_call_that_is_not_forwarded_is_told_once(gpu, program, tmp_path):
    log = tmp_path / "log"
    source = tmp_path / "refused.c"
    source.write_text('#include "program.h"\nint main(void) { CHECK(cuInit(0)); for (int i = 0; i < 3; i++) '
                      "EXPECT(cuProfilerInitialize(0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED); return 0; }\n")
    refused = tmp_path / "refused"
    here = pathlib.Path(__file__).parent
    run(["gcc", "-I", here, "-I", toolkit() / "include", source, "-o", refused,
         "-L", ROOT / "build/softgpu", "-lcuda"], os.environ)
    forward([refused], gpu | {"COTENANT_ERRLOG": str(log)})
    assert log.read_text().count("cuProfilerInitialize is not forwarded") == 1


def folder_of(process):
    """Where the broker of a command is reached that says it."""
    return pathlib.Path(process.stdout.readline().strip()).parent


def test_the_folder_of_a_killed_command_goes_with_the_next_one(gpu):
    says = [COTENANT, "forward", "--", "sh", "-c", 'echo "$COTENANT_FORWARD"; read line']

    def start():
        process = subprocess.Popen(says, env=gpu, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return process, folder_of(process)
    (killed, left), (lives, kept) = start(), start()
    killed.kill()
    killed.wait()
    assert (left / "socket").is_socket()
    ends, last = start()
    assert not left.exists() and (kept / "socket").is_socket()
    for process in (ends, lives):
        assert process.communicate("\n", timeout=120) == ("", None) and process.returncode == 0
    assert not last.exists() and not kept.exists()
    # What the killed one has started reads what nobody says.
    killed.stdin.close()


class Holder:
    """A program that holds memory through `cotenant forward` until its input ends, and its processes."""

    def __init__(self, env, command):
        self.process = subprocess.Popen([COTENANT, "forward", "--", *map(str, command)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.guest = int(self.process.stdout.readline().split()[1])
        self.broker = children_called(self.process.pid, "cotenant-vm")[0]
        self.worker = eventually(self.workers, "the program has a worker")[0]

    def workers(self):
        return children_called(self.broker, "cotenant-worker")

    def go_on(self):
        """Lets the program make its next call; its exit code, output and how long it took."""
        start = time.monotonic()
        output, _ = self.process.communicate(timeout=120)
        return self.process.returncode, output, time.monotonic() - start


@pytest.fixture
def holder(gpu, program, ptx):
    held = Holder(gpu, [program("kernels"), ptx("nvcc"), "16"])
    yield held
    held.process.kill()
    held.process.wait()


@pytest.mark.parametrize("who", ["worker", "broker"])
def test_the_device_is_lost_when_the_hosts_side_is_killed(holder, who):
    os.kill(getattr(holder, who), signal.SIGKILL)
    # Until the worker has gone after its broker it does what it is asked.
    eventually(lambda: not pathlib.Path(f"/proc/{holder.worker}").exists(), "the worker is gone")
    code, output, seconds = holder.go_on()
    assert code == 1 and "CUDA_ERROR_DEVICE_UNAVAILABLE" in output
    assert seconds < LOST_SECONDS + LATE_SECONDS


def test_no_worker_is_left_of_a_killed_process(holder):
    os.kill(holder.guest, signal.SIGKILL)
    assert holder.process.wait(timeout=60) == 128 + signal.SIGKILL
    eventually(lambda: not pathlib.Path(f"/proc/{holder.worker}").exists(), "the worker is gone")


def test_a_killed_worker_is_nobody_elses_loss(gpu, program, ptx, tmp_path):
    """Two processes of one broker; the worker of the first is killed while the second works."""
    script = f"{program('kernels')} {ptx('nvcc')} 16 < {tmp_path}/fifo 2>&1 | " \
             f"{{ read ready; echo ready; {program('threads')} {ptx('nvcc')} && echo done; }}"
    os.mkfifo(tmp_path / "fifo")
    # Opened for both directions: nobody waits for the other one to come.
    with open(tmp_path / "fifo", "r+b", buffering=0):
        process = subprocess.Popen([COTENANT, "forward", "--", "sh", "-c", script], env=gpu, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout.readline() == "ready\n"
        broker = children_called(process.pid, "cotenant-vm")[0]
        first = children_called(broker, "cotenant-worker")[0]
        os.kill(first, signal.SIGKILL)
        assert [process.stdout.readline() for _ in range(2)] == ["8 threads right\n", "done\n"]
    # The first has nothing more to wait for.
    assert process.wait(timeout=60) == 0


def test_workers_are_confined(holder):
    """No capabilities, a filter of system calls, and a file system with the devices and what the driver needs."""
    status = pathlib.Path(f"/proc/{holder.worker}/status").read_text()
    for line in ("CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in status
    threads = [read(holder.worker, f"task/{thread}/status") for thread in os.listdir(f"/proc/{holder.worker}/task")]
    # One that has ended meanwhile says nothing.
    assert all("CapEff:\t0000000000000000" in thread for thread in threads if thread)
    for space in ("mnt", "net", "ipc", "uts", "pid"):
        assert os.readlink(f"/proc/{holder.worker}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}")
    seen = set(os.listdir(f"/proc/{holder.worker}/root"))
    assert not seen & {"etc", "home", "root", "usr", "var", "bin"}


def test_thirty_at_once(gpu, program):
    """Each with a broker of its own."""
    command = [COTENANT, "forward", "--", program("start")]
    running = [subprocess.Popen(command, env=gpu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for _ in range(30)]
    outs = [process.communicate(timeout=240)[0] for process in running]
    assert [out for process, out in zip(running, outs) if process.returncode != 0] == []


def test_taichi(gpu, venv):
    python = venv("taichi", "requirements-taichi.txt") / "python"
    assert "sum right" in forward([python, HERE / "real" / "taichi-sum.py", "taichi"], gpu)


def test_tinygrad_trains_as_directly(gpu, venv):
    cuda = toolkit()
    env = gpu | {"LD_LIBRARY_PATH": f"{gpu['LD_LIBRARY_PATH']}:{cuda}/lib64", "CUDA_PATH": str(cuda),
                 "DEV": "CUDA", "CACHELEVEL": "0"}
    command = [venv("tinygrad", "requirements-tinygrad.txt") / "python", HERE / "real" / "tinygrad-train.py"]
    losses = [[line for line in out.splitlines() if line.startswith("loss")]
              for out in (forward(command, env), run(command, env))]
    assert len(losses[0]) == 6 and losses[0] == losses[1]


def test_nonsense_costs_its_sender_alone(gpu, program, ptx):
    """Guests that break the rules of the protocol, and then a program by the same broker."""
    source = HERE / "hostile.c"
    hostile = make("hostile", ["gcc", "-O1", "-Wall", "-I", ROOT / "src", source, "-o", "@OUT@"],
                   [source, ROOT / "src" / "forward" / "transport.h"])
    out = forward(["sh", "-c", f"{hostile} 30 && {program('kernels')} {ptx('nvcc')}"], gpu)
    assert "30 rounds of nonsense" in out and "six kernels right" in out
