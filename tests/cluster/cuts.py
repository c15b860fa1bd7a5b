# SPDX-License-Identifier: Apache-2.0
"""
Cuts nodes off at random, one or two at once, for as long as chance has it: COTENANT_CUTS of them (20), by
COTENANT_SEED. Run by bench/run soak, as each takes some ten seconds, most of which is waiting: so clusters of
several seeds may run at a time, and any other test beside them.
"""
import os
import random
import re
import time

import pytest

from conftest import at_rest, require_slurm
from networked import Networked, Service
from system_conftest import eventually
from test_unreachable import hearing  # noqa: F401

CUTS = int(os.environ.get("COTENANT_CUTS", "20"))
SEED = int(os.environ.get("COTENANT_SEED", "1"))


class Seeded(Networked):
    """Slurm's cgroups go by the names of nodes. A limit of another test counts for who uses a device: here none does."""

    names = [f"s{SEED}n{i}" for i in (1, 2, 3)]


@pytest.fixture(scope="module")
def seeded():
    require_slurm()
    with Seeded() as cluster:
        yield cluster


@pytest.fixture
def networked(seeded):
    yield from at_rest(seeded)


def plan(chance, nodes, timeout):
    """
    [(when, what, node)] of one round, in order. A cut lasts less than a lease, up to Slurm's timeout, or beyond it; in
    every other one, whoever holds the lease is killed at some moment, and started anew.
    """
    events = []
    for node in chance.sample(nodes, chance.choice((1, 1, 2))):
        begin = chance.uniform(0, timeout / 3)
        low, high = chance.choice(((0, 1 / 3), (1 / 3, 1), (1, 2)))
        end = begin + chance.uniform(low, high) * timeout
        events += [(begin, "cut", node), (end, "mend", node)]
        if chance.random() < 0.5:
            events.append((chance.uniform(begin, end), "restart", node))
    return sorted(events)


def carry_out(hearing, events):  # noqa: F811
    deeds = {"cut": hearing.cluster.network.cut, "mend": hearing.cluster.network.mend, "restart": hearing.restart_node}
    begin = time.monotonic()
    for when, what, node in events:
        time.sleep(max(0, begin + when - time.monotonic()))
        deeds[what](node)


def comes_back(cluster, node):
    """
    Waits until Slurm uses it again; whether somebody had to resume it.

    A job that Slurm starts again on the very node that it has lost, as that is back just then, may meet the end of its
    former run there, which is still being told of. slurmd starts no second copy, and Slurm drains the node.
    """
    drained = False

    def is_back():
        nonlocal drained
        shown = cluster.run("scontrol", "show", "node", node).stdout
        if "Reason=Duplicate jobid" in shown:
            drained = True
            cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
        return re.search(r"State=(IDLE|MIXED)\s", shown)

    eventually(is_back, f"{node} is back", 300)
    return drained


def tell(services, n_cuts, n_drained, events):
    said = ", ".join(f"{what} {node} at {when:.1f}" for when, what, node in events)
    gaps = [gap for service in services for gap in service.gaps()] or [0]
    print(f"{n_cuts} cuts, {n_drained} nodes drained by Slurm: {said}; {sum(len(s.runs()) for s in services)} copies of {len(services)} instances, "
          f"{sum(s.overlap() for s in services):.2f} s of two at once, "
          f"{min(gaps):.1f} to {max(gaps):.1f} s between one and the next", flush=True)


def test_no_two_copies_run_at_once(networked, hearing):  # noqa: F811
    chance = random.Random(SEED)
    services = [Service(hearing, name, "--placement=spread") for name in ("a", "b", "c", "d", "e", "f")]
    n_cuts = n_drained = 0
    while n_cuts < CUTS:
        for service in services:
            service.beats()
        events = plan(chance, networked.names, networked.slurmd_timeout)
        carry_out(hearing, events)
        n_drained += sum(comes_back(networked, node) for node in networked.names)
        n_cuts += sum(what == "cut" for _, what, _ in events)
        tell(services, n_cuts, n_drained, events)
        assert not any(service.overlap() for service in services), [service.runs() for service in services]


def test_a_slurmctld_that_is_gone_for_longer_than_a_lease_ends_nothing(networked, hearing):  # noqa: F811
    """Also where who asks it is started anew meanwhile, and cannot be told any more where it was."""
    service = Service(hearing, "web")
    first = service.goes_on()
    # What it began in the last five seconds Slurm may forget, and then ends.
    time.sleep(6)
    networked.kill("slurmctld")
    hearing.restart_node(first[0])
    time.sleep(networked.slurmd_timeout)
    service.beats()
    networked.start_controller()
    for node in networked.names:
        networked.is_heard(node)
    time.sleep(networked.slurmd_timeout)
    service.beats()
    assert service.runs().keys() == {first}, service.runs()
