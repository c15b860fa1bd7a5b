# SPDX-License-Identifier: Apache-2.0
"""
Cuts nodes off at random, one or two at once, for as long as chance has it: COTENANT_CUTS of them (20), by
COTENANT_SEED. Run by bench/run soak, as each takes some ten seconds.
"""
import os
import random
import time

from networked import Service
from slurm import NODES
from test_unreachable import hearing  # noqa: F401

CUTS = int(os.environ.get("COTENANT_CUTS", "20"))
SEED = int(os.environ.get("COTENANT_SEED", "1"))


def plan(chance, timeout):
    """[(when, what, node)] of one round, in order: less than a lease, up to Slurm's timeout, or beyond it"""
    events = []
    for node in chance.sample(NODES, chance.choice((1, 1, 2))):
        begin = chance.uniform(0, timeout / 3)
        low, high = chance.choice(((0, 1 / 3), (1 / 3, 1), (1, 2)))
        events += [(begin, "cut", node), (begin + chance.uniform(low, high) * timeout, "mend", node)]
    return sorted(events)


def carry_out(network, events):
    begin = time.monotonic()
    for when, what, node in events:
        time.sleep(max(0, begin + when - time.monotonic()))
        getattr(network, what)(node)


def test_no_two_copies_run_at_once(networked, hearing):  # noqa: F811
    chance = random.Random(SEED)
    services = [Service(hearing, name, "--placement=spread") for name in ("a", "b", "c", "d")]
    n_cuts = 0
    while n_cuts < CUTS:
        for service in services:
            service.beats()
        events = plan(chance, networked.slurmd_timeout)
        carry_out(networked.network, events)
        for node in NODES:
            networked.is_heard(node)
        n_cuts += len(events) // 2
        said = ", ".join(f"{what} {node} at {when:.1f}" for when, what, node in events)
        print(f"{n_cuts} cuts: {said}; {sum(len(s.runs()) for s in services)} copies, "
              f"{sum(s.overlap() for s in services):.2f} s of two at once", flush=True)
        assert not any(service.overlap() for service in services), [service.runs() for service in services]
    print(f"{n_cuts} cuts, {sum(len(s.runs()) for s in services)} copies of {len(services)} instances, 0 s of two at once; "
          f"{min(gap for s in services for gap in s.gaps()):.1f} s at least between one and the next")


def test_a_slurmctld_that_is_gone_for_longer_than_a_lease_ends_nothing(networked, hearing):  # noqa: F811
    """Also where who asks it is started anew meanwhile, and cannot be told any more where it was."""
    service = Service(hearing, "web")
    first = service.goes_on()
    # What it began in the last five seconds Slurm may forget, and then ends.
    time.sleep(6)
    networked.kill("slurmctld")
    hearing.kill_node(first[0])
    hearing.start_node(first[0])
    time.sleep(networked.slurmd_timeout)
    service.beats()
    networked.start_controller()
    for node in NODES:
        networked.is_heard(node)
    time.sleep(networked.slurmd_timeout)
    service.beats()
    assert service.runs().keys() == {first}, service.runs()
