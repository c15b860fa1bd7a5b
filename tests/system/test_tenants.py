# SPDX-License-Identifier: Apache-2.0
"""Programs on the software GPU as tenants: limits hold, whoever does what."""
import grp
import operator
import os
import pwd
import re
import signal
import subprocess
import time

import pytest
from conftest import (ALICE, BOB, COTENANT, COTENANTD, GIB, MIB, OUT_OF_MEMORY, PATIENCE, TENANT, as_user, eventually,
                      kill_if_there)

# Until the answers of those who work on while their daemon is killed and comes back, several times.
LOADED = 4 * PATIENCE


def test_refused_at_its_quota_while_a_neighbour_goes_on(host):
    small = host.run("--memory.max", "512M", name="small").started()
    large = host.run("--memory.max", "4G", name="large").started()
    assert small.alloc(256 * MIB) > 0
    assert large.alloc(2 * GIB) > 0
    large.send(f"loop 3000 {64 * MIB}")
    assert small.alloc(256 * MIB) == -OUT_OF_MEMORY
    assert small.ask(f"loop 20 {400 * MIB}") == ["20", "0"]
    assert large.answer() == ["0", "0"]
    assert small.ask("check") == large.ask("check") == ["right"]
    assert host.book("small")["refused"] == 21
    assert host.book("large")["refused"] == 0
    refusal = host.told("refused", "small")[0]
    assert refusal["call"] == "cuMemAlloc_v2" and refusal["size"] == 256 * MIB
    assert "memory.max" in host.cotenant("explain", refusal["id"])


def test_a_tenant_is_shown_its_own_totals_to_the_byte(host):
    tenant = host.run("--memory.max", "1G", name="t").started()
    free, total = tenant.info()
    assert total == GIB and 0 < free < GIB
    assert tenant.ask("total") == ["0", str(GIB)]
    # Settled books do not change under us once the context is known.
    host.settled()
    free = tenant.info()[0]
    assert tenant.alloc(free + 1) == -OUT_OF_MEMORY
    assert tenant.ask("nvml 1") == tenant.ask("nvml 2") == ["0", str(free), str(GIB)]
    assert tenant.alloc(free) > 0
    assert tenant.info()[0] == 0
    assert tenant.ask("nvml 1") == tenant.ask("nvml 2") == ["0", "0", str(GIB)]


def test_known_allocations_give_known_numbers(host):
    tenant = host.run("--memory.max", "4G", name="t").started()
    for _ in range(23):
        assert tenant.alloc(1048583) > 0
    assert host.book("t")["memory.allocated"] == 24117409
    host.settled()
    book = host.book("t")
    assert book["memory.overhead"] > 0
    assert book["memory.current"] == book["memory.allocated"] + book["memory.overhead"]
    listed = host.json("list")["tenants"][0]["devices"][0]
    assert listed["memory.allocated"] == 24117409
    metrics = host.cotenant("metrics")
    current = re.search(r'cotenant_tenant_memory_current_bytes\{tenant="t",gpu="0",UUID="(.*)"\} (\d+)', metrics)
    assert current[1] == book["UUID"] and int(current[2]) == host.book("t")["memory.current"]


