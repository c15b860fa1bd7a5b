# SPDX-License-Identifier: Apache-2.0
"""Programs of others, from the registries, unchanged on the software GPU."""
import hashlib
import os
import shutil
import subprocess

import pytest

from conftest import HERE, SOFTGPU, run, toolkit

REAL = HERE / "real"


@pytest.fixture
def gpu_nvrtc(gpu):
    """The software GPU with NVRTC of the toolkit beside it."""
    cuda = toolkit()
    return gpu | {"LD_LIBRARY_PATH": f"{SOFTGPU}:{cuda}/lib64", "CUDA_PATH": str(cuda), "CUDA_HOME": str(cuda)}


def test_cuda_bindings(gpu_nvrtc, venv):
    assert "saxpy right" in run([venv("cuda", "requirements-cuda.txt") / "python", REAL / "cuda-bindings.py"], gpu_nvrtc)


def test_cuda_core(gpu_nvrtc, venv):
    assert "squares right" in run([venv("cuda", "requirements-cuda.txt") / "python", REAL / "cuda-core.py"], gpu_nvrtc)


def losses(venv, env, device):
    python = venv("tinygrad", "requirements-tinygrad.txt") / "python"
    out = run([python, REAL / "tinygrad-train.py"], env | {"DEV": device, "CACHELEVEL": "0"})
    return [float(line.split()[1]) for line in out.splitlines() if line.startswith("loss")]


def test_tinygrad_trains_as_on_its_cpu_device(gpu_nvrtc, venv):
    on_gpu, on_cpu = losses(venv, gpu_nvrtc, "CUDA"), losses(venv, gpu_nvrtc, "CPU")
    assert len(on_gpu) == 6 and on_gpu[-1] < on_gpu[0]
    assert on_gpu == pytest.approx(on_cpu, rel=1e-5)


@pytest.mark.parametrize("name", ["taichi", "quadrants"])
def test_taichi_family(gpu, venv, name):
    python = venv(name, f"requirements-{name}.txt") / "python"
    assert "sum right" in run([python, REAL / "taichi-sum.py", name], gpu)


def test_pycuda_with_ptx(gpu_nvrtc, venv, ptx):
    """Built by pip, with the headers of the toolkit, and linked with the software GPU and libcurand."""
    cuda, kernels = toolkit(), ptx("nvcc")
    build = {"CUDA_ROOT": str(cuda), "PATH": f"{cuda}/bin:{os.environ['PATH']}", "LIBRARY_PATH": str(SOFTGPU)}
    python = venv("pycuda", "requirements-pycuda.txt", build) / "python"
    assert "sum right" in run([python, REAL / "pycuda-add.py", kernels], gpu_nvrtc)


def test_numba(gpu_nvrtc, venv):
    """Its own binding knows the drivers of CUDA 12 at most, so it gets that build; newer Numba links machine code."""
    cuda = toolkit()
    path = f"{SOFTGPU}/driver550:{gpu_nvrtc['LD_LIBRARY_PATH']}:{cuda}/nvvm/lib64"
    python = venv("numba", "requirements-numba.txt") / "python"
    assert "sums right" in run([python, REAL / "numba-add.py"], gpu_nvrtc | {"LD_LIBRARY_PATH": path})


def test_hashcat_finds_a_short_md5(gpu_nvrtc, tmp_path):
    if not shutil.which("hashcat"):
        pytest.skip("hashcat is not installed")
    digest = hashlib.md5(b"gpu7").hexdigest()
    out = run(["hashcat", "--backend-ignore-opencl", "-m", "0", "-a", "3", "-w", "1", "--force", "--self-test-disable",
               "--potfile-disable", "-n", "1", "-u", "1", "-T", "64", digest, "?l?l?l?d"], gpu_nvrtc, timeout=400, cwd=tmp_path)
    assert f"{digest}:gpu7" in out, out


def test_two_trainings_at_once_are_both_right(gpu_nvrtc, venv):
    python = venv("tinygrad", "requirements-tinygrad.txt") / "python"
    env = gpu_nvrtc | {"DEV": "CUDA", "CACHELEVEL": "0"}
    running = [subprocess.Popen([python, REAL / "tinygrad-train.py"], env=env, text=True, stdout=subprocess.PIPE)
               for _ in range(2)]
    outs = [process.communicate(timeout=300)[0] for process in running]
    assert outs[0] == outs[1] and outs[0].count("loss") == 6
