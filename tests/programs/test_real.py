# SPDX-License-Identifier: Apache-2.0
"""Programs of others, from the registries, unchanged on the software GPU."""
import hashlib
import os
import shutil
import subprocess
import time

import pytest

from conftest import HERE, SOFTGPU, run, toolkit

REAL = HERE / "real"
# What takes so long is taken for hung.
ENDLESS_SECONDS = 600


@pytest.fixture
def gpu_nvrtc(gpu):
    """The software GPU with NVRTC of the toolkit beside it."""
    cuda = toolkit()
    return gpu | {"LD_LIBRARY_PATH": f"{SOFTGPU}:{cuda}/lib64", "CUDA_PATH": str(cuda), "CUDA_HOME": str(cuda)}


def test_cuda_bindings(gpu_nvrtc, venv):
    assert "saxpy right" in run([venv("cuda", "requirements-cuda.txt") / "python", REAL / "cuda-bindings.py"], gpu_nvrtc)


def test_cuda_core(gpu_nvrtc, venv):
    assert "squares right" in run([venv("cuda", "requirements-cuda.txt") / "python", REAL / "cuda-core.py"], gpu_nvrtc)


def training(venv, env, device):
    """The command and environment of a training on a device of tinygrad's: CUDA, CUDA:PTX or CPU."""
    python = venv("tinygrad", "requirements-tinygrad.txt") / "python"
    return [python, REAL / "tinygrad-train.py"], env | {"DEV": device, "CACHELEVEL": "0"}


def started(command, env):
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE)


def losses(out):
    return [float(line.split()[1]) for line in out.splitlines() if line.startswith("loss")]


def test_programs_at_once_are_each_right(gpu_nvrtc, venv):
    """Two trainings, and as long as they last programs of Taichi and cuda.core, one after the other. A training
    on tinygrad's CPU device says what is right."""
    others = [([venv("taichi", "requirements-taichi.txt") / "python", REAL / "taichi-sum.py", "taichi"], "sum right"),
              ([venv("cuda", "requirements-cuda.txt") / "python", REAL / "cuda-core.py"], "squares right")]
    trainings = [started(*training(venv, gpu_nvrtc, device)) for device in ("CUDA", "CUDA", "CPU")]
    end = time.monotonic() + ENDLESS_SECONDS
    try:
        while any(process.poll() is None for process in trainings):
            assert time.monotonic() < end, "a training does not end"
            for command, right in others:
                assert right in run(command, gpu_nvrtc)
        *on_gpu, on_cpu = [losses(process.communicate()[0]) for process in trainings]
    finally:
        for process in trainings:
            process.kill()
    for of_one in on_gpu:
        assert len(of_one) == 6 and of_one[-1] < of_one[0]
        assert of_one == pytest.approx(on_cpu, rel=1e-5)


def test_tinygrad_writes_its_own_ptx(gpu, venv):
    """And so needs no toolkit."""
    on_gpu, on_cpu = (losses(run(*training(venv, gpu, device))) for device in ("CUDA:PTX", "CPU"))
    assert len(on_gpu) == 6 and on_gpu == pytest.approx(on_cpu, rel=1e-5)


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
    """Under the names of driver 550, as docs/softgpu.md has it. Toolkits differ in where they keep NVVM."""
    cuda = toolkit()
    path = f"{SOFTGPU}/driver550:{cuda}/lib64:{cuda}/nvvm/lib64"
    python = venv("numba", "requirements-numba.txt") / "python"
    assert "sums right" in run([python, REAL / "numba-add.py"], gpu_nvrtc | {"LD_LIBRARY_PATH": path})


def test_triton(gpu, venv):
    """Its cache is below HOME, which is the test's own."""
    python = venv("triton", "requirements-triton.txt") / "python"
    assert "kernels right" in run([python, REAL / "triton-kernels.py"], gpu)


def test_hashcat_finds_a_short_md5(gpu_nvrtc, tmp_path):
    if not shutil.which("hashcat"):
        pytest.skip("hashcat is not installed")
    digest = hashlib.md5(b"gpu7").hexdigest()
    # Its autotuning tries what keeps a GPU busy for long, which an interpreter does for minutes. The three
    # options that take its place are called outdated by hashcat, and need --force.
    tuned = ["-n", "1", "-u", "1", "-T", "64", "--force"]
    out = run(["hashcat", "--backend-ignore-opencl", "-m", "0", "-a", "3", "-w", "1", "--potfile-disable", *tuned,
               digest, "?l?l?l?d"], gpu_nvrtc, timeout=400, cwd=tmp_path)
    assert "Finished self-test" in out and "self-test failed" not in out, out
    assert f"{digest}:gpu7" in out, out
