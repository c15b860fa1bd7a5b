# SPDX-License-Identifier: Apache-2.0
"""The guest's driver by itself: it is built without a warning and does nothing where there is no device."""
import pytest

from boot import boot


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
