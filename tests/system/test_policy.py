# SPDX-License-Identifier: Apache-2.0
"""Tenants beyond their requests: warned, suspended, evicted and killed, and nobody else."""
import contextlib
import os
import sqlite3
import subprocess

import pytest

from conftest import GIB, MIB, eventually, host_in_use
from processes import state_of


@pytest.fixture
def fast_host(machine):
    """Devices of 4 GiB that are sampled often: more than 3 GiB in use is pressure."""
    yield from host_in_use({"SOFTGPU_MEMORY": "4G"}, "--sample", "100ms", "--sample-tense", "50ms")


def actions(host, tenant, incident=0):
    """What was done in an incident of a tenant: [(action, reason, result)]."""
    known = host.json("incidents", "--tenant", tenant)["incidents"]
    if len(known) <= incident:
        return []
    shown = host.json("explain", f"i{known[incident]['id']}")
    return [(e["action"], e["reason"], e["result"] or "") for e in shown["entries"]]


def words(host, tenant, incident=0):
    return [action for action, _, _ in actions(host, tenant, incident)]


def borrower_of(host, name, *options):
    """Holds 1.5 GiB and has asked for a third of that: from when it has said that it has them."""
    tenant = host.run("--memory.low", "2G", *options, name=name).started()
    assert tenant.alloc(1536 * MIB) > 0
    host.cotenant("set", name, "memory.low=512M")
    return tenant


def outgrow(tenant, size):
    """It may be ended before it has said that it has it."""
    tenant.send(f"alloc {size}")


def started_again(tenant):
    while (answer := tenant.answer()) != ["0"]:
        assert answer[0] == "0" and len(answer) == 2, answer


def test_over_use_is_warned(fast_host):
    host = fast_host
    tenant = host.run("--memory.low", "512M", name="t").started()
    neighbour = host.run("--memory.low", "512M", name="n").started()
    assert tenant.alloc(1536 * MIB) > 0 and neighbour.alloc(256 * MIB) > 0
    eventually(lambda: words(host, "t") == ["warn"], "it is warned")
    assert "memory.low" in host.cotenant("explain", host.events("over-request", "t")[0]["id"])
    assert host.json("incidents", "--open")["incidents"][0]["peak"] > 1536 * MIB
    told = host.cotenant("explain", "i1")
    assert "asked for 512M" in told and "three samples" in told and "It goes on." in told
    host.cotenant("set", "t", "memory.low=2G")
    eventually(lambda: words(host, "t") == ["warn", "clear"], "the incident is over")
    assert not host.json("incidents", "--open")["incidents"] and not host.json("incidents", "--tenant", "n")["incidents"]
    assert tenant.ask("check") == neighbour.ask("check") == ["right"]


def test_suspended_after_its_grace_and_let_go(fast_host):
    host = fast_host
    tenant = borrower_of(host, "t", "--memory.policy", "suspend", "--memory.grace", "1s")
    pid = tenant.pid()
    eventually(lambda: words(host, "t") == ["warn", "suspend"], "it is suspended")
    eventually(lambda: actions(host, "t")[1][2].startswith("stopped after"), "it has stopped")
    assert actions(host, "t")[1][1] == "grace-over"
    tenant.send("check")
    assert not tenant.has_answered(0.5)
    host.cotenant("set", "t", "memory.low=2G")
    assert tenant.answer() == ["right"] and tenant.pid() == pid
    eventually(lambda: words(host, "t") == ["warn", "suspend", "resume", "clear"], "the incident is over")


def test_a_user_is_suspended_by_his_processes(fast_host):
    host = fast_host
    host.cotenant("set", "--user", "61001", "memory.low=512M", "memory.policy=suspend", "memory.grace=0")
    tenant = host.spawn(user=61001).started()
    pid = tenant.pid()
    outgrow(tenant, 1536 * MIB)
    eventually(lambda: state_of(pid) == "T", "it is stopped")
    host.cotenant("release", "61001")
    eventually(lambda: state_of(pid) != "T", "who is no tenant any more goes on")
    assert tenant.answer()[0] == "0" and tenant.ask("check") == ["right"]