def test_held_until_memory_is_freed(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G", "memory.wait=max")
    first = host.spawn(user=ALICE).started()
    second = host.spawn(user=ALICE).started()
    address = first.alloc(700 * MIB)
    assert address > 0
    second.send(f"alloc {500 * MIB}")
    waiting = host.waiting(ALICE)
    assert not second.has_answered(0.5)
    assert [call["size"] for call in waiting] == [500 * MIB] and str(ALICE) in waiting[0]["for"]
    assert f"1 for memory.max of {ALICE}" in host.cotenant("list")
    assert host.told("insufficient", str(ALICE))[0]["left"] < 500 * MIB
    assert first.ask(f"free {address}") == ["0"]
    assert second.answer()[0] == "0"
    host.told("admitted", str(ALICE))


def test_a_borrower_gives_back_to_whom_it_is_guaranteed(small_host):
    host = small_host
    borrower = host.run("--memory.low", "1G", name="borrower").started()
    owner = host.run("--memory.low", "2G", "--memory.wait", "max", name="owner").started()
    assert borrower.info()[1] == owner.info()[1] == 4 * GIB
    address = borrower.alloc(5 * GIB // 2)
    assert address > 0
    owner.send(f"alloc {3 * GIB // 2}")
    waiting = host.waiting("owner")
    assert [call["size"] for call in waiting] == [3 * GIB // 2] and not owner.has_answered(0.5)
    assert host.book("borrower")["refused"] == host.book("owner")["refused"] == 0
    assert borrower.ask(f"free {address}") == ["0"]
    assert owner.answer()[0] == "0"
    host.told("admitted", "owner")
    assert borrower.ask("check") == owner.ask("check") == ["right"]


def test_held_for_its_time_and_then_answered(host):
    tenant = host.run("--memory.max", "512M", "--memory.wait", "1s", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    begun = time.monotonic()
    assert tenant.alloc(200 * MIB) == -OUT_OF_MEMORY
    assert time.monotonic() - begun >= 1
    # What could never fit is not held at all.
    host.cotenant("set", "t", "memory.wait=max")
    assert tenant.alloc(600 * MIB) == -OUT_OF_MEMORY


def test_limits_change_under_way(host):
    tenant = host.run("--memory.max", "512M", "--memory.wait", "max", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    tenant.send(f"alloc {300 * MIB}")
    host.waiting("t")
    assert not tenant.has_answered(0.3)
    host.cotenant("set", "t", "memory.max=2G")
    assert tenant.answer()[0] == "0"
    host.cotenant("set", "t", "memory.max=256M", "memory.wait=0")
    assert tenant.alloc(MIB) == -OUT_OF_MEMORY
    host.cotenant("set", "t", "memory.max=")
    assert tenant.alloc(3 * GIB) > 0 and tenant.info()[1] == 8 * GIB


def test_a_held_tenant_can_be_killed(host):
    tenant = host.run("--memory.max", "512M", "--memory.wait", "max", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    tenant.send(f"alloc {200 * MIB}")
    host.waiting("t")
    tenant.process.send_signal(signal.SIGTERM)
    assert tenant.process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_sigkill_of_the_daemon_under_load(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    loads = [host.spawn(user=ALICE).started() for _ in range(3)]
    keeper = host.spawn(user=ALICE).started()
    assert keeper.alloc(512 * MIB) > 0
    before = host.settled()
    assert host.book(str(ALICE))["memory.current"] == before == 4 * 64 * MIB + 512 * MIB
    for load in loads:
        load.send(f"loop 20000 {8 * MIB}")
    for _ in range(3):
        host.kill()
        time.sleep(0.2)
        host.start()
    for load in loads:
        assert load.answer(LOADED) == ["0", "0"]
    assert eventually(lambda: host.book(str(ALICE))["memory.current"] == before, "the books are as they were")
    assert keeper.alloc(GIB) == -OUT_OF_MEMORY
    assert keeper.ask("check") == ["right"]


def test_sigkill_of_the_daemon_amid_refusals(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    loads = [host.spawn(user=ALICE).started() for _ in range(3)]
    for load in loads:
        load.send(f"loop 10000 {2 * GIB}")
    for _ in range(4):
        host.kill()
        host.start()
    for load in loads:
        assert load.answer(LOADED) == ["10000", "0"]


def test_refusals_go_on_without_the_daemon(host):
    tenant = host.run("--memory.max", "512M", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    host.kill()
    assert tenant.alloc(MIB) > 0
    assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
    host.start()
    assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY


def test_a_refusal_waits_for_the_next_daemon(host):
    tenant = host.run("--memory.max", "512M", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    host.kill()
    host.kill_holder()
    assert tenant.alloc(MIB) > 0
    tenant.send(f"alloc {300 * MIB}")
    assert not tenant.has_answered(0.5)
    host.start()
    assert tenant.answer()[0] == str(OUT_OF_MEMORY)


def test_nested_limits_the_tightest_decides(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    inner = host.run("--memory.max", "4G", name="inner", user=ALICE).started()
    assert inner.info()[1] == GIB
    assert inner.alloc(512 * MIB) > 0
    assert inner.alloc(512 * MIB) == -OUT_OF_MEMORY
    other = host.run("--memory.max", "256M", name="other", user=ALICE).started()
    assert other.alloc(256 * MIB) == -OUT_OF_MEMORY and other.alloc(100 * MIB) > 0
    user, both = host.book(str(ALICE)), [host.book("inner"), host.book("other")]
    assert user["memory.allocated"] == sum(b["memory.allocated"] for b in both)


@pytest.mark.usefixtures("cgroup")
def test_nesting_is_no_way_out(host):
    """Each process is charged to eight tenants at most, and its user's must be one of them."""
    deepest = 6
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    runs = deepest * [COTENANT, "run", "--"]
    assert "one in the other" in host.refused("run", "--", *runs, "true", user=ALICE)
    tenant = host.add([*as_user(ALICE), *runs, TENANT]).started()
    assert tenant.info()[1] == GIB
    assert tenant.alloc(512 * MIB) > 0
    assert tenant.alloc(512 * MIB) == -OUT_OF_MEMORY
    # Those of the command that was refused are forgotten after it.
    eventually(lambda: len([t for t in host.json("list")["tenants"] if t["origin"] == "run"]) == deepest,
               "each run is a tenant")
    assert host.book(str(ALICE))["memory.allocated"] == 512 * MIB
    assert tenant.end() == 0


def test_a_nest_that_is_killed_leaves_no_cgroup(host, cgroup):
    _, folder = cgroup
    host.add(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', folder,
              *3 * [COTENANT, "run", "--"], TENANT]).started()
    # Some are read before any is killed: the cgroups of the dead are removed.
    for pid in [pid for procs in list(folder.rglob("cgroup.procs")) for pid in procs.read_text().split()]:
        kill_if_there(int(pid))
    eventually(lambda: not [path for path in folder.iterdir() if path.is_dir()], "no cgroup is left")


def test_a_cgroup_of_ones_own_is_no_way_out(host, cgroup):
    path, folder = cgroup
    host.cotenant("set", "--cgroup", path, "memory.max=512M", "--name", "box")
    inner = folder / "inner"
    inner.mkdir()
    tenant = host.spawn(user=BOB).started()
    (inner / "cgroup.procs").write_text(str(tenant.pid()))
    assert tenant.alloc(600 * MIB) == -OUT_OF_MEMORY
    assert tenant.alloc(256 * MIB) > 0
    assert host.book("box")["memory.allocated"] == 256 * MIB
    tenant.end()
    eventually(lambda: host.book("box")["memory.current"] == 0, "the charge ends with the process")
    inner.rmdir()


def test_names_that_are_no_text(host, cgroup):
    """A program and its cgroup are called so that it is neither shown nor found by whoever takes names for text."""
    _, folder = cgroup
    name = os.fsdecode(b"\xff\x1b[31m (deleted)")
    inner = folder / name
    inner.mkdir()
    (host.dir / name).symlink_to(TENANT)
    host.cotenant("set", "--user", ALICE, "memory.max=512M")
    tenant = host.add(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', inner, *as_user(ALICE),
                       host.dir / name, "0"]).started()
    assert tenant.alloc(256 * MIB) > 0 and tenant.alloc(GIB) == -OUT_OF_MEMORY
    shown = eventually(lambda: [p for p in host.json("ps")["processes"] if p["pid"] == tenant.pid()], "it is listed")
    assert shown[0]["command"] == "??[31m (deleted" and shown[0]["cgroup"] == f"/{folder.name}/??[31m (deleted)"
    assert [p["command"] for p in host.json("show", str(ALICE))["processes"]] == ["??[31m (deleted"]
    assert tenant.end() == 0
    eventually(lambda: "populated 0" in (inner / "cgroup.events").read_text(), "the cgroup is empty")
    inner.rmdir()


def test_limits_before_anybody_is_there(host, cgroup):
    path, folder = cgroup
    later = folder / "later"
    host.cotenant("set", "--cgroup", f"{path}/later", "memory.max=512M", "--name", "box")
    assert "cgroup" in host.json("show", "box")["problem"]
    # Twice: what is made anew under the same path is another cgroup to the kernel.
    for _ in range(2):
        later.mkdir()
        eventually(lambda: host.json("show", "box")["problem"] is None, "the cgroup is found")
        tenant = host.spawn().started()
        (later / "cgroup.procs").write_text(str(tenant.pid()))
        assert tenant.alloc(600 * MIB) == -OUT_OF_MEMORY and tenant.alloc(256 * MIB) > 0
        tenant.end()
        eventually(lambda: "populated 0" in (later / "cgroup.events").read_text(), "the cgroup is empty")
        later.rmdir()
        eventually(lambda: host.json("show", "box")["problem"], "that it is gone is told")


def test_a_member_of_a_group_is_limited_from_his_first_call(host):
    nobody = pwd.getpwnam("nobody")
    group = grp.getgrgid(nobody.pw_gid).gr_name
    host.cotenant("set", "--group", group, "memory.max=1G")
    tenant = host.spawn(user=nobody.pw_uid).started()
    assert tenant.alloc(2 * GIB) == -OUT_OF_MEMORY
    assert tenant.info()[1] == GIB
    other = host.spawn(user=ALICE).started()
    assert other.alloc(2 * GIB) > 0


def test_every_user_by_himself(host):
    host.cotenant("set", "--default", "memory.max=512M")
    alice, bob = host.spawn(user=ALICE).started(), host.spawn(user=BOB).started()
    # Until the daemon has met them they share the default's limits.
    own = {f"{ALICE}@everyone", f"{BOB}@everyone"}
    eventually(lambda: own <= {t["tenant"] for t in host.json("list")["tenants"]}, "each is a tenant")
    for tenant in (alice, bob):
        assert tenant.info()[1] == 512 * MIB
        assert tenant.alloc(300 * MIB) > 0
        assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
    assert host.book(f"{ALICE}@everyone")["memory.allocated"] == 300 * MIB
    assert host.book(f"{BOB}@everyone")["memory.allocated"] == 300 * MIB
    host.cotenant("set", "--user", BOB, "memory.max=2G")
    assert bob.alloc(GIB) > 0 and alice.alloc(GIB) == -OUT_OF_MEMORY


def test_users_see_and_change_what_is_theirs(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    host.cotenant("set", "--user", BOB, "memory.max=1G")
    assert [t["tenant"] for t in host.json("list", user=ALICE)["tenants"]] == [str(ALICE)]
    host.cotenant("set", ALICE, "memory.max=512M", user=ALICE)
    tenant = host.spawn(user=ALICE).started()
    assert tenant.info()[1] == 512 * MIB
    assert "only root" in host.refused("set", ALICE, "memory.max=2G", user=ALICE)
    assert "no tenant" in host.refused("set", BOB, "memory.max=1M", user=ALICE)
    assert "only root" in host.refused("set", "--user", "root", "memory.max=1M", user=ALICE)
    assert "guarantee" in host.refused("run", "--memory.low", "1G", "--", "true", user=ALICE)
    assert not host.events("tenant-changed", str(BOB))
    host.cotenant("set", ALICE, "memory.max=", user=ALICE)
    assert tenant.info()[1] == GIB


def test_devices_that_are_not_named(host):
    here = host.run("--gpu", "1", "--memory.max", "1G", name="here", device=1).started()
    assert here.alloc(512 * MIB) > 0
    # Not even a context fits where memory.max is 0.
    elsewhere = host.run("--gpu", "1", name="elsewhere", device=0)
    assert elsewhere.answer() == [str(OUT_OF_MEMORY)]


def test_a_context_is_reserved_before_it_is_made(large_context_host):
    """What it costs is known from the first one on, also to the next daemon."""
    host = large_context_host
    host.cotenant("set", "--user", ALICE, "memory.max=400M", "--name", "t")
    for _ in range(2):
        first = host.spawn(user=ALICE).started()
        assert host.spawn(user=ALICE).answer() == [str(OUT_OF_MEMORY)]
        assert host.book("t")["memory.peak"] <= 400 * MIB
        assert first.alloc(90 * MIB) > 0 and first.alloc(20 * MIB) == -OUT_OF_MEMORY
        first.end()
        host.kill()
        host.start()


class Pools:
    """A tenant alone on the device: after each step it is charged for no less than the device says."""

    def __init__(self, host, limit):
        self.host = host
        self.tenant = host.run("--memory.max", limit, name="t").started()
        self.before = self.settled()

    def device(self):
        device = self.host.json("api", "devices.list")["devices"][0]
        return device["memory.used"], device["memory.charged"]

    def check(self):
        used, charged = self.device()
        assert charged >= used > 0
        return used == charged and used

    def settled(self):
        return eventually(self.check, "the books are what the device says")

    def ask(self, line):
        code, *values = map(int, self.tenant.ask(line))
        self.check()
        return values[0] if code == 0 and values else -code

    def reuse(self, address, stream):
        """Frees it and takes as much again. Where the stream has not come to the free the device takes more, which
        the next round of settling charges."""
        assert self.ask(f"pool-free {address} {stream}") == 0
        code, address = map(int, self.tenant.ask(f"pool-alloc {100 * MIB} {stream}"))
        assert code == 0 and address > 0
        eventually(lambda: operator.le(*self.device()), "what the device has is charged")
        return address

    def kept(self):
        """Bytes that the device has since the beginning, when the books say the same."""
        return self.settled() - self.before


def test_trap_11_what_pools_keep_is_charged(host):
    pools = Pools(host, "2G")
    addresses = [pools.ask(f"pool-alloc {100 * MIB} {stream}") for stream in (1, 1, 2)]
    assert min(addresses) > 0 and pools.kept() == 300 * MIB
    assert pools.ask("block 1") == 0
    # Freed, but the stream has not come so far: the device has it all, and others get other memory.
    assert pools.ask(f"pool-free {addresses[0]} 1") == 0
    assert pools.ask(f"pool-alloc {100 * MIB} 2") > 0
    assert pools.kept() == 400 * MIB
    assert pools.ask("pool-trim 0") == 0
    assert pools.kept() == 400 * MIB
    assert pools.ask("unblock") == 0
    assert pools.kept() == 300 * MIB
    # Kept until the next synchronisation, and used again.
    for _ in range(50):
        addresses[1] = pools.reuse(addresses[1], 1)
    assert pools.ask(f"pool-free {addresses[1]} 1") == pools.ask(f"pool-free {addresses[2]} 2") == 0
    assert pools.ask("unblock") == 0
    assert pools.kept() == 100 * MIB


def test_trap_11_what_a_pool_has_given_back_refuses_nobody(host):
    pools = Pools(host, "1G")
    rounds, first = 20, 0
    for _ in range(rounds):
        address = pools.ask(f"pool-alloc {800 * MIB} 1")
        assert address > 0
        assert pools.ask(f"pool-free {address} 1") == pools.ask("unblock") == 0
        address = pools.ask(f"alloc {800 * MIB}")
        first += address > 0
        # A call waits for that no longer than a second.
        if address < 0:
            address = eventually(lambda: max(pools.ask(f"alloc {800 * MIB}"), 0), "the device has it back")
        assert pools.ask(f"pool-alloc {800 * MIB} 1") == -OUT_OF_MEMORY
        assert pools.ask(f"free {address}") == 0
    assert first > rounds / 2, "the device is asked before a call is refused"


def test_trap_22_who_never_pauses_is_charged_what_the_device_says(host):
    """Small pieces share a block of the device; the books are settled while one call comes after the other."""
    tenant = host.run("--memory.max", "1G", name="t").started()
    pid = tenant.pid()
    for line in [f"alloc {500 * 1024}"] * 4 + ["loop 1000000000 16"]:
        tenant.send(line)
    try:
        assert [tenant.answer()[0] for _ in range(4)] == ["0"] * 4
        # The context and a block, 66, but for what calls move while the device is asked; the pieces beside them would
        # be nearly two more.
        eventually(lambda: 65 * MIB <= host.book("t")["memory.current"] < 67 * MIB, "settled while it is at work")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_descriptor_that_changes_under_the_check_is_charged_in_the_end(host):
    tenant = host.run("--memory.max", "2G", name="t").started()
    assert tenant.ask("race 60") == ["0"]

    def used_and_charged():
        device = host.json("api", "devices.list")["devices"][0]
        return device["memory.charged"] >= device["memory.used"] > 0

    # 60 arrays of 4 KiB or 16 MiB each, whatever it was when the driver looked.
    eventually(used_and_charged, "it is charged for what it has")


def test_first_contexts_of_a_new_driver_stay_within_the_limit(new_driver_host):
    host = new_driver_host
    # No cgroup of their own: the driver itself keeps no limit here.
    host.cotenant("set", "--user", ALICE, "--name", "t", "memory.max=1G")
    tenants = [host.spawn(user=ALICE) for _ in range(5)]
    codes = [int(tenant.answer(60)[0]) for tenant in tenants]
    assert set(codes) == {0, OUT_OF_MEMORY} and 1 <= codes.count(0) <= 3
    assert host.json("api", "devices.list")["devices"][0]["memory.used"] <= GIB


def test_adopt_what_runs_already(host):
    tenant = host.spawn(user=BOB).started()
    assert tenant.alloc(700 * MIB) > 0
    assert "no tenant matches it" in host.command("doctor").stdout
    reply = host.json("adopt", "--pid", tenant.pid(), "--name", "found", "--memory.max", "1G")
    assert reply["adopted"][0]["bytes"] >= 700 * MIB
    assert eventually(lambda: host.book("found")["memory.current"] >= 764 * MIB, "what it had is charged")
    assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
    assert tenant.alloc(100 * MIB) > 0
    host.cotenant("release", "found")
    assert tenant.alloc(GIB) > 0


def test_what_the_dead_had_is_free(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    for _ in range(10):
        tenant = host.spawn(user=ALICE).started()
        assert tenant.alloc(900 * MIB) > 0
        os.kill(tenant.process.pid, signal.SIGKILL)
        tenant.process.wait()
        eventually(lambda: host.book(str(ALICE))["memory.current"] == 0, "the charge ends with the process")
    eventually(lambda: host.json("show", ALICE)["n_processes"] == 0, "the process is forgotten")


def test_a_child_stays_in_the_tenant(host):
    tenant = host.add([*map(str, ["build/bin/cotenant", "run", "--name", "t", "--memory.max", "512M", "--",
                                   "build/tests/system/tenant", "--later"])])
    tenant.send("fork")
    assert tenant.answer() == ["0"]
    tenant.started()
    assert tenant.alloc(600 * MIB) == -OUT_OF_MEMORY and tenant.alloc(256 * MIB) > 0


def test_a_bad_file_is_refused_and_the_rest_applies(host):
    folder = host.dir / "conf/tenants.d"
    (folder / "a.ini").write_text(f"[alice]\nmatch = user:{ALICE}\nmemory.max = 1G\n")
    (folder / "b.ini").write_text(f"[bob]\nmatch = user:{BOB}\nmemory.max = lots\n")
    refused = host.json("api", "daemon.reload")["refused"]
    assert [(f["file"], f["line"]) for f in refused] == [(str(folder / "b.ini"), 3)] and "lots" in refused[0]["reason"]
    assert host.spawn(user=ALICE).started().info()[1] == GIB
    assert "b.ini:3" in host.command("doctor").stdout and "b.ini:3" in host.log()
    (folder / "b.ini").write_text(f"[bob]\nmatch = user:{BOB}\nmemory.max = 2G\n")
    eventually(lambda: len(host.json("list")["tenants"]) == 2, "a file that is mended is read by itself")
    assert host.spawn(user=BOB).started().info()[1] == 2 * GIB


def test_two_daemons_side_by_side(host, second_host):
    one = host.run("--memory.max", "1G", name="t").started()
    other = second_host.run("--memory.max", "2G", name="t").started()
    assert one.info()[1] == GIB and other.info()[1] == 2 * GIB
    assert one.alloc(GIB) == other.alloc(2 * GIB) == -OUT_OF_MEMORY
    assert host.book("t")["refused"] == second_host.book("t")["refused"] == 1
    second_host.cotenant("release", "t")
    assert one.alloc(GIB) == -OUT_OF_MEMORY and other.alloc(2 * GIB) > 0


def test_a_second_daemon_leaves_the_first_alone(host):
    done = subprocess.run([str(w) for w in [COTENANTD, *host.options]], env=host.env, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 1 and "another cotenantd" in done.stderr
    assert "rung" in host.cotenant("version")
