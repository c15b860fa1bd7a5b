# SPDX-License-Identifier: Apache-2.0
"""The host's side of a virtual machine against a guest that is played by a program: no QEMU, no kernel module."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

from broker import Broker
from conftest import ROOT
from waiting import eventually

FRONT = ROOT / "build" / "src" / "forward" / "test-front"

# What test-front has shared with the worker when it pauses: block and heap, and a grant of three pages.
SHARED = (64 << 10) + (16 << 20) + 3 * 4096


@pytest.fixture
def broker(gpu, tmp_path):
    one = Broker("--vm", tmp_path / "machine", gpu)
    yield one
    one.kill()


class Front:
    """test-front, at its pause."""

    def __init__(self, broker):
        self.process = subprocess.Popen([FRONT, broker.socket], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.lines = []
        for line in self.process.stdout:
            if line == "paused\n":
                break
            self.lines.append(line)

    def go_on(self):
        out, _ = self.process.communicate("\n", timeout=240)
        return "".join(self.lines) + out


def is_alone(broker):
    return not broker.workers() and not broker.mappers()


def mapped_of_guest(pid):
    """Bytes of the guest's memory that a process has."""
    lines = [line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "/memfd:ram" in line]
    return sum(int(end, 16) - int(start, 16) for start, end in (line[0].split("-") for line in lines))


def test_a_session_from_its_beginning_to_its_end(broker):
    out = Front(broker).go_on()
    assert "NOT OK" not in out and "end: of the queue" in out, out
    eventually(lambda: is_alone(broker), "worker and mapper are gone")


def test_a_worker_has_what_was_granted_and_no_way_to_the_rest(broker):
    front = Front(broker)
    worker, = broker.workers()
    mapper, = broker.mappers()
    assert mapped_of_guest(worker) == SHARED
    descriptors = [os.readlink(path) for path in pathlib.Path(f"/proc/{worker}/fd").iterdir()]
    assert not [name for name in descriptors if "memfd:ram" in name]
    # The mapper has one, and a capability, by which the kernel keeps it from whoever has none.
    status = pathlib.Path(f"/proc/{mapper}/status").read_text()
    assert re.search(r"CapPrm:\t0*800000000$", status, re.M) and "CapEff:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
    assert "NOT OK" not in front.go_on()


@pytest.mark.parametrize("who", [Broker.workers, Broker.mappers])
def test_whoever_dies_takes_the_session_along(broker, who):
    front = Front(broker)
    os.kill(who(broker)[0], signal.SIGKILL)
    eventually(lambda: is_alone(broker), "worker and mapper are gone")
    assert front.go_on().count("NOT OK") == 1
    assert broker.is_running()


def test_nothing_is_left_of_a_killed_qemu(broker):
    front = Front(broker)
    front.process.kill()
    eventually(lambda: is_alone(broker), "worker and mapper are gone")
    # And the next one is served.
    assert "NOT OK" not in Front(broker).go_on()
