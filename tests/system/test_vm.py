# SPDX-License-Identifier: Apache-2.0
"""`cotenant vm run` and `vm list`, with a program in QEMU's place that plays QEMU and the guest."""
import pathlib
import subprocess

import pytest

from conftest import COTENANT, GIB, ROOT, eventually
from processes import is_listening, name_of

FRONT = ROOT / "build/src/forward/test-front"

# What QEMU is told of the device is all that this one looks at.
QEMU = f"""for word; do case $word in socket,id=cotenant,path=*) path=${{word##*path=}};; esac; done
case "$*" in *,size=512M,share=on*tag=cotenant,num-request-queues=2,*) exec {FRONT} "$path";; esac
echo "not so: $*"; exit 1"""


class Machine:
    """A machine by `cotenant vm run`, at the pause of the program that plays it."""

    def __init__(self, host, *options):
        self.process = subprocess.Popen([str(word) for word in
                                         [COTENANT, "vm", "run", *options, "--", "sh", "-c", QEMU, "qemu", "-m", "512"]],
                                        env=host.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while (line := self.process.stdout.readline()) != "paused\n":
            assert line and "NOT OK" not in line, line

    def end(self):
        out, _ = self.process.communicate("\n", timeout=60)
        assert "NOT OK" not in out
        return self.process.returncode


@pytest.fixture
def host(host):
    host.env["XDG_STATE_HOME"] = str(host.dir / "kept")
    return host


def machines(host):
    return {vm["name"]: vm for vm in host.json("vm", "list")["machines"]}


def test_a_machine_is_a_tenant_while_it_runs(host):
    machine = Machine(host, "--name", "stud07", "--memory.max", "2G", "--compute.max", "10")
    assert host.book("stud07")["memory.max"] == 2 * GIB
    assert machines(host)["stud07"]["running"]
    worker = host.json("show", "stud07")["match"].removeprefix("cgroup:")
    names = {name_of(pid) for pid in processes_in(worker)}
    assert {"cotenant-vm", "cotenant-worker"} <= names and "test-front" not in names
    assert machine.end() == 0
    assert not host.json("list")["tenants"]
    assert not machines(host)["stud07"]["running"]


def processes_in(cgroup):
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    root = next(mount[1] for mount in mounts if mount[2] == "cgroup2")
    return pathlib.Path(f"{root}{cgroup}/cgroup.procs").read_text().split()


def test_limits_are_kept_by_the_name(host):
    machine = Machine(host, "--name", "stud07", "--memory.max", "2G", "--compute.max", "10")
    host.cotenant("set", "stud07", "memory.max=3G")
    assert machine.end() == 0
    kept = machines(host)["stud07"]["limits"]
    assert kept["memory.max"] == "3G" and kept["compute.max"].startswith("10")
    machine = Machine(host, "--name", "stud07", "--compute.max", "20")
    book = host.book("stud07")
    assert book["memory.max"] == 3 * GIB and book["compute.max"] == 20
    assert machine.end() == 0


def test_a_name_runs_once(host):
    """Until it has ended; at once then, and as it was: what was refused is not kept."""
    machine = Machine(host, "--name", "stud07", "--memory.max", "2G")
    kept = host.dir / "kept/cotenant/vm/stud07.json"
    before = kept.read_text()
    refused = host.refused("vm", "run", "--name", "stud07", "--memory.max", "3G", "--", "true")
    assert "there is a tenant 'stud07' already" in refused and kept.read_text() == before
    assert machine.end() == 0
    host.refused("vm", "run", "--name", "stud07", "--memory.max", "much", "--", "true")
    machine = Machine(host, "--name", "stud07")
    assert host.book("stud07")["memory.max"] == 2 * GIB
    assert machine.end() == 0


def test_somebody_else_may_start_qemu(host):
    """As libvirt does: the broker listens, and serves one QEMU after the other."""
    path = host.dir / "stud07"
    process = subprocess.Popen([COTENANT, "vm", "run", "--name", "stud07", "--memory.max", "1G", "--listen", path],
                               env=host.env)
    eventually(lambda: is_listening(path), "it listens")
    for _ in range(2):
        done = subprocess.run([FRONT, path], input="\n", text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stdout
    process.terminate()
    process.wait(60)
    assert not path.exists()
