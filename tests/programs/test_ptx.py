# SPDX-License-Identifier: Apache-2.0
"""PTX of every compiler at hand is understood, nothing of it run: breadth, not results."""
import glob
import pathlib
import shutil

import pytest

from conftest import HERE, ROOT, make, nvrtc_compile, run, toolkit

SOURCES = HERE / "ptx"
DUMP = ROOT / "build" / "softgpu" / "ptx" / "ptx-dump"
NVCC_SOURCES = sorted(path.stem for path in SOURCES.glob("*.cu"))


def check(ptx):
    run([DUMP, "--check", ptx], None)


@pytest.mark.parametrize("options", ["compute_75", "compute_90", "compute_120", "compute_80 -G"])
@pytest.mark.parametrize("name", NVCC_SOURCES)
def test_nvcc(name, options):
    source = SOURCES / f"{name}.cu"
    target = f"{name}-{options.replace(' ', '')}.ptx"
    command = [toolkit() / "bin" / "nvcc", "-std=c++17", "-w", "-ptx", f"-arch={options.split()[0]}",
               *options.split()[1:], "-o", "@OUT@", source]
    check(make(target, command, [source]))


def test_nvrtc():
    source = SOURCES / "warps.cu"
    check(make("warps-nvrtc.ptx", [nvrtc_compile(toolkit()), source, "@OUT@"], [source]))


def compilers():
    found = glob.glob("/usr/bin/clang-[0-9]*")
    names = [pathlib.Path(path).name for path in found if path.rsplit("-", 1)[1].isdigit()]
    return sorted(names) or [pathlib.Path(shutil.which("clang") or "clang").name]


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", compilers())
def test_clang(compiler, level):
    source = SOURCES / "device.c"
    command = [compiler, "--target=nvptx64-nvidia-cuda", "-march=sm_75", "-w", "-S", level, "-o", "@OUT@", source]
    check(make(f"device-{compiler}{level}.ptx", command, [source]))
