# SPDX-License-Identifier: Apache-2.0
"""Whose a process is where its user id does not say it, and users' and cgroups' processes that run already."""
import grp
import os
import pwd
import shutil
import signal
import sys

import pytest

from conftest import ALICE, BOB, GIB, MIB, OUT_OF_MEMORY, PATIENCE, TENANT, eventually, host_in_use

# Makes a user namespace as a user, with ids in it that are not his, and runs a command under one of them.
AS_SUB_UID = """
import ctypes, os, sys
user, inside = int(sys.argv[1]), int(sys.argv[2])
asks, hears = os.pipe(), os.pipe()
if child := os.fork():
    os.read(asks[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write(f"0 {user} 1\\n1 {user + 100000} 65535")
    os.write(hears[1], b"g")
    sys.exit(os.waitpid(child, 0)[1] >> 8)
os.setresgid(user, user, user)
os.setgroups([])
os.setresuid(user, user, user)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(asks[1], b"m")
os.read(hears[0], 1)
os.setresgid(inside, inside, inside)
os.setresuid(inside, inside, inside)
os.execv(sys.argv[3], sys.argv[3:])
"""


def spawn_as_sub_uid(host, user, inside):
    return host.add([sys.executable, "-c", AS_SUB_UID, user, inside, TENANT, 0])


def test_ids_in_a_namespace_are_their_makers(host):
    """A user has tens of thousands of them, as rootless containers do, and one limit."""
    host.cotenant("set", "--user", ALICE, "memory.max=1G", "--name", "t")
    first = spawn_as_sub_uid(host, ALICE, 5000).started()
    assert os.stat(f"/proc/{first.pid()}").st_uid == ALICE + 100000 + 4999
    assert first.alloc(700 * MIB) > 0
    assert host.book("t")["memory.current"] >= 764 * MIB
    other = spawn_as_sub_uid(host, ALICE, 6000).started()
    assert other.alloc(300 * MIB) == -OUT_OF_MEMORY
    assert host.spawn(user=ALICE).started().alloc(300 * MIB) == -OUT_OF_MEMORY
    # Somebody else's, with ids of the same numbers inside, are not concerned.
    assert spawn_as_sub_uid(host, BOB, 5000).started().alloc(2 * GIB) > 0
    refused = host.events("refused", "t")
    assert len(refused) == 2
    # Events are the user's, as well.
    seen = host.command("events", "--json", "--lines", "1000", user=ALICE).stdout
    assert seen.count('"refused"') == 2


def test_ids_in_a_namespace_fall_under_the_makers_template(host):
    host.cotenant("set", "--default", "memory.max=1G")
    first = spawn_as_sub_uid(host, ALICE, 5000).started()
    assert first.alloc(700 * MIB) > 0
    eventually(lambda: any(t["tenant"] == f"{ALICE}@everyone" and t["devices"][0]["memory.current"] >= 764 * MIB
                           for t in host.json("list")["tenants"]), "the maker is known, and charged")
    assert spawn_as_sub_uid(host, ALICE, 6000).started().alloc(300 * MIB) == -OUT_OF_MEMORY
    assert spawn_as_sub_uid(host, BOB, 5000).started().alloc(300 * MIB) > 0


def test_what_runs_in_a_namespace_already_is_adopted(host):
    tenant = spawn_as_sub_uid(host, ALICE, 5000).started()
    assert tenant.alloc(700 * MIB) > 0
    reply = host.json("adopt", "--user", ALICE, "--memory.max", "1G")
    assert [a["pid"] for a in reply["adopted"]] == [tenant.pid()]
    assert eventually(lambda: host.book(str(ALICE))["memory.current"] >= 764 * MIB, "it is charged")
    assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY


