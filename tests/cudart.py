# SPDX-License-Identifier: Apache-2.0
"""The programs on the CUDA runtime in programs/runtime, compiled by nvcc for one of the runtime's versions."""
import concurrent.futures
import functools

from building import MADE, PROGRAMS, SOFTGPU, make, toolkit, virtual_environment

SOURCES = PROGRAMS / "runtime"

# Those that say that they are right; the others of the folder fail on purpose or wait for something.
NAMES = ["arithmetic", "copies", "devices", "graph-nodes", "graphs", "heap", "host-memory", "ipc", "launch",
         "libraries", "matrices", "own-streams", "peers", "pools", "refusals", "relocatable", "streams", "symbols", "textures",
         "warps"]

FLAGS = {
    "relocatable": ["-rdc=true", "-gencode", "arch=compute_75,code=[sm_75,compute_75]",
                    SOURCES / "relocatable-part.cu"],
    "no-image": ["-gencode", "arch=compute_75,code=sm_75"],
    "matrices": ["-arch=compute_80"],
    "own-streams": ["-arch=compute_75", "-default-stream", "per-thread", "-w"],
    "refusals": ["-arch=compute_75", "-w"],
    "libraries": ["-arch=compute_75", f"-L{SOFTGPU}", "-lcuda"],
}


def flags_of_12():
    """For nvcc of a later version: the headers of runtime 12, the C++ library that fits them, and -lcudart."""
    venv = virtual_environment("cudart12", "requirements-cudart12.txt").parent
    packages = next(venv.glob("lib/python3*/site-packages/nvidia"))
    folder = MADE / "cudart12"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "libcudart.so"
    if not link.is_symlink():
        link.symlink_to(SOFTGPU / "libcudart.so.12")
    return [f"-I{packages}/cuda_runtime/include", f"-I{packages}/cuda_cccl/include", f"-L{folder}"]


def compiled(name, how="shared", version=13):
    nvcc, source = toolkit() / "bin/nvcc", SOURCES / f"{name}.cu"
    flags = (flags_of_12() if version == 12 else []) + FLAGS.get(name, ["-arch=compute_75"])
    return make(f"runtime{version}-{name}-{how}", [nvcc, "-cudart", how, *flags, source, "-o", "@OUT@"],
                [source, SOURCES / "check.h", *SOURCES.glob(f"{name}-*.cu")])


@functools.cache
def all_compiled(version=13):
    """The programs by their names; they are compiled side by side, and who wants one waits for it alone."""
    pool = concurrent.futures.ThreadPoolExecutor()
    return {name: pool.submit(compiled, name, version=version) for name in NAMES}
