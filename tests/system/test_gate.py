# SPDX-License-Identifier: Apache-2.0
"""The second gate: what goes around the probes is found where the driver asks for memory.

The software GPU issues the kernel driver's ioctls on /dev/null, which the gate is told to take for a device.
"""
import os
import pathlib
import time

import pytest

from conftest import COTENANT, GIB, MIB, OUT_OF_MEMORY, PATIENCE, ROOT, SOFTGPU, as_user, eventually

EVADER = ROOT / "build/tests/system/evader"
GATE = ["--gate", "--gate-device", "/dev/null"]
# A cgroup and a user that no other run of the tests uses at the same time.
NAME = f"gated-{os.getpid()}"
USER = 100000 + os.getpid()


@pytest.fixture
def gated(host):
    host.env["SOFTGPU_IOCTL"] = "/dev/null"
    # A limit of a user: the driver itself keeps limits of cgroups alone, and would refuse what is tried here.
    host.cotenant("set", "--user", USER, "--name", "alice", "memory.max=1G")
    return host


def evade(host, how, size):
    return host.add([*as_user(USER), COTENANT, "run", "--name", NAME, *GATE, "--", EVADER, how, size,
                      SOFTGPU / "libcuda.so.1"])


def keepers():
    """Processes that keep gates, by pid."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == "cotenant-gate\n":
                found.add(int(path.parent.name))
        except OSError:
            pass
    return found


def code_of(tenant):
    """What its allocation got, as text; nothing where it was ended before it could say so."""
    assert tenant.has_answered(PATIENCE), "it neither answers nor ends"
    return tenant.process.stdout.readline().decode().strip()


@pytest.mark.parametrize("how", ["copy", "jump", "byte", "jump, wrapped"])
def test_trap_17_an_evasion_beyond_the_limit_is_ended(gated, how):
    """Wrapped: the driver hands its command to another one that carries it."""
    if "wrapped" in how:
        gated.env["SOFTGPU_IOCTL_WRAPPED"] = "1"
    tenant = evade(gated, how.split(",")[0], 3 * GIB)
    if code_of(tenant) == str(OUT_OF_MEMORY):
        # The copy was found and probed before its first call: nothing was evaded.
        assert how == "copy" and gated.told("refused", "alice")[-1]["size"] >= 3 * GIB
        return
    assert tenant.process.wait(PATIENCE) == 128 + 9, "killed by on-failure"
    event = gated.told("unexplained", NAME)[-1]
    assert event["size"] >= 3 * GIB and "killed" in event["text"] and "beyond memory.max of alice" in event["text"]
    assert "went around the probes" in gated.cotenant("explain", event["id"])


@pytest.mark.parametrize("how", ["jump", "byte"])
def test_an_evasion_within_the_limit_is_charged(gated, how):
    tenant = evade(gated, how, 600 * MIB)
    assert tenant.answer() == ["0"]
    event = gated.told("unexplained", NAME)[-1]
    assert "it is charged" in event["text"] and gated.book("alice")["memory.current"] >= 600 * MIB
    assert tenant.end() == 0


def test_on_failure_allow_lets_it_go_on(gated):
    gated.cotenant("set", "alice", "on-failure=allow")
    tenant = evade(gated, "jump", 3 * GIB)
    assert tenant.answer() == ["0"]
    gated.told("unexplained", NAME)
    assert gated.book("alice")["memory.current"] >= 3 * GIB
    assert tenant.end() == 0


def test_the_driver_itself_is_an_outer_wall(gated):
    """Where it keeps limits (R615 and newer), an evasion under a limit of a cgroup gets nothing."""
    tenant = gated.add([COTENANT, "run", "--memory.max", "1G", *GATE, "--", EVADER, "jump", 3 * GIB])
    assert tenant.answer() == [str(OUT_OF_MEMORY)]
    assert tenant.end() == 0


def test_who_keeps_to_the_calls_is_left_alone(gated):
    tenant = gated.run(*GATE, name=NAME, user=USER).started()
    assert tenant.alloc(2 * GIB) == -OUT_OF_MEMORY
    assert tenant.alloc(700 * MIB) > 0
    assert tenant.ask(f"loop 200 {8 * MIB}") == ["0", "0"] and tenant.ask("check") == ["right"]
    time.sleep(0.2)
    assert not gated.events("unexplained")
    assert tenant.end() == 0


def test_the_gate_outlives_the_daemon(gated):
    before = keepers()
    tenant = gated.run(*GATE, name=NAME, user=USER).started()
    kept = keepers() - before
    assert len(kept) == 1
    gated.kill()
    assert tenant.alloc(100 * MIB) > 0, "its ioctls go on"
    gated.start()
    assert keepers() - before == kept
    assert tenant.end() == 0
    eventually(lambda: not keepers() - before, "the keeper ends with the last of the command")


def test_an_evasion_while_the_daemon_is_away_is_found_when_it_is_back(gated):
    gated.cotenant("set", "alice", "on-failure=allow")
    tenant = gated.run(*GATE, name=NAME, user=USER).started()
    gated.kill()
    assert tenant.ask(f"jump {3 * GIB}") == ["0"]
    gated.start()
    gated.told("unexplained", NAME)
    assert gated.book("alice")["memory.current"] >= 3 * GIB


def counted(host):
    """What the daemon has heard of keepers: reports, requests of processes, looks at the books."""
    words = dict(line.split() for line in host.cotenant("metrics").splitlines() if line.startswith("cotenant_gate_"))
    return [int(words[f"cotenant_gate_{name}_total"]) for name in ("reports", "asked", "looks")]


def test_who_asks_all_the_time_is_reported_once_in_20_ms(gated):
    asks = 20000
    tenant = gated.run(*GATE, name=NAME, user=USER).started()
    begin, (reports, asked, looks) = time.monotonic(), counted(gated)
    assert tenant.ask(f"ask {asks}") == [str(asks)]
    eventually(lambda: counted(gated)[1] >= asked + asks, "all it has asked for is told")
    after = counted(gated)
    most = (time.monotonic() - begin) * 1000 / 20 + 2
    assert after[1] == asked + asks
    assert after[0] - reports <= most and after[2] - looks <= most
    assert not gated.events("unexplained") and tenant.end() == 0


def test_a_flood_hides_nobody_elses_evasion(gated):
    floods = [gated.run(*GATE, name=f"{NAME}-{i}", user=USER + 1).started() for i in range(2)]
    for flood in floods:
        flood.send("ask")
    before = counted(gated)[1]
    eventually(lambda: counted(gated)[1] > before, "they ask and ask")
    tenant = evade(gated, "jump", 3 * GIB)
    code_of(tenant)
    assert tenant.process.wait(PATIENCE) == 128 + 9, "killed by on-failure"
    assert "beyond memory.max of alice" in gated.told("unexplained", NAME)[-1]["text"]
    # The daemon answers whoever asks, and settles the books.
    assert gated.settled() > 0
    assert all(flood.process.poll() is None for flood in floods) and len(gated.events("unexplained")) == 1


def test_users_may_gate_their_own_processes_alone(gated):
    refused = gated.refused("api", "run.gate", f"pid={os.getpid()}", "fd=0", user=61001)
    assert "not yours" in refused
