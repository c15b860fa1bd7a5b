# SPDX-License-Identifier: Apache-2.0
"""Programs on the CUDA runtime, linked as nvcc links them, on the runtime library of the software GPU."""
import signal
import subprocess

import pytest

from conftest import ROOT, SOFTGPU, make, run
from cudart import NAMES, SOURCES, all_compiled, compiled

RUNS = ROOT / "build/bin/softgpu-run"


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", NAMES)
def test_runtime_program_is_right(gpu, name, version):
    assert "right" in run([all_compiled(version)[name].result()], gpu)


# Compares each call's own error; of a forwarded call that need not be waited for, a later one tells it.
TOLD_LATER = ["refusals"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TOLD_LATER])
def test_runtime_program_is_right_when_forwarded(gpu, name):
    assert "right" in run([ROOT / "build/bin/cotenant", "forward", "--", all_compiled()[name].result()], gpu)


@pytest.mark.parametrize("fault", ["assert", "address"])
def test_fault_is_a_sticky_error(gpu, fault):
    out = run([compiled("faults"), fault], gpu)
    assert "fault stays" in out
    assert (fault == "assert") == ("check_small" in out), out


@pytest.mark.parametrize("what", ["printf", "heap", "stack"])
def test_what_overflows(gpu, what):
    *lines, last = run([compiled("overflows"), what], gpu).splitlines()
    assert last == "overflow right"
    if what == "printf":
        # Blocks run side by side.
        assert sorted(lines) == sorted(f"line {i} of many" for i in range(2048))


def test_a_flood_of_lines_loses_whole_ones_if_any(gpu):
    *many, line, last = run([compiled("overflows"), "flood"], gpu).splitlines()
    assert line == "line 0 of many" and last == "overflow right"
    numbers = [int(number) for number in many if len(number) == 63]
    assert len(numbers) == len(many) == len(set(numbers))
    assert 1 << 13 <= len(numbers) <= 1 << 16


def test_machine_code_alone_is_no_image(gpu):
    gpu["SOFTGPU_LOG"] = "1"
    out = run([compiled("no-image")], gpu)
    assert "no image is right" in out
    # Three calls need it.
    assert out.count("sm_75, and a software GPU runs PTX") == 1


def test_interrupt_ends_an_endless_kernel(gpu):
    # A shell's background job ignores SIGINT, and so does what it starts.
    child = subprocess.Popen([compiled("endless")], env=gpu, text=True, stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == -signal.SIGINT
    finally:
        child.kill()
        child.communicate()
    assert "right" in run([compiled("launch")], gpu)


def test_properties_of_version_12(gpu):
    source = SOURCES / "version12.c"
    library = SOFTGPU / "libcudart.so.12"
    program = make("runtime-version12", ["cc", "-Wall", source, library, "-o", "@OUT@"], [source])
    assert "right" in run([program], gpu)


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_what_is_not_implemented_says_its_name_once(gpu, version):
    source = SOURCES / "missing.c"
    library = SOFTGPU / f"libcudart.so.{version}"
    program = make(f"runtime-missing{version}", ["cc", "-Wall", source, library, "-o", "@OUT@"], [source])
    assert run([program], gpu) == "refusals right\n"
    out = run([program], gpu | {"SOFTGPU_LOG": "1"})
    names = ["cudaGraphicsUnregisterResource", "cudaGraphicsMapResources"]
    assert [out.count(f"{name} is not implemented") for name in names] == [1, 1], out


def test_device_printf_has_every_conversion(gpu):
    lines = run([compiled("printing")], gpu).splitlines()
    assert lines[:3] == [f"{i} {i * 1.5:5.2f} hi {chr(97 + i)} {255 + i:x} 1234567890123 %" for i in range(3)]
    by_device, by_host = lines[3:]
    assert by_device == by_host


def test_softgpu_run_sets_the_library_path(gpu):
    del gpu["LD_LIBRARY_PATH"]
    assert "right" in run([RUNS, compiled("launch")], gpu)


def test_softgpu_run_says_how_to_relink_a_static_runtime(gpu):
    done = subprocess.run([RUNS, compiled("launch", "static")], env=gpu, text=True, capture_output=True, timeout=60)
    assert done.returncode != 0
    assert "-cudart shared" in done.stderr


def test_softgpu_run_without_the_program(gpu):
    done = subprocess.run([RUNS, "./there-is-no-such-program"], env=gpu, text=True, capture_output=True, timeout=60)
    assert done.returncode == 127
    assert "there-is-no-such-program" in done.stderr


def test_every_version_exports_its_names():
    for version, n_names in [("11.0", 395), ("12", 435), ("13", 422)]:
        out = subprocess.run(["nm", "-D", "--defined-only", SOFTGPU / f"libcudart.so.{version}"], text=True,
                             capture_output=True, check=True).stdout
        names = [line.split()[-1] for line in out.splitlines() if " T " in line]
        assert len(names) == n_names, version
        assert all(name.endswith(f"@@libcudart.so.{version}") for name in names), version
