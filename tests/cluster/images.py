# SPDX-License-Identifier: Apache-2.0
"""An image on the nodes: a busybox root with the tenant program; the driver comes to it by the device."""
import json
import os
import re
import shutil
import subprocess

from system_conftest import SOFTGPU, TENANT, eventually

IMAGE = "localhost/tenant:1"

CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
volumes = ["{dir}/jobs:{dir}/jobs"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
tmp_dir = "{dir}/box/tmp"
[engine.runtimes]
crun = ["{dir}/box/crun"]
"""

STORAGE_CONF = """
[storage]
driver = "vfs"
graphroot = "{dir}/box/storage"
runroot = "{dir}/box/run"
"""

# The runtime of a hybrid host's crun must not see the second hierarchy.
CRUN = """#!/bin/sh
if [ -d /sys/fs/cgroup/unified ]; then
	exec unshare -m --propagation slave sh -c 'umount /sys/fs/cgroup/unified; exec crun "$@"' crun "$@"
fi
exec crun "$@"
"""

# The nodes are one machine, and a folder of CDI specifications is not podman's to choose: each has
# its own /etc, with what podman reads there.
ETC = ["passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "ld.so.cache", "containers"]
PODMAN = """#!/bin/sh
export CONTAINERS_CONF={dir}/box/containers.conf CONTAINERS_STORAGE_CONF={dir}/box/storage.conf
exec unshare -m --propagation slave sh -c 'mount --bind "$0" /etc; exec "$@"' \\
	{dir}/box/etc-${{SLURMD_NODENAME:-n1}} {podman} "$@"
"""


def missing():
    """Why there can be no image here, or None."""
    absent = [program for program in ("podman", "crun", "busybox") if not shutil.which(program)]
    return f"{absent[0]} is not installed" if absent else None


def libraries_of(*programs):
    """What the loader takes for these, by the names that it looks for."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?:^\s*|=> )(/\S+) \(", said, re.MULTILINE))


class Images:
    def __init__(self, cluster):
        self.cluster = cluster
        self.dir = cluster.dir / "box"
        self.podman = cluster.dir / "bin/podman"

    def write_file(self, path, text, mode=0o644):
        path.write_text(text)
        path.chmod(mode)

    def make(self):
        words = {"dir": self.cluster.dir, "podman": shutil.which("podman")}
        self.dir.mkdir()
        self.write_file(self.dir / "containers.conf", CONTAINERS_CONF.format(**words))
        self.write_file(self.dir / "storage.conf", STORAGE_CONF.format(**words))
        self.write_file(self.dir / "crun", CRUN, 0o755)
        for node, host in self.cluster.nodes.items():
            etc = self.dir / f"etc-{node}"
            etc.mkdir()
            self.cluster.do("cp", "-rL", *[f"/etc/{name}" for name in ETC if os.path.exists(f"/etc/{name}")], etc)
            self.write_devices(host, etc / "cdi/cotenant.json")
        self.write_file(self.podman, PODMAN.format(**words), 0o755)
        self.make_image()

    def write_devices(self, host, path):
        """A node's specification; of a software GPU its state and its settings belong to the device."""
        host.cotenant("cdi", "--output", path)
        spec = json.loads(path.read_text())
        edits = spec["containerEdits"]
        edits["env"] += [f"{name}={value}" for name, value in host.env.items() if name.startswith("SOFTGPU_")]
        edits["mounts"].append({"hostPath": str(host.dir / "gpu"), "containerPath": str(host.dir / "gpu"),
                                "options": ["rw", "bind"]})
        path.write_text(json.dumps(spec))

    def make_image(self):
        root = self.dir / "rootfs"
        for name in ("bin", "proc", "dev", "tmp", "etc", "sys", "run"):
            (root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        (root / "bin/sh").symlink_to("busybox")
        shutil.copy(TENANT, root / "bin/tenant")
        for library in libraries_of(TENANT, SOFTGPU / "libcuda.so.1"):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        self.cluster.do("tar", "-C", root, "-cf", self.dir / "rootfs.tar", ".")
        self.do("import", self.dir / "rootfs.tar", IMAGE)

    def do(self, *words):
        return self.cluster.do(self.podman, *words)

    def listed(self):
        """The containers that podman knows: [(its name, its first process)]."""
        done = eventually(self.ps, "podman lists them while none of them is taken away")
        return [(name, int(pid)) for name, pid in map(str.split, done.stdout.splitlines())]

    def ps(self):
        done = self.cluster.run(self.podman, "ps", "--all", "--format", "{{.Names}} {{.Pid}}")
        return done.returncode == 0 and done

    def close(self):
        """Without podman: what it has mounted for containers is gone with their jobs."""
        self.podman.unlink()
        shutil.rmtree(self.dir)