def test_adopt_a_user(host):
    """All that he has running, with what it had; what others have is theirs."""
    tenants = [host.spawn(user=ALICE).started() for _ in range(2)]
    other = host.spawn(user=BOB).started()
    assert all(tenant.alloc(400 * MIB) > 0 for tenant in [*tenants, other])
    reply = host.json("adopt", "--user", ALICE, "--name", "alice", "--memory.max", "1G")
    assert sorted(a["pid"] for a in reply["adopted"]) == sorted(tenant.pid() for tenant in tenants)
    assert all(a["bytes"] >= 464 * MIB for a in reply["adopted"])
    assert eventually(lambda: host.book("alice")["memory.current"] >= 928 * MIB, "what they had is charged")
    assert tenants[0].alloc(200 * MIB) == -OUT_OF_MEMORY and tenants[1].alloc(50 * MIB) > 0
    assert other.alloc(2 * GIB) > 0
    assert len(host.events("adopted")) == 2
    # Again changes the limits and charges nothing twice.
    reply = host.json("adopt", "--user", ALICE, "--memory.max", "2G")
    assert reply["tenant"]["tenant"] == "alice" and tenants[0].alloc(200 * MIB) > 0
    assert len(host.events("adopted")) == 2


def test_adopt_a_cgroup(host, cgroup):
    """With those below it, as a container's runtime may make them."""
    path, folder = cgroup
    below = folder / "below"
    below.mkdir()
    inside = [host.spawn(user=ALICE).started() for _ in range(2)]
    outside = host.spawn(user=ALICE).started()
    for where, tenant in zip((folder, below), inside):
        (where / "cgroup.procs").write_text(str(tenant.pid()))
    assert all(tenant.alloc(400 * MIB) > 0 for tenant in [*inside, outside])
    reply = host.json("adopt", "--cgroup", path, "--name", "box", "--memory.max", "1G")
    assert sorted(a["pid"] for a in reply["adopted"]) == sorted(tenant.pid() for tenant in inside)
    assert eventually(lambda: host.book("box")["memory.current"] >= 928 * MIB, "what they had is charged")
    assert inside[0].alloc(200 * MIB) == -OUT_OF_MEMORY and inside[1].alloc(50 * MIB) > 0
    assert outside.alloc(2 * GIB) > 0
    host.cotenant("release", "box")
    assert inside[0].alloc(GIB) > 0
    for tenant in inside:
        tenant.end()
    eventually(lambda: not (below / "cgroup.procs").read_text(), "it is empty")
    below.rmdir()


def test_who_becomes_another_user_takes_along_what_he_has(host):
    """A server of root's that begins with a device and then works for somebody: from the next call on all is the user's,
    beyond his limit, too."""
    host.cotenant("set", "--user", ALICE, "--name", "alice", "memory.max=1G")
    host.cotenant("set", "--user", BOB, "--name", "bob", "memory.max=2G")
    host.cotenant("set", "--user", "root", "--name", "root", "memory.max=6G")
    first, second = host.spawn().started(), host.spawn().started()
    assert first.alloc(1500 * MIB) > 0 and second.alloc(500 * MIB) > 0
    for tenant, user in (first, ALICE), (second, BOB):
        assert tenant.ask(f"user {user}") == ["0"]
    assert first.alloc(MIB) == -OUT_OF_MEMORY and second.alloc(500 * MIB) > 0
    assert 1564 * MIB <= host.book("alice")["memory.current"] < 1600 * MIB
    assert 1064 * MIB <= host.book("bob")["memory.current"] < 1100 * MIB
    assert host.book("root")["memory.current"] == 0
    # Nor is it anybody else's when the books are looked at by others.
    host.cotenant("release", "root")
    host.settled()
    assert host.book("alice")["memory.current"] >= 1564 * MIB and second.alloc(GIB) == -OUT_OF_MEMORY
    assert first.end() == second.end() == 0


def test_who_becomes_another_user_falls_under_his_template(host):
    host.cotenant("set", "--default", "memory.max=1G")
    tenant = host.spawn().started()
    assert tenant.alloc(500 * MIB) > 0 and tenant.ask(f"user {ALICE}") == ["0"]
    assert tenant.alloc(100 * MIB) > 0
    his = f"{ALICE}@everyone"
    eventually(lambda: any(t["tenant"] == his for t in host.json("list")["tenants"]), "he is known")
    assert tenant.alloc(500 * MIB) == -OUT_OF_MEMORY
    assert host.book(his)["memory.current"] >= 664 * MIB and host.book("everyone")["memory.current"] == 0


@pytest.fixture
def patient_host(machine):
    """A host whose calls wait for a daemon as long as a test lasts."""
    yield from host_in_use({}, "--failure-wait", "10m", knows_contexts=False)


