# SPDX-License-Identifier: Apache-2.0
"""What the tests of CUDA programs on the software GPU share.

Each test has a device state of its own (SOFTGPU_DIR), so that tests neither see each
other's memory nor that of anybody else on the machine.
"""
import os

import pytest

from building import PROGRAMS as HERE, ROOT, SOFTGPU, make, run, toolkit, virtual_environment


def nvrtc_compile(cuda):
    """The program that has NVRTC compile a file. NVRTC opens a library of its own, by the program's path."""
    source = HERE / "nvrtc-compile.c"
    return make("nvrtc-compile", ["gcc", "-O1", source, "-o", "@OUT@", f"-I{cuda}/include", f"-L{cuda}/lib64",
                                  "-lnvrtc", f"-Wl,-rpath,{cuda}/lib64,--disable-new-dtags"], [source])


@pytest.fixture
def gpu(tmp_path):
    """The environment of a program on the software GPU."""
    env = dict(os.environ)
    for name in list(env):
        # tests/run compiled, interpreted: all of it with every kernel compiled, and none
        if name.startswith(("CUDA_VISIBLE", "SOFTGPU_")) and name != "SOFTGPU_JIT":
            del env[name]
    state = tmp_path / "softgpu"
    state.mkdir()
    env["SOFTGPU_DIR"] = str(state)
    env["LD_LIBRARY_PATH"] = str(SOFTGPU)
    env["HOME"] = str(tmp_path)
    return env


@pytest.fixture
def venv():
    """venv("name", "file"): a virtual environment with what a requirements file names, built in @env."""
    return virtual_environment


@pytest.fixture
def program():
    """program("name"): a program of this folder, compiled against NVIDIA's cuda.h."""
    def compile_program(name):
        cuda = toolkit()
        source = HERE / f"{name}.c"
        return make(name, ["gcc", "-O1", "-g", "-Wall", source, "-o", "@OUT@", f"-I{cuda}/include",
                           f"-L{SOFTGPU}", "-lcuda", "-lm", "-pthread"], [source, HERE / "program.h"])
    return compile_program


@pytest.fixture
def ptx():
    """ptx("compiler"): the kernels as PTX by nvcc, nvcc-debug, nvrtc, clang or, from C, clang-target."""
    def compile_ptx(compiler):
        cuda = toolkit()
        source = HERE / ("kernels.cl" if compiler == "clang-target" else "kernels.cu")
        if compiler == "nvrtc":
            command = [nvrtc_compile(cuda), source, "@OUT@"]
        else:
            command = {
                "nvcc": [cuda / "bin/nvcc", "-O3", "-arch=compute_75", "-ptx", source, "-o", "@OUT@"],
                "nvcc-debug": [cuda / "bin/nvcc", "-G", "-arch=compute_80", "-ptx", source, "-o", "@OUT@"],
                "clang": ["clang", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_75", "-nocudainc",
                          "-nocudalib", "-O2", "-S", "-Wno-unknown-cuda-version", "-Xclang", "-target-feature",
                          "-Xclang", "+ptx70", source, "-o", "@OUT@"],
                "clang-target": ["clang", "--target=nvptx64-nvidia-cuda", "-march=sm_75", "-x", "cl", "-cl-std=CL2.0",
                                 "-O2", "-S", "-Xclang", "-target-feature", "-Xclang", "+ptx70", source, "-o", "@OUT@"],
            }[compiler]
        return make(f"kernels-{compiler}.ptx", command, [source, HERE / "clang-device.h"])
    return compile_ptx
