# SPDX-License-Identifier: Apache-2.0
"""The audit engine on other kernels than this machine's.

    oldest      supervised; Debian's 6.1 has no uprobe_multi, so perf events
    newest      the BPF program answers calls itself (registers)
    lockdown    the same kernel with lockdown=integrity; there the daemon, too, as on any host with cgroup v2 alone
"""
import concurrent.futures
import json
import shutil
import subprocess

import pytest

from boot import boot
from conftest import BUILD, ROOT, brought

KERNELS = {
    "oldest": ("oldest", ""),
    "newest": ("newest", ""),
    "lockdown": ("newest", "lockdown=integrity"),
}

# What of the suite "audit" runs in a guest, and what may say 77: that kernel cannot.
TESTS = ["audit-thin-endbr-supervised", "audit-thin-push-supervised", "audit-thin-endbr-registers",
         "audit-thin-push-registers", "audit-refusals-endbr", "audit-holds-endbr", "audit-traps-endbr",
         "audit-exits-endbr", "audit-launches-endbr", "audit-deny-endbr", "audit-users-endbr"]
# Beside them, on one of the machines, none of which has anything but cgroup v2.
V2_ALONE = {"lockdown": {"v2-alone"}}
# What is only long is left out of these.
SHORT = ["audit-launches-endbr"]
CANNOT = {"oldest": {"audit-thin-endbr-registers", "audit-thin-push-registers"}}


def commands_of_suite():
    """The commands of TESTS, with the build's files by their whole path."""
    out = subprocess.run(["meson", "introspect", "--tests", BUILD], capture_output=True, text=True, check=True)
    commands = {test["name"]: [str(BUILD / word) if (BUILD / word).is_file() else word for word in test["cmd"]]
                for test in json.loads(out.stdout) if test["name"] in TESTS}
    for name in SHORT:
        commands[name].append("short")
    assert set(commands) == set(TESTS)
    return commands


def command_on_v2():
    programs = [BUILD / "bin/cotenantd", BUILD / "bin/cotenant", BUILD / "tests/system/tenant",
                BUILD / "softgpu/libcuda.so.1", BUILD / "softgpu/libnvidia-ml.so.1", shutil.which("setpriv")]
    return ["/bin/busybox", "sh", ROOT / "tests/vm/v2-alone", *programs]


# Seconds until a machine is taken for hung; the oldest kernel needs some 220 of them alone.
HUNG = 900


@pytest.fixture(scope="module")
def machines(request, tmp_path_factory):
    """What each kernel that is asked for answers, to be waited for: two run at a time, as they mostly sleep."""
    suite = commands_of_suite()
    commands = {name: suite | dict.fromkeys(V2_ALONE.get(name, ()), command_on_v2()) for name in KERNELS}
    names = [item.callspec.params["name"] for item in request.session.items if item.module is request.module]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        yield {name: pool.submit(boot, tmp_path_factory.mktemp(name), brought("kernel", KERNELS[name][0]),
                                 commands[name], KERNELS[name][1], timeout=HUNG) for name in names}


def complaints(out):
    return "\n".join(line for line in out.splitlines() if not line.startswith("ok "))[-500:]


@pytest.mark.parametrize("name", KERNELS)
def test_engine_under_kernel(machines, name):
    results, console = machines[name].result()
    assert "@end" in console, console[-3000:]
    cannot = {test for test, (status, _) in results.items() if status == 77}
    failed = {test: f"{status}: {complaints(out)}" for test, (status, out) in results.items() if status not in (0, 77)}
    assert not failed, failed
    assert set(results) == set(TESTS) | V2_ALONE.get(name, set())
    assert cannot == CANNOT.get(name, set())
