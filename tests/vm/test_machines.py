# SPDX-License-Identifier: Apache-2.0
"""Virtual machines as tenants: two that share a device, each with its own limit."""
import pytest

from boot import machine as machine_command
from boot import make_initramfs
from conftest import LIBRARY, NVML, ROOT, module_of

system = module_of("system_conftest", ROOT / "tests/system/conftest.py")
# Limits count for every process of this machine; see there.
machine = system.machine

MIB, GIB = system.MIB, system.GIB
PIECE = 512 * MIB


@pytest.fixture
def host(machine):
    yield from system.host_in_use({"SOFTGPU_MEMORY": "16G"})


def said(total):
    """What the guest says of a limit; its context takes some of the last piece. NVML shows the limit too, and of all
    processes on the device the guest's own."""
    return rf"total {total}, {total // PIECE - 1} pieces\nNVML: total {total}, one process"


# The machines end before the host does, whose tenants they are: fixtures go in the other order than they came.
def test_two_machines_share_a_device(tmp_path, driver, host, guest, own_program):
    built, limit = driver("oldest"), own_program("limit")
    archive = make_initramfs(tmp_path, {"limit": [limit]}, {"LD_LIBRARY_PATH": str(LIBRARY.parent)}, 600,
                             modules=built.modules(), files=[LIBRARY, NVML])
    host.env["XDG_STATE_HOME"] = str(host.dir / "kept")
    limits = {"stud07": 4 * GIB, "stud08": 8 * GIB}
    machines = {name: guest([str(word) for word in [system.COTENANT, "vm", "run", "--name", name, "--memory.max", size,
                                                    "--", *machine_command(built.kernel, archive)]], env=host.env)
                for name, size in limits.items()}
    for name, size in limits.items():
        machines[name].wait_for(said(size))
    # What the one has to itself grows on the host, from its next call on; the other keeps what it had.
    host.cotenant("set", "stud07", f"memory.max={5 * GIB}")
    machines["stud07"].wait_for(said(5 * GIB))
    assert len(machines["stud08"].text.split(" pieces")) == 2
    listed = {vm["name"]: vm["running"] for vm in host.json("vm", "list")["machines"]}
    assert listed == {"stud07": True, "stud08": True}
    for vm in machines.values():
        vm.process.terminate()
    system.eventually(lambda: not host.json("list")["tenants"], "the machines are no tenants any more", 60)
