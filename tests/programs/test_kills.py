# SPDX-License-Identifier: Apache-2.0
"""Processes of a forwarded command, their workers and the broker, killed at any instant: nothing is left of them, and
whoever lost his device is told so in time. KILLS says how often each; `make soak` has 200."""
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

from broker import Broker
from conftest import ROOT, SOFTGPU, toolkit
from processes import is_gone
from waiting import eventually

KILLS = int(os.environ.get("KILLS", "10"))
LOST_SECONDS = 2
# What a busy machine adds.
LATE_SECONDS = 8 if "KILLS" in os.environ else 58

# Launches, copies both ways, memory that comes and goes, from two threads' lanes or one; until it is ended.
PROGRAM = r"""
#include "program.h"
#include <pthread.h>

static CUcontext context;
static CUfunction scale;

static void *work(void *arg)
{
	float x[256] = { 0 }, by = 1, *pinned;
	int n = 256;
	CUdeviceptr p;

	CHECK(cuCtxSetCurrent(context));
	for (int i = 0;; i++) {
		p = device_copy(x, sizeof(x));
		CHECK(cuMemAllocHost((void **)&pinned, 1 << 20));
		CHECK(cuLaunchKernel(scale, 2, 1, 1, 128, 1, 1, 0, NULL, (void *[]){ &p, &by, &n }, NULL));
		CHECK(cuMemcpyDtoHAsync(pinned, p, sizeof(x), NULL));
		CHECK(cuMemcpyDtoH(x, p, sizeof(x)));
		CHECK(cuMemFreeHost(pinned));
		CHECK(cuMemFree(p));
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	CHECK(cuInit(0));
	context = context_on(0);
	scale = function_of(module_of(argv[1]), "scale");
	printf("works\n");
	fflush(stdout);
	pthread_create(&thread, NULL, work, NULL);
	work(NULL);
	return 0;
}
"""


@pytest.fixture
def command(tmp_path, ptx):
    here = pathlib.Path(__file__).parent
    source, program = tmp_path / "works.c", tmp_path / "works"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-I", here, "-I", toolkit() / "include", source, "-o", program, "-L", SOFTGPU, "-lcuda",
                    "-pthread"], check=True)
    return [program, ptx("nvcc")]


@pytest.fixture
def broker_of(gpu, tmp_path):
    """broker_of(): a broker at tmp_path/socket."""
    started = []

    def start():
        started.append(Broker("--socket", tmp_path / "socket", gpu))
        return started[-1]
    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def guest(gpu, tmp_path, command):
    """guest(): the program at work through the broker."""
    env = gpu | {"COTENANT_FORWARD": str(tmp_path / "socket"), "LD_LIBRARY_PATH": str(ROOT / "build" / "forward")}
    started = []

    def start():
        process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "works\n", process.stderr.read()
        return process
    yield start
    for process in started:
        process.kill()
        process.wait()


def n_descriptors(broker):
    """The least in a moment: a request that is under way has some, and a session that ends is not at its end at once."""
    least = len(os.listdir(f"/proc/{broker.pid}/fd"))
    for _ in range(50):
        time.sleep(0.01)
        least = min(least, len(os.listdir(f"/proc/{broker.pid}/fd")))
    return least


def any_moment(seed):
    time.sleep(random.Random(seed).uniform(0, 0.05))


def used_memory(gpu):
    """Of each device, all processes together."""
    out = subprocess.run([ROOT / "build/bin/softgpu-smi", "-q"], env=gpu, capture_output=True, text=True,
                         check=True).stdout
    return re.findall(r"Used +: (\d+)", out)


def is_told(guest):
    """It learns in time that its device is lost."""
    start = time.monotonic()
    _, err = guest.communicate(timeout=120)
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in err and guest.returncode == 1, err
    # The clock begins when the host's side has ended, as far as this process was running.
    assert time.monotonic() - start < LOST_SECONDS + LATE_SECONDS


def test_a_guests_process_is_killed(gpu, broker_of, guest):
    broker = broker_of()
    idle = n_descriptors(broker)
    before = used_memory(gpu)
    for seed in range(KILLS):
        victim = guest()
        any_moment(seed)
        victim.kill()
        victim.wait()
        eventually(lambda: not broker.workers(), "the worker is gone")
    eventually(lambda: n_descriptors(broker) <= idle, "the broker has closed what it had open")
    assert used_memory(gpu) == before


def test_a_worker_is_killed(gpu, broker_of, guest):
    """One guest's, again and again, while another works on beside it."""
    broker = broker_of()
    beside = guest()
    others = set(broker.workers())
    idle = n_descriptors(broker)
    for seed in range(KILLS):
        victim = guest()
        worker, = set(broker.workers()) - others
        any_moment(seed)
        os.kill(worker, signal.SIGKILL)
        is_told(victim)
        eventually(lambda: set(broker.workers()) == others, "the worker is gone")
    eventually(lambda: n_descriptors(broker) <= idle, "the broker has closed what it had open")
    assert beside.poll() is None and broker.is_running()


def test_the_broker_is_killed(gpu, broker_of, guest):
    before = used_memory(gpu)
    for seed in range(KILLS):
        broker = broker_of()
        victim = guest()
        worker, = broker.workers()
        any_moment(seed)
        broker.kill()
        is_told(victim)
        eventually(lambda: is_gone(worker), "the worker is gone")
    assert used_memory(gpu) == before
