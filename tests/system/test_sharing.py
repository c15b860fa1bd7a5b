# SPDX-License-Identifier: Apache-2.0
"""Device memory that two tenants have: its maker pays, and who keeps it when the maker has ended."""
import pathlib
import sys

import pytest

from conftest import ALICE, COTENANT, GIB, MIB, OUT_OF_MEMORY, PATIENCE, Tenant, as_user, eventually, host_in_use

SHARING = pathlib.Path(__file__).with_name("sharing.py")
KINDS = ["address", "physical", "pool"]
SHARED = GIB
# What a tenant has that has next to nothing: a context.
LITTLE = 128 * MIB


@pytest.fixture
def patient(machine):
    """A host where a call that waits for the daemon's word waits longer than any test."""
    yield from host_in_use({}, "--failure-wait", "10m")


def sharer(host, name, limit, *options):
    return host.add([COTENANT, "run", "--name", name, "--memory.max", limit, *options, "--", sys.executable,
                     SHARING]).started()


def share(host, kind, *options):
    """Who makes memory of a kind, and who has opened it and may have only half as much."""
    maker = sharer(host, f"maker-{kind}", 2 * SHARED)
    code, *handle = maker.ask(f"make {kind} {SHARED}")
    assert code == "0"
    keeper = sharer(host, f"keeper-{kind}", SHARED // 2, *options)
    assert keeper.ask(f"keep {kind} {' '.join(handle)}") == ["0"]
    return maker, keeper


def charge(host, tenant):
    return host.book(tenant)["memory.current"]


def gate_looks(host):
    return next(int(line.split()[1]) for line in host.cotenant("metrics").splitlines()
                if line.startswith("cotenant_gate_looks_total "))


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
    event = host.told("inherited", f"keeper-{kind}")[-1]
    assert event["size"] >= SHARED and "another process has made" in event["text"]
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


def test_trap_8_what_the_device_has_is_charged_all_the_time(patient):
    """However its maker ends: to the device as a whole, and to the tenant around both of them, whose limit nobody can
    pass while it is found out who has what."""
    patient.cotenant("set", "--user", ALICE, "--name", "alice", f"memory.max={SHARED + 2 * LITTLE}")
    for n, end in enumerate((Tenant.end, Tenant.kill)):
        maker, keeper = (patient.add([*as_user(ALICE), sys.executable, SHARING]).started() for _ in range(2))
        code, *handle = maker.ask(f"make address {SHARED}")
        assert code == "0" and keeper.ask(f"keep address {' '.join(handle)}") == ["0"]
        patient.settled()
        end(maker)

        def is_over():
            assert patient.json("api", "devices.list")["devices"][0]["memory.charged"] >= SHARED
            assert charge(patient, "alice") >= SHARED
            assert keeper.ask(f"alloc {2 * LITTLE}") == [str(OUT_OF_MEMORY)]
            return patient.events("inherited")[n:]
        eventually(is_over, "it is told who keeps it")
        patient.settled()
        assert SHARED <= charge(patient, "alice") < SHARED + LITTLE
        assert keeper.ask("close") == ["0"] and keeper.end() == 0
        eventually(lambda: charge(patient, "alice") == 0, "nobody has anything")


def test_who_keeps_others_memory_has_not_gone_around_the_probes(host):
    """Under the second gate, which sees that he asks for more, and that he has more than his calls explain."""
    host.env["SOFTGPU_IOCTL"] = "/dev/null"
    maker, keeper = share(host, "address", "--gate", "--gate-device", "/dev/null")
    assert maker.end() == 0
    host.told("inherited", "keeper-address")
    # He is beyond his limit, and what he asks for is refused; by the driver itself he is told of to the gate.
    looks = gate_looks(host)
    assert keeper.ask("ask") == ["-1"]
    eventually(lambda: gate_looks(host) > looks, "the gate has seen it, and the books were looked at")
    assert keeper.ask("alloc 256") == [str(OUT_OF_MEMORY)]
    assert not host.events("unexplained") and keeper.end() == 0


def test_who_keeps_others_memory_is_not_excused_from_more(host):
    """The limit is a user's: the driver itself keeps limits of cgroups alone, and would refuse what is tried here."""
    host.env["SOFTGPU_IOCTL"] = "/dev/null"
    host.cotenant("set", "--user", ALICE, "--name", "alice", f"memory.max={SHARED + 2 * LITTLE}")
    maker = host.add([*as_user(ALICE), sys.executable, SHARING]).started()
    keeper = host.add([*as_user(ALICE), COTENANT, "run", "--name", "keeper", "--gate", "--gate-device", "/dev/null",
                       "--", sys.executable, SHARING]).started()
    code, *handle = maker.ask(f"make address {SHARED}")
    assert code == "0" and keeper.ask(f"keep address {' '.join(handle)}") == ["0"]
    assert maker.end() == 0
    host.told("inherited", "keeper")
    keeper.send(f"jump {SHARED}")
    assert keeper.process.wait(PATIENCE) == 128 + 9, "killed by on-failure"
    event = host.told("unexplained", "keeper")[-1]
    assert event["size"] >= 2 * SHARED and "killed" in event["text"] and "memory.max of alice" in event["text"]
