# SPDX-License-Identifier: Apache-2.0
"""Containers become tenants by their annotations, whatever runtime starts them."""
import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import ALICE, COTENANT, MIB, OUT_OF_MEMORY, ROOT, TENANT, eventually

ID = "0123456789abcdef" * 4
# The runtime of a hybrid host's crun must not see the second hierarchy.
CRUN = """#!/bin/sh
if [ -d /sys/fs/cgroup/unified ]; then
	exec unshare -m --propagation slave sh -c 'umount /sys/fs/cgroup/unified; exec crun "$@"' crun "$@"
fi
exec crun "$@"
"""


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


class Box:
    """A busybox root, with the host's libraries and this build beside it."""

    def __init__(self, host, folder):
        self.host = host
        self.folder = folder
        self.root = folder / "rootfs"
        for name in ("bin", "proc", "dev", "tmp", "etc", "sys", "run", "usr", "lib", "lib64", "var/tmp"):
            (self.root / name).mkdir(parents=True)
        busybox = shutil.which("busybox")
        if not busybox:
            pytest.skip("busybox is not installed")
        shutil.copy(busybox, self.root / "bin/busybox")
        (self.root / "bin/sh").symlink_to("busybox")
        self.shared = [("/usr", "/usr"), ("/lib", "/lib"), ("/lib64", "/lib64"), (str(ROOT), str(ROOT))]
        self.state = (str(host.dir / "gpu"), str(host.dir / "gpu"))
        self.env = {name: host.env[name] for name in host.env
                    if name.startswith("SOFTGPU_") or name in ("LD_LIBRARY_PATH", "PATH")}

    def hook(self):
        return {"path": str(COTENANT), "args": ["cotenant", "oci-hook", "--socket", str(self.host.dir / "socket")]}

    def bundle(self, annotations, user=0):
        """A bundle for runc and crun."""
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}]
        mounts += [{"destination": to, "type": "bind", "source": source, "options": ["rbind", "ro"]}
                   for source, to in self.shared]
        mounts += [{"destination": self.state[1], "type": "bind", "source": self.state[0], "options": ["rbind", "rw"]}]
        config = {"ociVersion": "1.0.2", "root": {"path": str(self.root)}, "mounts": mounts,
                  "process": {"args": [str(TENANT), "0"], "cwd": "/", "user": {"uid": user, "gid": user},
                              "env": [f"{name}={value}" for name, value in self.env.items()]},
                  "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}]},
                  "annotations": annotations, "hooks": {"createRuntime": [self.hook()]}}
        (self.folder / "config.json").write_text(json.dumps(config))
        return self.folder


@pytest.fixture
def box(host):
    # A short name: podman takes no path of more than 50 characters.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="box-"))
    yield Box(host, folder)
    shutil.rmtree(folder)


@pytest.fixture(params=["runc", "crun"])
def runtime(request, tmp_path):
    need(request.param)
    program = request.param
    if program == "crun":
        program = tmp_path / "crun-here"
        program.write_text(CRUN)
        program.chmod(0o755)
    command = [program, "--root", tmp_path / "runtime"]
    yield command
    subprocess.run([str(word) for word in [*command, "delete", "--force", ID]], capture_output=True)


def test_a_bundle_is_a_tenant_before_its_first_call(box, runtime):
    host = box.host
    bundle = box.bundle({"cotenant.memory.max": "512M", "cotenant.memory.low": "256M", "cotenant.name": "web",
                         "other": "annotation"})
    tenant = host.add([*runtime, "run", "--bundle", bundle, ID]).started()
    assert tenant.info()[1] == 512 * MIB and tenant.pid() == 1
    assert tenant.alloc(256 * MIB) > 0 and tenant.alloc(256 * MIB) == -OUT_OF_MEMORY
    assert host.book("web")["memory.low"] == 256 * MIB and host.book("web")["refused"] == 1
    shown = eventually(lambda: [p for p in host.json("ps")["processes"] if p["tenants"] == ["web"]], "it is listed")
    assert shown[0]["container"] == ID and shown[0]["runtime"] in ("oci", "runc", "crun")
    late = host.add([*runtime, "exec", ID, TENANT, "0"]).started()
    assert late.alloc(100 * MIB) > 0
    eventually(lambda: host.book("web")["memory.current"] > 450 * MIB, "who came later is charged as well")
    assert late.alloc(256 * MIB) == -OUT_OF_MEMORY and late.end() == 0
    assert tenant.end() == 0
    eventually(lambda: not host.json("list")["tenants"], "it ends with its container")