@pytest.mark.parametrize("policy,event", [("evict", "evicted"), ("kill", "ended")])
def test_ended_after_its_grace(fast_host, policy, event):
    host = fast_host
    neighbour = host.run("--memory.low", "1G", "--memory.policy", "kill", name="n").started()
    assert neighbour.alloc(512 * MIB) > 0
    tenant = borrower_of(host, "t", "--memory.policy", policy, "--memory.grace", "500ms")
    assert tenant.process.wait(60) != 0
    eventually(lambda: words(host, "t") == ["warn", policy, "clear"], "the incident is over")
    assert "ended by SIGTERM" in eventually(lambda: actions(host, "t")[1][2], "the result is known")
    assert host.events(event, "t") and not host.json("incidents", "--tenant", "n")["incidents"]
    assert neighbour.ask("check") == ["right"]


@contextlib.contextmanager
def folders_inside(folder, names):
    """One in the other, by descriptors, as no path is that long; the innermost."""
    with contextlib.ExitStack() as stack:
        inside = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, inside)
        for name in names:
            os.mkdir(name, dir_fd=inside)
            stack.callback(os.rmdir, name, dir_fd=inside)
            inside = os.open(name, os.O_RDONLY, dir_fd=inside)
            stack.callback(os.close, inside)
        yield inside


def test_nobody_hides_in_folders_of_his_own(fast_host, cgroup):
    """What he calls them, and that their path is longer than any path may be, is his business."""
    host, (path, folder) = fast_host, cgroup
    host.cotenant("set", "--cgroup", path, "--name", "t", "memory.low=2G", "memory.policy=kill", "memory.grace=500ms")
    with folders_inside(folder, [".hidden", *21 * [200 * "x"]]) as inside:
        tenant = host.spawn().started()
        with open("cgroup.procs", "w", opener=lambda name, flags: os.open(name, flags, dir_fd=inside)) as procs:
            procs.write(str(tenant.pid()))
        assert tenant.alloc(1536 * MIB) > 0
        host.cotenant("set", "t", "memory.low=512M")
        assert tenant.process.wait(60) != 0
        assert "ended by SIGTERM" in eventually(lambda: words(host, "t")[1:] and actions(host, "t")[1][2], "the result is known")
        eventually(lambda: "populated 0" in (folder / "cgroup.events").read_text(), "the cgroup is empty")


def test_what_was_evicted_is_started_again_with_what_it_held(fast_host):
    host = fast_host
    evicted = ["--memory.low", "512M", "--memory.policy", "evict", "--memory.grace", "500ms"]
    tenant = host.run("--restart", "1", *evicted, name="t").started()
    first = tenant.pid()
    outgrow(tenant, 1536 * MIB)
    started_again(tenant)
    assert tenant.pid() != first and host.book("t")["memory.low"] >= 1600 * MIB
    # What it held before is within its request now.
    assert tenant.alloc(1536 * MIB) > 0
    eventually(lambda: words(host, "t") == ["warn", "evict", "clear"], "the first incident is over")
    assert not tenant.has_answered(2) and len(host.json("incidents", "--tenant", "t")["incidents"]) == 1
    # Beyond that as well, it is evicted, and that was its last time.
    outgrow(tenant, 1024 * MIB)
    assert tenant.process.wait(60) != 0
    assert len(host.events("evicted", "t")) == 2


def test_a_user_who_may_not_ask_for_more_is_started_as_before(fast_host):
    host = fast_host
    host.cotenant("set", "--user", "61001", "memory.low=512M")
    evicted = ["--memory.low", "512M", "--memory.policy", "evict", "--memory.grace", "500ms"]
    tenant = host.run("--restart", "1", *evicted, name="t", user=61001).started()
    outgrow(tenant, 1536 * MIB)
    started_again(tenant)
    assert host.book("t")["memory.low"] == 512 * MIB


