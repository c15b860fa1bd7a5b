# SPDX-License-Identifier: Apache-2.0
"""Device memory that two tenants have: its maker pays, and who keeps it when the maker has ended."""
import pathlib
import sys

import pytest

from conftest import COTENANT, GIB, MIB, OUT_OF_MEMORY, eventually, host_in_use

SHARING = pathlib.Path(__file__).with_name("sharing.py")
KINDS = ["address", "physical", "pool"]
SHARED = GIB
# What a tenant has that has next to nothing: a context.
LITTLE = 128 * MIB


@pytest.fixture
def patient(machine):
    """A host where a call that waits for the daemon's word waits longer than any test."""
    yield from host_in_use({}, "--failure-wait", "10m")


def sharer(host, name, limit):
    return host.add([COTENANT, "run", "--name", name, "--memory.max", limit, "--", sys.executable,
                     SHARING]).started()


def share(host, kind):
    """Who makes memory of a kind, and who has opened it and may have only half as much."""
    maker = sharer(host, f"maker-{kind}", 2 * SHARED)
    code, *handle = maker.ask(f"make {kind} {SHARED}")
    assert code == "0"
    keeper = sharer(host, f"keeper-{kind}", SHARED // 2)
    assert keeper.ask(f"keep {kind} {' '.join(handle)}") == ["0"]
    return maker, keeper


def charge(host, tenant):
    return host.book(tenant)["memory.current"]


def maker_pays_while_it_lives(host, kind):
    maker, keeper = share(host, kind)
    host.settled()
    assert SHARED <= charge(host, f"maker-{kind}") < SHARED + LITTLE
    assert charge(host, f"keeper-{kind}") < LITTLE
    # The device has it until nobody has it open any more.
    assert maker.ask("free") == ["0"]
    host.settled()
    assert charge(host, f"maker-{kind}") >= SHARED
    assert keeper.ask("alloc 256") == keeper.ask("close") == ["0"]
    eventually(lambda: charge(host, f"maker-{kind}") < LITTLE, "nobody has it any more")
    assert maker.end() == keeper.end() == 0


def keeper_pays_afterwards(host, kind):
    """Though it is more than he may have: then he gets nothing else."""
    maker, keeper = share(host, kind)
    assert maker.end() == 0
    eventually(lambda: charge(host, f"keeper-{kind}") >= SHARED, "who keeps it is charged")
    assert charge(host, f"keeper-{kind}") < SHARED + LITTLE
    assert keeper.ask("alloc 256") == [str(OUT_OF_MEMORY)]
    assert keeper.ask("close") == ["0"]
    eventually(lambda: charge(host, f"keeper-{kind}") < LITTLE, "he has let go of it")
    assert keeper.ask("alloc 256") == ["0"]
    assert keeper.end() == 0


def test_trap_8_the_maker_pays_while_it_lives(patient):
    for kind in KINDS:
        maker_pays_while_it_lives(patient, kind)


def test_trap_8_who_keeps_it_pays_when_the_maker_has_ended(patient):
    for kind in KINDS:
        keeper_pays_afterwards(patient, kind)
