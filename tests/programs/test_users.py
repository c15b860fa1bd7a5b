# SPDX-License-Identifier: Apache-2.0
"""Several users on one software GPU, and a container that has 64 MiB of /dev/shm and no root."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import SOFTGPU, run

NOBODY = 65534


@pytest.fixture
def shared(program, ptx):
    """A folder that every user can read, with libcuda.so.1, programs and kernels.ptx."""
    if os.geteuid() != 0:
        pytest.skip("only root starts programs of other users")
    # A short name: podman takes no path of more than 50 characters.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-"))
    folder.chmod(0o755)
    (folder / "here").mkdir()
    (folder / "here").chmod(0o755)
    for source, name in [(SOFTGPU / "libcuda.so.1", "libcuda.so.1"), (program("kernels"), "kernels"),
                         (program("grow"), "grow"), (ptx("nvcc"), "kernels.ptx")]:
        shutil.copy(source, folder / "here" / name)
        (folder / "here" / name).chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("first,second", [(0, NOBODY), (NOBODY, 0)])
def test_users_share_a_device(gpu, shared, first, second):
    """Whoever made the state: its first user holds memory while the second one's kernels run."""
    here = shared / "here"
    state = shared / "state"
    state.mkdir()
    state.chmod(0o1777)
    env = gpu | {"SOFTGPU_DIR": str(state), "LD_LIBRARY_PATH": str(here)}
    command = [here / "kernels", here / "kernels.ptx"]
    with subprocess.Popen([*command, "64"], env=env, user=first, group=first, text=True, cwd="/",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline().startswith("ready")
        assert "six kernels right" in run(command, env, user=second, group=second, cwd="/")
        holder.stdin.close()
        assert holder.wait(timeout=60) == 0


def podman(folder, *words):
    return ["podman", "--root", folder / "storage", "--runroot", folder / "run", "--tmpdir", folder / "tmp",
            "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--events-backend", "file",
            "--runtime", "runc", "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024",
            "--ulimit", "nproc=1024:1024", *words]


def test_a_container_with_little_shared_memory(shared):
    """Its own /dev/shm, where the state is by default; device memory beyond its size; not root in it."""
    for needed in ("podman", "runc"):
        if not shutil.which(needed):
            pytest.skip(f"{needed} is not installed")
    root = shared / "root"
    for name in ("dev", "etc", "lib", "lib64", "proc", "run", "sys", "tmp", "usr", "var/tmp", "here"):
        (root / name).mkdir(parents=True)
    volumes = [word for source, to in [("/usr", "/usr"), ("/lib", "/lib"), ("/lib64", "/lib64"),
                                       (shared / "here", "/here")] for word in ("-v", f"{source}:{to}:ro")]
    out = run(podman(shared, "--shm-size", "64m", "--user", f"{NOBODY}:{NOBODY}", "-e", "LD_LIBRARY_PATH=/here",
                     "-e", "SOFTGPU_HOST_MEMORY=400M", *volumes, "--rootfs", root,
                     "/here/grow", "/here/kernels.ptx", "128"), os.environ)
    assert "blocks whole" in out