def test_an_ask_within_its_request_is_given_room(fast_host):
    """One large ask, of whom a borrower leaves no room: held, the borrower ended, and then it runs."""
    host = fast_host
    borrower = host.run("--memory.low", "512M", "--memory.policy", "suspend-kill", name="borrower").started()
    owner = host.run("--memory.low", "3G", "--memory.wait", "max", name="owner").started()
    assert borrower.alloc(2 * GIB) > 0
    address = owner.alloc(int(2.5 * GIB))
    assert address > 0, "it waited for room"
    assert host.events("insufficient", "owner")[0]["left"] < 2 * GIB, "the device's room is told, not the tenant's"
    assert borrower.process.wait(60) != 0
    eventually(lambda: words(host, "borrower") == ["warn", "suspend", "evict", "clear"], "the incident is over")
    assert actions(host, "borrower")[1][1] == "others-wait"
    assert not host.json("incidents", "--tenant", "owner")["incidents"]
    assert owner.ask("check") == ["right"]


def suspended_without_daemon(host):
    """A tenant that was stopped, and has a question to answer, by a daemon that is dead since."""
    tenant = borrower_of(host, "t", "--memory.policy", "suspend", "--memory.grace", "0")
    eventually(lambda: "suspend" in words(host, "t") and actions(host, "t")[1][2], "it is suspended")
    tenant.send("check")
    host.kill()
    assert not tenant.has_answered(0.5)
    return tenant


def test_who_is_suspended_outlives_no_daemon(fast_host):
    host = fast_host
    tenant = suspended_without_daemon(host)
    host.start()
    assert words(host, "t")[-1] == "clear" and actions(host, "t")[-1][1] == "daemon-restart"
    # It is still beyond its request: a new incident, after it could run for three samples.
    eventually(lambda: "suspend" in words(host, "t", 1), "it is suspended again")
    host.cotenant("set", "t", "memory.policy=warn")
    assert tenant.answer() == ["right"]


def test_who_is_suspended_goes_on_when_enforcement_is_taken_away(fast_host):
    host = fast_host
    tenant = suspended_without_daemon(host)
    subprocess.run(host.daemon_command("--remove"), check=True, timeout=60)
    assert tenant.answer() == ["right"] and tenant.end() == 0
    host.start()


def test_who_has_what_is_shown(fast_host):
    host = fast_host
    tenant = host.run("--memory.low", "1G", name="t").started()
    stranger = host.spawn(device=1).started()
    assert tenant.alloc(300 * MIB) > 0 and stranger.alloc(200 * MIB) > 0
    shown = eventually(lambda: (p := {p["pid"]: p for p in host.json("ps")["processes"]
                                      if p["memory"] > 100 * MIB}) and len(p) == 2 and p, "both are listed")
    assert shown[tenant.pid()]["tenants"] == ["t"] and shown[tenant.pid()]["gpu"] == 0
    assert shown[stranger.pid()]["tenants"] == [] and shown[stranger.pid()]["gpu"] == 1
    assert "unowned" in host.cotenant("ps")
    samples = host.json("history", "t")["samples"]
    assert samples[-1]["pid"] == tenant.pid() and samples[-1]["memory"] == shown[tenant.pid()]["memory"]
    # A minute that is not over is written as the daemon ends.
    host.stop()
    host.start()
    minutes = host.json("history", "t")["minutes"]
    assert minutes[-1]["most"] == samples[-1]["memory"] and minutes[-1]["samples"] > 0
    with sqlite3.connect(host.dir / "state/history.db") as database:
        assert database.execute("SELECT max(most) FROM minutes WHERE tenant = 't'").fetchone()[0] == samples[-1]["memory"]