def test_a_member_of_a_group_waits_for_the_daemon(patient_host):
    """Nobody else knows whose member he is; in the end the group's on-failure decides."""
    host = patient_host
    users = [pwd.getpwnam("nobody"), pwd.getpwnam("daemon")]
    for user in users:
        host.cotenant("set", "--group", grp.getgrgid(user.pw_gid).gr_name, "memory.max=1G")
    host.kill()
    first = host.spawn(user=users[0].pw_uid)
    host.start()
    assert first.started().alloc(2 * GIB) == -OUT_OF_MEMORY and first.info()[1] == GIB
    host.kill()
    host.options[-1] = "1s"
    host.start()
    host.kill()
    other = host.spawn(user=users[1].pw_uid)
    assert other.process.wait(PATIENCE) == -signal.SIGKILL
    host.start()
    event = host.told("killed")[0]
    assert "group" in event["text"] and event["size"] is None


@pytest.fixture
def mps_host(machine, tmp_path_factory):
    """A host whose MPS is programs of ours, in a folder that only root writes."""
    folder = tmp_path_factory.mktemp("mps")
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)
    for program, name in ((TENANT, "nvidia-cuda-mps-server"), (TENANT, "other-server"),
                          ("/bin/sh", "nvidia-cuda-mps-control"), ("/bin/sh", "other-control")):
        shutil.copy(program, folder / name)
    for host in host_in_use({}, "--mps-server", folder / "nvidia-cuda-mps-server"):
        yield host, folder


def by_control(host, control, program, *become):
    """A program of Alice's that this control daemon starts, and stays beside."""
    return host.add([*become, control, "-c", f"setpriv --reuid={ALICE} --clear-groups {program} 0; true"])


def test_trap_15_the_server_of_mps_is_nobodys(mps_host):
    """What clients ask for is seen in them; the server that has it for them is charged to no tenant of its user."""
    host, mps = mps_host
    control, server = mps / "nvidia-cuda-mps-control", mps / "nvidia-cuda-mps-server"
    as_alice = ["setpriv", f"--reuid={ALICE}", "--clear-groups"]
    real = by_control(host, control, server).started()
    # A mount in a namespace of one's own: any file of root's under the name, beside a control daemon.
    forged = f"""
        mkdir -p {host.dir}/gpu/m && mount -t tmpfs none {host.dir}/gpu/m && cd {host.dir}/gpu/m
        touch nvidia-cuda-mps-control nvidia-cuda-mps-server
        mount --bind /bin/sh nvidia-cuda-mps-control
        mount --bind {mps}/other-server nvidia-cuda-mps-server
        exec ./nvidia-cuda-mps-control -c "./nvidia-cuda-mps-server 0; true"
        """
    others = {
        "another program": by_control(host, control, mps / "other-server"),
        "by another control daemon": by_control(host, mps / "other-control", server),
        "by a control daemon of the user's": host.add([*as_alice, control, "-c", f"{server} 0; true"]),
        "by the user": host.add([*as_alice, server, 0]),
        "forged by mounts": host.add([*as_alice, "unshare", "-Ur", "-m", "sh", "-c", forged]),
        "the real one in a namespace": host.add([*as_alice, "unshare", "-Ur", control, "-c", f"{server} 0; true"]),
    }
    assert real.alloc(200 * MIB) > 0
    for what, tenant in others.items():
        assert tenant.started().alloc(200 * MIB) > 0, what
    host.cotenant("set", "--user", ALICE, "memory.max=4G", "--name", "t")
    eventually(lambda: host.book("t")["memory.current"] >= len(others) * 264 * MIB, "the others are adopted")
    charged = {process["pid"] for process in host.json("show", "t")["processes"]}
    assert charged == {tenant.pid() for tenant in others.values()}
    eventually(lambda: host.json("api", "devices.list")["devices"][0]["memory.unowned"] == 264 * MIB,
               "what it has is nobody's")
    # A client's calls are its own, as ever.
    client = host.spawn(user=ALICE).started()
    assert client.alloc(100 * MIB) > 0
    assert host.book("t")["memory.allocated"] >= 100 * MIB
