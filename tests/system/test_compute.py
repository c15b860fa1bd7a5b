# SPDX-License-Identifier: Apache-2.0
"""Shares of device time, in windows of two seconds, as the device itself tells them.

The whole table is bench/compute; here a handful, with room for a busy machine of two CPUs.
"""
import os
import signal
import time

import pytest
import shares

POINTS = 6
POINTS_BY_WEIGHT = 10
SETTLED = 2  # seconds until costs are learned
MEASURED = 3


def check(name, measured, wanted, tolerance):
    print(f"{name}: {measured[0]:.1f} to {measured[1]:.1f} %, wanted {wanted:.1f}")
    assert measured[0] >= wanted - tolerance and measured[1] <= wanted + tolerance, name


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
    time.sleep(SETTLED)
    measured, = shares.measure(host.env, [pid], MEASURED)
    stat = host.book("limited")["compute.stat"]
    shares.end(started)
    check(f"{how} {duration_ns} ns", measured, 30, POINTS)
    assert stat["usage_usec"] > 0 and stat["throttled_usec"] > 0
    assert host.events("throttled", "limited")


def test_two_hard_shares_of_30_and_70(host):
    one = shares.launch(host, "one", ["--compute.max", 30], duration_ns=200_000)
    two = shares.launch(host, "two", ["--compute.max", 70], duration_ns=5_000_000)
    time.sleep(SETTLED)
    measured = shares.measure(host.env, [one[1], two[1]], MEASURED)
    shares.end(one, two)
    check("30 %", measured[0], 30, POINTS)
    check("70 %", measured[1], 70, POINTS)


def test_weights_divide_a_busy_device(host):
    started = [shares.launch(host, f"weight-{weight}", ["--compute.weight", weight * 100],
                             duration_ns=1_000_000, sync=8)
               for weight in (1, 2, 4)]
    time.sleep(SETTLED + 1)
    measured = shares.measure(host.env, [pid for _, pid in started], MEASURED)
    shares.end(started[2])
    time.sleep(SETTLED)
    alone = shares.measure(host.env, [pid for _, pid in started[:2]], MEASURED)
    shares.end(*started[:2])
    for weight, (low, high) in zip((1, 2, 4), measured):
        check(f"weight {weight}", (low, high), weight * 100 / 7, POINTS_BY_WEIGHT)
    for weight, (low, high) in zip((1, 2), alone):
        check(f"weight {weight} after the heaviest", (low, high), weight * 100 / 3, POINTS_BY_WEIGHT)


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
    measured, = shares.measure(host.env, [pid], MEASURED)
    shares.end(started)
    check("limited under way", measured, 30, POINTS)


def test_a_share_without_a_daemon_and_after_its_restart(host):
    started = _, pid = shares.launch(host, "kept", ["--compute.max", 30], duration_ns=1_000_000)
    time.sleep(SETTLED)
    host.kill()
    without, = shares.measure(host.env, [pid], MEASURED)
    host.start()
    restarted, = shares.measure(host.env, [pid], MEASURED)
    before = host.book("kept")["compute.stat"]["usage_usec"]
    time.sleep(0.5)
    after = host.book("kept")["compute.stat"]["usage_usec"]
    shares.end(started)
    check("without a daemon", without, 30, POINTS)
    check("from its restart on", restarted, 30, POINTS)
    assert after > before > 1_000_000, "compute.stat goes on from where it was"


def test_processes_of_a_tenant_have_one_share(host):
    launchers = [f"{shares.LAUNCHER} kernel 1000000 132 4 60", f"exec {shares.LAUNCHER} kernel 200000 132 0 60"]
    tenant = host.add(["cotenant", "run", "--name", "both", "--compute.max", 30, "--", "sh", "-c",
                       " & ".join(launchers)])
    pids = [int(tenant.answer()[0]) for _ in launchers]
    time.sleep(SETTLED)
    found = shares.sample(host.env, MEASURED)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    tenant.process.wait(20)
    both = [one + two for one, two in zip(*(found[pid] for pid in pids))]
    check("two processes", shares.least_and_greatest(both), 30, POINTS)
    assert all(sum(found[pid]) for pid in pids)
