# SPDX-License-Identifier: Apache-2.0
"""
Guests that end while their programs use the device: panics, reboots, SIGKILLs of QEMU, GUEST_ENDS of each (20), at random
moments. Run by bench/run soak. A guest is not booted for each: one is saved before it has the device, and each of the
others goes on from there.
"""
import os
import random
import time

import pytest

from boot import machine, make_initramfs
from conftest import LIBRARY, SLOT, monitor, monitor_says, shell
from waiting import eventually

ENDS = int(os.environ.get("GUEST_ENDS", "20"))
# The letter for sysrq; nothing: QEMU is killed.
WAYS = {"panic": "c", "reboot": "b", "kill": ""}


class Saved:
    """A machine that has booted and waits for its device."""

    def __init__(self, folder, built, hold, broker, guest):
        commands = {"hold": shell("while [ -e /dev/cotenant0 ]; do sleep 0.02; done; echo @idle; "
                                  "until [ -e /dev/cotenant0 ]; do sleep 0.02; done; "
                                  f"{hold} & read what; echo $what >/proc/sysrq-trigger; wait")}
        archive = make_initramfs(folder, commands, {"LD_LIBRARY_PATH": str(LIBRARY.parent)}, 6000,
                                 modules=built.modules(), files=[LIBRARY, hold])
        self.guest, self.console, self.file = guest, folder / "monitor", folder / "saved"
        *others, option, self.device = broker.devices()
        self.device += ",id=gpu,bus=gpu-slot"
        self.command = machine(built.kernel, archive, devices=[
            *others, *SLOT, "-monitor", f"unix:{self.console},server=on,wait=off"])
        # Its place in the machine is set up while it is there.
        vm = guest([*self.command, option, self.device])
        vm.wait_for("@kernel")
        eventually(lambda: monitor_says(self.console, "info pci", 'id "gpu"'), "it has its device")
        monitor(self.console, "device_del gpu")
        vm.wait_for("@idle")
        eventually(lambda: not monitor_says(self.console, "info pci", 'id "gpu"'), "the device is gone")
        monitor(self.console, f"migrate exec:cat>{self.file}")
        eventually(lambda: monitor_says(self.console, "info migrate", "Migration status: completed"), "it is saved")
        vm.kill()

    def goes_on(self):
        vm = self.guest([*self.command, "-incoming", f"exec:cat {self.file}"])
        eventually(lambda: monitor_says(self.console, "info status", "VM status: running"), "it goes on")
        monitor(self.console, f"device_add {self.device}")
        return vm


@pytest.fixture
def saved(tmp_path, driver, broker, guest, own_program):
    one = broker("one")
    return one, Saved(tmp_path, driver("oldest"), own_program("hold"), one, guest)


def test_nothing_is_left_of_guests_that_end(saved):
    broker, machine = saved
    chance = random.Random(1)
    free, n = set(), dict.fromkeys(WAYS, 0)
    for i in range(ENDS * len(WAYS)):
        what = list(WAYS)[i % len(WAYS)]
        vm = machine.goes_on()
        free.add(vm.wait_for(r"ready: (\d+) of")[1])
        assert len(broker.workers()) == 1
        time.sleep(chance.uniform(0, 0.3))
        if WAYS[what]:
            vm.send(WAYS[what])
        else:
            vm.kill()
        eventually(lambda: not broker.workers() and not broker.mappers(), "worker and mapper are gone")
        vm.kill()
        n[what] += 1
        if what == "kill":
            print(", ".join(f"{count} of {way}" for way, count in n.items()), flush=True)
    # The device's memory is what it was each time.
    assert len(free) == 1
