# SPDX-License-Identifier: Apache-2.0
"""What happened is kept, also where the disk takes nothing for a while."""
import contextlib
import json
import sqlite3
import subprocess
import time

import pytest

from conftest import GIB, OUT_OF_MEMORY, eventually, host_in_use


@pytest.fixture
def small_disk(tmp_path):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], check=False)
    if done.returncode:
        pytest.skip("may not mount")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.fixture
def host_of_small_disk(machine, small_disk):
    for host in host_in_use({}):
        # The books stay where they are; it is the events that have a small disk.
        host.stop()
        (host.dir / "state/events.db").unlink()
        (host.dir / "state/events.db").symlink_to(small_disk / "events.db")
        host.start()
        yield host


def fill(path):
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def metric(host, name):
    line, = [line for line in host.cotenant("metrics").splitlines() if line.startswith(name + " ")]
    return int(line.split()[1])


def numbers(host):
    return [json.loads(line)["id"] for line in host.cotenant("events", "--json", "--lines", "1000").splitlines()]


def test_a_full_disk_loses_no_event(host_of_small_disk, small_disk):
    host = host_of_small_disk
    tenant = host.run("--memory.max", "512M", name="t").started()
    fill(small_disk / "filler")
    # More than what the write-ahead log has room for in the pages that it has already.
    for _ in range(4):
        assert all(tenant.alloc(GIB) == -OUT_OF_MEMORY for _ in range(75))
        # The kernel's program sends a tenant's events up to a number in a tenth of a second.
        time.sleep(0.2)
    eventually(lambda: metric(host, "cotenant_events_waiting"), "the disk takes no more")
    assert metric(host, "cotenant_events_lost_total") == 0
    eventually(lambda: len(host.events("refused", "t")) == 300, "each refusal is told")
    known = numbers(host)
    assert known == list(range(1, known[-1] + 1))
    assert "events are not written" in "".join(host.json("doctor")["problems"])
    (small_disk / "filler").unlink()
    # What is on the disk outlives the daemon, however it ends.
    known = numbers(host)
    eventually(lambda: metric(host, "cotenant_events_waiting") == 0, "there is room again")
    assert "events are not written" not in "".join(host.json("doctor")["problems"])
    host.kill()
    with contextlib.closing(sqlite3.connect(small_disk / "events.db")) as db:
        assert [number for number, in db.execute("SELECT id FROM events ORDER BY id")][:len(known)] == known
    host.start()
    assert len(host.events("refused", "t")) == 300
