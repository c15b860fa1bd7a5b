# SPDX-License-Identifier: Apache-2.0
"""What systemd does for the daemon and the daemon asks of systemd, where there need not be any."""
import contextlib
import errno
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import COTENANT, COTENANTD, MIB, OUT_OF_MEMORY, ROOT, TENANT, cgroup_root, eventually, host_in_use

UNIT = ROOT / "build/packaging/cotenantd.service"
FAKE = ROOT / "build/tests/system/fake-systemd"
SLICE = "user-64123.slice"


def test_the_unit_is_well_formed(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "cotenantd.service"
    unit.write_text(re.sub("(?m)^ExecStart=.*", f"ExecStart={COTENANTD}", UNIT.read_text()))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    about = [line for line in (done.stdout + done.stderr).splitlines() if "cotenantd" in line]
    assert done.returncode == 0 and not about, done.stderr


@pytest.fixture
def confined_host(machine):
    """A daemon with the capabilities that the unit leaves it, and no more."""
    names = re.search("(?m)^CapabilityBoundingSet=(.*)$", UNIT.read_text())[1].lower().replace("cap_", "").split()
    yield from host_in_use({}, become=["setpriv", "--no-new-privs", "--bounding-set",
                                       ",".join(["-all", *(f"+{name}" for name in names)])])


def test_the_capabilities_of_the_unit_suffice(confined_host):
    tenant = confined_host.run("--memory.max", "512M", "--compute.max", 50, name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
    assert tenant.info()[1] == 512 * MIB


def test_readiness_and_watchdog_are_told(host):
    host.stop()
    path = host.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(path))
        told.settimeout(60)
        host.env |= {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "1000000"}
        host.start()
        words = [told.recv(1000) for _ in range(4)]
        assert sorted(words) == [b"READY=1"] + 3 * [b"WATCHDOG=1"]
        host.daemon.send_signal(signal.SIGHUP)
        host.stop()
        last = told.recv(1000)
        while last == b"WATCHDOG=1":
            last = told.recv(1000)
        assert last == b"STOPPING=1"
    del host.env["NOTIFY_SOCKET"], host.env["WATCHDOG_USEC"]
    host.start()


@pytest.fixture
def booted_host(machine, tmp_path):
    """A host that systemd runs, as the daemon sees it; and what systemd was asked."""
    root = cgroup_root()
    if not root:
        pytest.skip("no cgroup v2")
    fake = subprocess.Popen([FAKE, tmp_path / "bus", root], stdout=subprocess.PIPE, text=True)
    assert fake.stdout.readline() == "listening\n"
    # Only a process in this mount namespace sees that the host was booted by systemd.
    space = subprocess.Popen(["unshare", "-m", "sh", "-c", "mkdir -p /run/systemd && mount -t tmpfs none /run/systemd "
                              "&& mkdir /run/systemd/system && echo ready && exec sleep infinity"],
                             stdout=subprocess.PIPE, text=True)
    assert space.stdout.readline() == "ready\n"
    try:
        for host in host_in_use({"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/bus"},
                                become=["nsenter", f"--mount=/proc/{space.pid}/ns/mnt", "--"]):
            host.systemd = fake.stdout
            yield host
    finally:
        for process in (space, fake):
            process.kill()
            process.wait()


@contextlib.contextmanager
def session():
    """A session of somebody who is not there, as a login makes it: its path and its folder."""
    with folders(f"/user.slice/{SLICE}", "session-1.scope") as found:
        yield found


@contextlib.contextmanager
def folders(around, name):
    """A cgroup of this name below another one, and what was missing of that: its path and its folder."""
    folder = cgroup_root() / around[1:] / name
    missing = [folder, *(path for path in folder.parents if not path.exists())]
    # An earlier run that was killed may have left it.
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield f"{around}/{name}", folder
    finally:
        eventually(lambda: is_removed(missing[-1]), "the cgroups are empty")


def is_removed(folder):
    """Whether a cgroup is gone with those below it, which the daemon may take away at the same time."""
    try:
        below = [is_removed(path) for path in folder.iterdir() if path.is_dir()]
        if all(below):
            folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        assert error.errno == errno.EBUSY
    return not folder.exists()


def run_in(host, folder, name, *limits):
    return host.add(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', folder, COTENANT, "run", "--name", name,
                     *limits, "--", TENANT]).started()


def cgroup_of(tenant):
    lines = pathlib.Path(f"/proc/{tenant.pid()}/cgroup").read_text().splitlines()
    return next(line[3:] for line in lines if line.startswith("0::"))


def test_a_run_gets_a_scope_in_its_slice(booted_host):
    with session() as (_, folder):
        tenant = run_in(booted_host, folder, "t", "--memory.max", "512M")
        unit, slice, pid = booted_host.systemd.readline().split()
        assert int(pid) == tenant.pid() and slice == SLICE and unit.endswith(".scope")
        assert cgroup_of(tenant) == f"/user.slice/{SLICE}/{unit}"
        assert tenant.alloc(600 * MIB) == -OUT_OF_MEMORY
        tenant.end()


def test_a_run_does_not_leave_a_session_that_has_limits(booted_host):
    with session() as (path, folder):
        booted_host.cotenant("set", "--cgroup", path, "memory.max=256M", "--name", "around")
        tenant = run_in(booted_host, folder, "inside", "--memory.max", "200M")
        assert cgroup_of(tenant).startswith(f"{path}/")
        assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
        assert booted_host.book("around")["memory.current"] > 0
        tenant.end()
        booted_host.cotenant("release", "around")


@pytest.mark.parametrize("around, name", [("/cotenanttest.slice/slurmstepd.scope/job_7", "step_0"),
                                          ("/cotenanttest.slice", "box.service")])
def test_a_run_does_not_leave_a_job_or_a_service(booted_host, around, name):
    with folders(around, name) as (path, folder):
        tenant = run_in(booted_host, folder, "inside", "--memory.max", "200M")
        assert cgroup_of(tenant).startswith(f"{path}/")
        assert tenant.alloc(300 * MIB) == -OUT_OF_MEMORY
        tenant.end()
