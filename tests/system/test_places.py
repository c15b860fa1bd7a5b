# SPDX-License-Identifier: Apache-2.0
"""Which device a process means by a number: the environment says it to the driver, and nobody else knows for sure.

The tenants ask for no UUID (trap 13).
"""
import signal

import pytest

from conftest import ALICE, MIB, OUT_OF_MEMORY, TENANT, eventually, host_in_use

CONTEXT = 64 * MIB
LIMITS = ("--memory.max", "1G")


@pytest.fixture
def uneven_host(machine, tmp_path):
    """The second device is the faster one, and so the driver's first."""
    config = tmp_path / "softgpu.conf"
    config.write_text("[device 1]\nsms = 256\nname = Software GPU the faster\n")
    yield from host_in_use({"SOFTGPU_CONFIG": str(config), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def use(host, *command, env=None, options=LIMITS):
    """A tenant "t" that does not say more of its devices than its environment."""
    before, host.env = host.env, host.env | (env or {})
    tenant = host.add(["cotenant", "run", "--name", "t", *options, "--", TENANT, *command])
    host.env = before
    return tenant


def forgotten(host):
    eventually(lambda: not host.json("list")["tenants"], "the run is forgotten")


def check_charged(host, tenant, device):
    """What the tenant has is charged on this device, and nothing on the other."""
    assert tenant.alloc(100 * MIB) > 0
    assert host.book("t", device)["memory.allocated"] == 100 * MIB
    assert eventually(lambda: host.book("t", device)["memory.current"] == 100 * MIB + CONTEXT, "it is settled")
    assert host.book("t", 1 - device)["memory.current"] == 0
    assert not host.events("device-unknown")
    assert tenant.end() == 0
    forgotten(host)


def test_visible_devices(host):
    uuid = host.json("api", "devices.list")["devices"][1]["UUID"]
    for visible, number, device in [("0,1", 1, 1), ("1", 0, 1), ("1,0", 0, 1), ("1,0", 1, 0), (uuid, 0, 1)]:
        check_charged(host, use(host, number, env={"CUDA_VISIBLE_DEVICES": visible}).started(), device)
    # Nobody sees from outside what a program chooses itself.
    check_charged(host, use(host, "--visible", "1", 0).started(), 1)


def test_order(uneven_host):
    for order, device in [("FASTEST_FIRST", 1), ("PCI_BUS_ID", 0)]:
        check_charged(uneven_host, use(uneven_host, 0, env={"CUDA_DEVICE_ORDER": order}).started(), device)


def test_one_device_is_allowed(host):
    """With a limit of 0 on the other, what the environment says decides, until the devices tell."""
    options = ("--gpu", "1", *LIMITS)
    check_charged(host, use(host, 0, env={"CUDA_VISIBLE_DEVICES": "1"}, options=options).started(), 1)
    assert use(host, 0, env={"CUDA_VISIBLE_DEVICES": "0"}, options=options).answer() == [str(OUT_OF_MEMORY)]
    forgotten(host)
    # A user's limits, as those of a cgroup the driver may keep itself.
    host.cotenant("set", "--user", ALICE, "memory.max=1G", "memory.max@0=0", "--name", "t")
    host.env["CUDA_VISIBLE_DEVICES"] = "1"
    liar = host.add(["setpriv", f"--reuid={ALICE}", "--clear-groups", TENANT, "--visible", "0", 0])
    assert liar.process.wait(60) == -signal.SIGKILL
    event = eventually(lambda: host.events("elsewhere", "t"), "it is told")[0]
    assert event["gpu"] == host.json("api", "devices.list")["devices"][0]["UUID"]
