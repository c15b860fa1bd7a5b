# SPDX-License-Identifier: Apache-2.0
"""Shares of device time, in windows of two seconds, as the device itself tells them.

The whole table is bench/compute; here a handful, with room for a machine of two CPUs, which may be busy with
other things as well.
"""
import os
import signal
import time

import pytest
import shares
from conftest import PATIENCE, eventually

POINTS = 6
POINTS_BY_WEIGHT = 10
SETTLED = 2  # seconds until costs are learned
SETTLED_MIXED = 7  # and those of kernels that begin to be launched alone after a second or two, for a second
MEASURED = 3


def check(host, wanted, tolerance=POINTS):
    """The share of each launcher, by process id, in any window from now on."""
    def is_good(found):
        measured = {pid: shares.least_and_greatest(found.get(pid, [])) for pid in wanted}
        for pid, (low, high) in measured.items():
            print(f"process {pid}: {low:.1f} to {high:.1f} %, wanted {wanted[pid]:.1f}")
        return all(wanted[pid] - tolerance <= low and high <= wanted[pid] + tolerance
                   for pid, (low, high) in measured.items())
    assert is_good(shares.sample_undisturbed(host.env, list(wanted), MEASURED, is_good))


@pytest.mark.parametrize("how, duration_ns, blocks, sync", [
    ("kernel", 200_000, 132, 0),
    ("kernel_ptsz", 5_000_000, 132, 1),
    ("graph", 5_000_000, 132, 1),
    ("ex", 200_000, 1_000_000, 4),
    ("cooperative", 20_000, 64, 0),
    ("mixed", 5_000_000, 132, 8),
])
def test_a_hard_share_holds_also_alone(host, how, duration_ns, blocks, sync):
    started = _, pid = shares.launch(host, "limited", ["--compute.max", 30], how, duration_ns, blocks, sync)
    time.sleep(SETTLED_MIXED if how == "mixed" else SETTLED)
    check(host, {pid: 30})
    stat = host.book("limited")["compute.stat"]
    shares.end(started)
    assert stat["usage_usec"] > 0 and stat["throttled_usec"] > 0
    host.told("throttled", "limited")


def test_two_hard_shares_of_30_and_70(host):
    one = shares.launch(host, "one", ["--compute.max", 30], duration_ns=200_000)
    two = shares.launch(host, "two", ["--compute.max", 70], duration_ns=5_000_000)
    time.sleep(SETTLED)
    check(host, {one[1]: 30, two[1]: 70})
    shares.end(one, two)


def test_weights_divide_a_busy_device(host):
    started = [shares.launch(host, f"weight-{weight}", ["--compute.weight", weight * 100],
                             duration_ns=1_000_000, sync=8)
               for weight in (1, 2, 4)]
    time.sleep(SETTLED + 1)
    one, two, four = (pid for _, pid in started)
    check(host, {one: 100 / 7, two: 200 / 7, four: 400 / 7}, POINTS_BY_WEIGHT)
    shares.end(started[2])
    time.sleep(SETTLED)
    check(host, {one: 100 / 3, two: 200 / 3}, POINTS_BY_WEIGHT)
    shares.end(*started[:2])


def test_nothing_is_probed_where_nothing_is_limited(host):
    started = shares.launch(host, "free", [])
    time.sleep(1)
    links = [link.name for link in (host.dir / "state/engine/links").iterdir()]
    shares.end(started)
    assert not [name for name in links if name.startswith("launch-")]


def test_a_limit_that_is_set_under_way(host):
    """What is queued by then runs, and nothing more is launched until it has."""
    started = _, pid = shares.launch(host, "late", [], duration_ns=1_000_000)
    time.sleep(0.5)
    host.cotenant("set", "late", "compute.max=30")
    time.sleep(SETTLED + 2)
    check(host, {pid: 30})
    shares.end(started)


def test_a_share_without_a_daemon_and_after_its_restart(host):
    started = _, pid = shares.launch(host, "kept", ["--compute.max", 30], duration_ns=1_000_000)
    time.sleep(SETTLED)
    host.kill()
    check(host, {pid: 30})
    host.start()
    check(host, {pid: 30})
    before = host.book("kept")["compute.stat"]["usage_usec"]
    assert before > 1_000_000, "compute.stat goes on from where it was"
    eventually(lambda: host.book("kept")["compute.stat"]["usage_usec"] > before, "it goes on from there")
    shares.end(started)


def test_processes_of_a_tenant_have_one_share(host):
    launchers = [f"{shares.LAUNCHER} kernel 1000000 132 4 120", f"exec {shares.LAUNCHER} kernel 200000 132 0 120"]
    tenant = host.add(["cotenant", "run", "--name", "both", "--compute.max", 30, "--", "sh", "-c",
                       " & ".join(launchers)])
    pids = [int(tenant.answer()[0]) for _ in launchers]
    time.sleep(SETTLED)

    def is_good(found):
        both = [one + two for one, two in zip(*(found.get(pid, []) for pid in pids))]
        low, high = shares.least_and_greatest(both)
        print(f"both: {low:.1f} to {high:.1f} %")
        return 30 - POINTS <= low and high <= 30 + POINTS and all(sum(found[pid]) for pid in pids)
    assert is_good(shares.sample_undisturbed(host.env, pids, MEASURED, is_good))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    tenant.process.wait(PATIENCE)
