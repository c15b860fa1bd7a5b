# SPDX-License-Identifier: Apache-2.0
"""The guest's driver by itself: it is built without a warning, by DKMS too, and does nothing where there is no device."""
import pathlib
import subprocess

import pytest

from boot import boot
from conftest import ROOT, brought


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_driver_without_device(tmp_path, driver, which):
    built = driver(which)
    # Of the tools that the kernel wishes for, some are not there; that is no affair of the driver.
    ours = [line for line in built.said.splitlines() if ".c:" in line or ".h:" in line]
    assert not ours, built.said
    commands = {
        "loaded": ["grep", "-c", "^cotenant ", "/proc/modules"],
        "device": ["ls", "/dev/cotenant0"],
        "unloaded": ["rmmod", "cotenant"],
        "complaints": ["sh", "-c", "dmesg | grep -E 'BUG:|WARNING:|Oops'"],
    }
    results, console = boot(tmp_path, built.kernel, commands, modules=built.modules())
    assert "@end" in console, console[-3000:]
    assert results["loaded"] == (0, "1\n"), console[-3000:]
    assert results["device"][0] == 1
    assert results["unloaded"][0] == 0, console[-3000:]
    assert results["complaints"][0] == 1, results["complaints"]


class Dkms:
    """DKMS with all that it keeps in a folder of its own, for a kernel of the distribution."""

    def __init__(self, folder, which):
        self.program, self.headers = brought("dkms", which), pathlib.Path(brought("headers", which))
        self.kernel = self.headers.name.removeprefix("linux-headers-")
        self.trees = {"--sourcetree": folder / "usr/src", "--dkmstree": folder / "state", "--installtree": folder / "modules"}
        for tree in self.trees.values():
            tree.mkdir(parents=True, exist_ok=True)
        # What DKMS takes for a kernel that is installed.
        self.modules = self.trees["--installtree"] / self.kernel
        self.modules.mkdir()

    def __call__(self, *words):
        command = [self.program, *words, *(word for tree in self.trees.items() for word in tree)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_driver_is_installed_by_dkms(tmp_path):
    """As docs/vm.md does it in a guest, up to where the module is in the kernel's folder, and back."""
    dkms = Dkms(tmp_path, "oldest")
    archive = tmp_path / "guest.tar"
    subprocess.run([ROOT / "guest-driver/archive", archive], check=True, timeout=60)
    subprocess.run(["tar", "-C", tmp_path, "-xf", archive], check=True, timeout=60)
    name, kernel = "cotenant/0.1.0", ["-k", dkms.kernel, "--no-depmod"]
    dkms("install", name, *kernel, "--kernelsourcedir", dkms.headers)
    assert dkms("status").strip() == f"{name}, {dkms.kernel}, x86_64: installed"
    # Where the distribution compresses modules, DKMS does.
    [module] = dkms.modules.rglob("cotenant.ko*")
    assert module.parent == dkms.modules / "updates/dkms"
    dkms("remove", name, *kernel)
    assert not [*dkms.modules.rglob("cotenant.ko*")]
