# SPDX-License-Identifier: Apache-2.0
"""
A machine that libvirt starts, by the XML of docs/vm.md. By hand, as root, where libvirtd runs: `pytest tests/vm/libvirt.py`.
What differs from the document's is that the processor is emulated, and that the guest is the tests'.
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from boot import make_initramfs
from broker import Broker
from conftest import LIBRARY, NVML, ROOT
from test_machines import GIB, host, machine, said, system  # noqa: F401
from waiting import eventually

URI = "qemu:///system"
APPEND = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"


def virsh(*words):
    return subprocess.run(["virsh", "-c", URI, *map(str, words)], capture_output=True, text=True, check=True).stdout


def documented():
    """The document's domain."""
    lines = (ROOT / "docs/vm.md").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("    <domain "))
    end = lines.index("    </domain>")
    return "\n".join(line[4:] for line in lines[begin:end + 1])


def changed(xml, *pairs):
    for old, new in pairs:
        xml, n = re.subn(old, new, xml, flags=re.S)
        assert n, old
    return xml


@pytest.fixture
def folder():
    """That QEMU's user can enter."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="cotenant-libvirt."))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


class Domain:
    """The document's machine, with a guest that runs one program."""

    def __init__(self, folder, built, name, program):
        archive = make_initramfs(folder, {name: [program]}, {"LD_LIBRARY_PATH": str(LIBRARY.parent)}, 600,
                                 modules=built.modules(), files=[LIBRARY, NVML])
        kernel, self.console, self.socket = folder / "kernel", folder / "console", folder / "socket/socket"
        shutil.copy(built.kernel, kernel)
        subprocess.run(["install", "-d", "-m", "710", "-g", "libvirt-qemu", self.socket.parent], check=True)
        xml = folder / "stud07.xml"
        xml.write_text(changed(
            documented(), ("type='kvm'", "type='qemu'"), ("host-passthrough", "maximum"), ("<disk .*</disk>", ""),
            ("<interface[^>]*>", ""), ("<vcpu>2", "<vcpu>1"),
            ("</type></os>", f"</type><kernel>{kernel}</kernel><initrd>{archive}</initrd><cmdline>{APPEND}</cmdline></os>"),
            ("/run/stud07/socket", str(self.socket)),
            ("<console type='pty'/>", f"<console type='file'><source path='{self.console}'/></console>")))
        subprocess.run(["virt-xml-validate", xml], check=True)
        virsh("define", xml)

    def text(self):
        return self.console.read_text(errors="replace").replace("\r", "")

    def says(self, pattern):
        eventually(lambda: re.search(pattern, self.text()), f"the guest says {pattern}", 300)


@pytest.fixture
def domain(folder, driver, own_program):
    def make(name):
        return Domain(folder, driver("oldest"), name, own_program(name))
    yield make
    for what in ("destroy", "undefine"):
        subprocess.run(["virsh", "-c", URI, what, "stud07"], check=False)


def test_the_documents_machine_starts_and_ends(folder, gpu, domain):
    one = domain("hold")
    broker = Broker("--vm", one.socket, gpu)
    # `cotenant vm run` does that; its folder keeps others out.
    one.socket.chmod(0o666)
    try:
        for _ in range(2):
            virsh("start", "stud07")
            one.says(r"ready: \d+ of")
            assert len(broker.workers()) == 1
            virsh("destroy", "stud07")
            eventually(lambda: not broker.workers(), "the worker is gone")
    finally:
        broker.kill()


def test_it_has_its_limit(domain, host):  # noqa: F811
    one = domain("limit")
    host.env["XDG_STATE_HOME"] = str(host.dir / "kept")
    listening = subprocess.Popen([system.COTENANT, "vm", "run", "--name", "stud07", "--memory.max", "4G",
                                  "--listen", one.socket], env=host.env)
    try:
        eventually(one.socket.exists, "the broker listens")
        virsh("start", "stud07")
        one.says(said(4 * GIB))
        host.cotenant("set", "stud07", f"memory.max={5 * GIB}")
        one.says(said(5 * GIB))
        virsh("destroy", "stud07")
    finally:
        listening.terminate()
        listening.wait(60)
