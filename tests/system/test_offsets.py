# SPDX-License-Identifier: Apache-2.0
"""Builds of libcuda whose symbols do not tell where its calls are, and the files that do."""
import json
import os
import subprocess

import pytest

from conftest import COTENANT, GIB, MIB, OUT_OF_MEMORY, SOFTGPU, eventually

# Nobody else's, so that other runs of the tests on this machine are not in the way.
USER = 200000 + os.getpid()
WITH_SYMBOLS = SOFTGPU / "procaddr/libcuda.so.1"


def offsets(*words):
    return subprocess.run([str(word) for word in [COTENANT, "offsets", *words]], text=True, capture_output=True,
                          timeout=60)


@pytest.fixture
def stripped(host):
    """The driver of this host's tenants: it exports nothing but the look-up."""
    folder = host.dir / "driver"
    folder.mkdir()
    library = folder / "libcuda.so.1"
    subprocess.run(["strip", "--strip-all", "-o", library, WITH_SYMBOLS], check=True)
    host.env["LD_LIBRARY_PATH"] = f"{folder}:{SOFTGPU}"
    return library


def start(host):
    """A tenant of a user who has a limit: those of cgroups are kept by the driver itself, too."""
    host.cotenant("set", "--user", USER, "--name", "t", "memory.max=1G")
    return host.run(name=f"offsets-{os.getpid()}", user=USER).started()


def place(host, text):
    """Puts a file there, and waits until the daemon has read it."""
    (host.dir / "conf/offsets.d/build.conf").write_text(text)
    eventually(lambda: "build.conf" in host.command("doctor").stdout, "the file is read by itself")


def check_limits_hold(host, tenant, name):
    assert tenant.info()[1] == GIB
    assert tenant.alloc(2 * GIB) == -OUT_OF_MEMORY
    address = tenant.alloc(512 * MIB)
    assert address > 0 and host.book(name)["memory.current"] >= 512 * MIB
    assert tenant.alloc(512 * MIB) == -OUT_OF_MEMORY
    assert tenant.ask(f"free {address}") == ["0"] and tenant.alloc(800 * MIB) > 0
    assert tenant.ask("check") == ["right"]


def test_without_a_file_it_is_unprotected_and_named(host, stripped):
    tenant = start(host)
    assert tenant.alloc(2 * GIB) > 0, "nothing is known of this build"
    event = host.told("unprobed")[-1]
    assert str(stripped) in event["text"] and "no file of offsets.d is for its build-id" in event["text"]
    doctor = host.command("doctor")
    line = next(line for line in doctor.stdout.splitlines() if f"process {tenant.pid()} " in line)
    assert "unprotected:" in doctor.stdout and "offsets.d" in line and doctor.returncode == 1


def test_with_one_the_limits_hold(host, stripped):
    place(host, offsets(WITH_SYMBOLS).stdout)
    tenant = start(host)
    check_limits_hold(host, tenant, "t")
    assert "unprotected:" not in host.cotenant("doctor")
    host.kill()
    host.start()
    assert tenant.alloc(512 * MIB) == -OUT_OF_MEMORY, "the next daemon knows the build, too"


def test_a_file_that_comes_later_is_taken_at_once(host, stripped):
    tenant = start(host)
    assert tenant.alloc(2 * GIB) > 0
    assert "unprotected:" in host.command("doctor").stdout
    place(host, offsets(WITH_SYMBOLS).stdout)
    eventually(lambda: "unprotected:" not in host.command("doctor").stdout, "the file is read by itself")
    assert eventually(lambda: host.book("t")["memory.current"] >= 2 * GIB, "what it took before is charged")
    assert tenant.alloc(MIB) == -OUT_OF_MEMORY


@pytest.mark.parametrize("change, reason", [
    (lambda text: text.replace("[calls]", "driver = 1.2.3\n[calls]"), "it is for driver 1.2.3"),
    (lambda text: text.replace("[calls]", "cuda = 1.0\n[calls]"), "it is for CUDA 1.0"),
    (lambda text: text.replace("cuMemAlloc_v2 = 0x", "cuMemAlloc_v2 = 0x7"), "is not in the library's code"),
    (lambda text: text.replace("cuMemAlloc_v2 = 0x", "cuMemAlloc_v2 = +"), "is not an address"),
])
def test_a_file_that_does_not_match_is_refused(host, stripped, change, reason):
    place(host, change(offsets(WITH_SYMBOLS).stdout))
    tenant = start(host)
    assert tenant.alloc(2 * GIB) > 0
    event = host.told("offsets-refused")[-1]
    assert "build.conf" in event["text"] and reason in event["text"]
    doctor = host.command("doctor").stdout
    assert reason in doctor[doctor.index("refused files:"):] and "unprotected:" in doctor


def test_a_file_for_another_build_changes_nothing(host, stripped):
    place(host, offsets(SOFTGPU / "libcuda.so.1").stdout)
    tenant = start(host)
    assert tenant.alloc(2 * GIB) > 0
    host.told("unprobed")
    assert not host.events("offsets-refused")


def test_offsets_of_what_an_administrator_may_have(tmp_path):
    library, debug, unnamed = tmp_path / "libcuda.so.1", tmp_path / "libcuda.debug", tmp_path / "unnamed"
    subprocess.run(["strip", "--strip-all", "-o", library, WITH_SYMBOLS], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", WITH_SYMBOLS, debug], check=True)
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", WITH_SYMBOLS, unnamed], check=True)
    whole = offsets(WITH_SYMBOLS)
    assert whole.returncode == 0 and "cuMemAlloc_v2 = 0x" in whole.stdout
    assert offsets(debug, "--for", library).stdout == whole.stdout
    assert offsets(unnamed, "--for", library).stdout == whole.stdout, "the same code, byte for byte"
    assert "driver = 550.163.01" in offsets(WITH_SYMBOLS, "--driver", "550.163.01").stdout
    assert "has no symbols" in offsets(library).stderr
    assert "no build-id" in offsets(unnamed).stderr
    assert "another build" in offsets(SOFTGPU / "libcuda.so.1", "--for", library).stderr
    assert "no library" in offsets("/etc/passwd").stderr
    assert offsets(tmp_path / "nothing").returncode == 1


def test_offsets_as_json():
    printed = offsets(WITH_SYMBOLS).stdout
    as_json = json.loads(offsets(WITH_SYMBOLS, "--json").stdout)
    assert f"build-id = {as_json['build-id']}" in printed
    assert f"cuMemAlloc_v2 = {as_json['calls']['cuMemAlloc_v2']:#x}" in printed
