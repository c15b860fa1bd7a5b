# SPDX-License-Identifier: Apache-2.0
import functools
import importlib.util
import pathlib
import shutil
import socket
import subprocess

import pytest

import broker as brokers
from boot import Guest, unpacked

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build"
# The guest's.
LIBRARY = BUILD / "forward/libcuda.so.1"
NVML = BUILD / "forward/libnvidia-ml.so.1"


def module_of(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The programs, and what they need, are those of the folder beside; so are their fixtures.
programs = module_of("programs_conftest", ROOT / "tests/programs/conftest.py")
gpu, program, ptx = programs.gpu, programs.program, programs.ptx


def brought(script, which):
    """The path of what a script of this folder fetches: brought("kernel", "oldest")."""
    done = subprocess.run([ROOT / "tests/vm" / script, which], capture_output=True, text=True, timeout=600)
    if done.returncode == 69:
        pytest.skip(f"no {script} of the distribution can be fetched")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def own_program(program):
    """own_program("hold"): a program of this folder, compiled as those of the folder beside."""
    def compile_program(name):
        source = HERE / f"{name}.c"
        return programs.make(name, ["gcc", "-O1", "-g", "-Wall", source, "-o", "@OUT@", f"-I{ROOT}/src",
                                    f"-I{programs.toolkit()}/include", f"-L{BUILD}/softgpu", "-lcuda", "-lm", "-pthread"],
                             [source, programs.HERE / "program.h", ROOT / "src/forward/virtio-abi.h"])
    return compile_program


@pytest.fixture
def guest():
    """guest(command): a running virtual machine, killed in the end."""
    made = []

    def start(command, **more):
        made.append(Guest(command, **more))
        return made[-1]
    yield start
    for one in made:
        one.kill()


@pytest.fixture
def qemu():
    """qemu("11"): the program of that version."""
    return lambda version: brought("qemu", version)


class Driver:
    """The guest's driver, built for a kernel of the distribution."""

    def __init__(self, which):
        folder = ROOT / "build/vm" / f"driver-{which}"
        folder.mkdir(parents=True, exist_ok=True)
        self.kernel = unpacked(brought("kernel", which), folder)
        command = [ROOT / "guest-driver/build-for", brought("headers", which), folder, "W=1"]
        if shutil.which("sparse"):
            command.append("C=1")
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.said = done.stdout + done.stderr
        assert done.returncode == 0, self.said
        tree = pathlib.Path(ROOT, "build/vm", which, "tree")
        # Of the bus, what is no part of the kernel itself, in the order of their needs.
        bus = [next(tree.rglob(name + ".ko*"), None) for name in
               ("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci")]
        self.bus = [str(path) for path in bus if path]
        # Another driver of the same virtio device.
        self.virtiofs = [str(path) for name in ("fuse", "virtiofs") for path in tree.rglob(name + ".ko*")]
        self.module = str(folder / "cotenant.ko")
        # Debuggers' part is most of it.
        subprocess.run(["strip", "-g", self.module], check=True)

    def modules(self, parameters="", before=()):
        return [*self.bus, *before, f"{self.module} {parameters}"]


@pytest.fixture(scope="session")
def driver():
    """driver("oldest"): the guest's driver for that kernel, built once."""
    return functools.cache(Driver)


def shell(line):
    return ["sh", "-c", line]


class Broker(brokers.Broker):
    """For one virtual machine."""

    def __init__(self, folder, env):
        super().__init__("--vm", folder / "machine", env)

    def devices(self, share="on"):
        return ["-machine", "q35,memory-backend=ram", "-object", f"memory-backend-memfd,id=ram,size=1024M,share={share}",
                "-chardev", f"socket,id=cotenant,path={self.socket}", "-device",
                "vhost-user-fs-pci,chardev=cotenant,tag=cotenant,num-request-queues=2,queue-size=1024,page-per-vq=on"]


@pytest.fixture
def broker(gpu, tmp_path):
    made = []

    def make_broker(name="one"):
        folder = tmp_path / name
        folder.mkdir()
        made.append(Broker(folder, gpu))
        return made[-1]
    yield make_broker
    for one in made:
        one.kill()


# Where the device of a machine that runs can be put, and pulled out of.
SLOT = ["-device", "pcie-root-port,id=gpu-slot,chassis=1"]


def monitor(path, command):
    """What QEMU's monitor says to a command."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        said = ""
        for line in (None, command):
            if line:
                connection.sendall(line.encode() + b"\n")
                said = ""
            while not said.endswith("(qemu) "):
                piece = connection.recv(4096).decode()
                assert piece, f"the monitor has ended: {said}"
                said += piece
    return said


def monitor_says(path, command, what):
    """Does it? A QEMU that has just started does not listen yet."""
    try:
        return what in monitor(path, command)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