@pytest.mark.parametrize("annotations,word", [({"cotenant.memory.low": "-1"}, "is not a size"),
                                              ({"cotenant.memory.low": "4G", "cotenant.memory.max": "1G"}, "above"),
                                              ({"cotenant.gpu": "17"}, "there is no device"),
                                              ({"cotenant.memory.lowest": "1G"}, "there is no limit")])
def test_what_cannot_be_had_is_not_started(box, annotations, word):
    need("runc")
    bundle = box.bundle(annotations)
    done = subprocess.run(["runc", "--root", str(box.folder / "runtime"), "run", "--bundle", str(bundle), ID],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and not done.stdout and word in done.stderr
    assert not box.host.json("list")["tenants"]


def test_of_a_user_a_container_is_suspended_as_a_whole(box):
    need("runc")
    host = box.host
    runtime = ["runc", "--root", box.folder / "runtime"]
    host.cotenant("set", "--user", ALICE, "memory.low=2G", "memory.policy=suspend", "memory.grace=0")
    tenant = host.add([*runtime, "run", "--bundle", box.bundle({}, ALICE), ID]).started()
    assert tenant.alloc(1536 * MIB) > 0
    # It has answered by now, and cannot be stopped before it does.
    host.cotenant("set", "--user", ALICE, "memory.low=512M")
    host.told("suspended", str(ALICE))
    eventually(lambda: "stopped after" in host.cotenant("explain", "i1"), "it has stopped")
    freezer = pathlib.Path(f"/sys/fs/cgroup/freezer/{ID}/freezer.state")
    if freezer.exists():
        eventually(lambda: freezer.read_text() == "FROZEN\n", "its v1 freezer stops it")
    tenant.send("check")
    assert not tenant.has_answered(0.5)
    host.cotenant("set", "--user", ALICE, "memory.low=2G")
    assert tenant.answer() == ["right"]
    assert tenant.end() == 0


def podman(folder, *words, etc=None):
    command = ["podman", "--root", folder / "storage", "--runroot", folder / "run", "--tmpdir", folder / "tmp",
               "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--events-backend", "file",
               "--runtime", "runc", *words]
    if etc:
        command = ["unshare", "-m", "--propagation", "slave", "sh", "-c", 'mount --bind "$0" /etc; exec "$@"', etc,
                   *command]
    return [str(word) for word in command]


RUN = ["run", "--rm", "-i", "--network", "none", "--shm-size", "64m", "--ulimit", "nofile=1024:1024",
       "--ulimit", "nproc=1024:1024"]


def test_podman_with_annotations_and_cdi(box):
    need("podman")
    host, folder = box.host, box.folder
    # A folder of specifications other than /etc/cdi is not podman's to choose: give it another /etc.
    etc = folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("shadow*"))
    host.cotenant("cdi", "--output", etc / "cdi/cotenant.json")
    spec = json.loads((etc / "cdi/cotenant.json").read_text())
    assert spec["kind"] == "cotenant.dev/gpu" and [d["name"] for d in spec["devices"]][0] == "0"
    volumes = [word for source, to in box.shared for word in ("-v", f"{source}:{to}:ro")]
    volumes += ["-v", ":".join(box.state)]
    env = [word for name, value in box.env.items() for word in ("-e", f"{name}={value}")]
    tenant = host.add(podman(folder, *RUN, "--name", "trainer", "--device", "cotenant.dev/gpu=0",
                             "--annotation", "cotenant.memory.low=256M", "--annotation", "cotenant.memory.max=512M",
                             "--annotation", "cotenant.name=trainer", *volumes, *env, "--rootfs", box.root,
                             TENANT, "0", etc=etc)).started()
    assert tenant.info()[1] == 512 * MIB
    assert tenant.alloc(256 * MIB) > 0 and tenant.alloc(256 * MIB) == -OUT_OF_MEMORY
    shown = eventually(lambda: [p for p in host.json("ps")["processes"] if p["tenants"] == ["trainer"]], "it is listed")
    assert shown[0]["runtime"] == "podman" and len(shown[0]["container"]) == 64
    assert tenant.end() == 0
    eventually(lambda: not host.json("list")["tenants"], "it ends with its container")
