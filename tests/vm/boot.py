# SPDX-License-Identifier: Apache-2.0
"""Runs programs of the build under another kernel: QEMU, software emulation, an initramfs.

The guest has nothing but busybox, the programs, their arguments that are files, and the
libraries that they need, each at the path that it has here. Its init runs one after the
other and says what each answered on the serial console.
"""
import contextlib
import lzma
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import threading
import time

from processes import ending_with_us

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /usr/bin /sbin
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t bpf none /sys/fs/bpf
mount -t tracefs none /sys/kernel/tracing
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
{modules}
echo "@kernel $(uname -r) lockdown=$(cat /sys/kernel/security/lockdown 2>/dev/null)"
export PATH=/bin:/usr/bin:/sbin HOME=/tmp
{commands}
echo "@end"
poweroff -f
"""

COMMAND = """echo "@begin {name}"
{environment} timeout -s KILL {seconds} {command} 2>&1
echo "@result {name} $?"
"""

RESULT = re.compile(r"^@begin (\S+)\r?\n(.*?)^@result \1 (\d+)", re.M | re.S)


def libraries_of(path):
    out = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def put(root, path):
    target = root / str(path).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def decompressed(data):
    """By what it begins with; data as it is, where it is none of what kernels and their modules are compressed by."""
    if data.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


def put_modules(root, modules):
    """Modules as files without compression; returns the lines that load them, in their order. A module may have
    parameters behind its path."""
    (root / "modules").mkdir()
    lines = []
    for module, _, parameters in (str(module).partition(" ") for module in modules):
        name = pathlib.Path(module).name.removesuffix(".xz").removesuffix(".zst")
        (root / "modules" / name).write_bytes(decompressed(pathlib.Path(module).read_bytes()))
        lines.append(f"insmod /modules/{name} {parameters}\n")
    return "".join(lines)


def unpacked(kernel, folder):
    """The kernel itself out of its compressed image, which an emulated machine takes 5 s to unpack; the image
    where it is compressed by something else. Where it lies in there, the image's header says; four bytes of its
    size follow it."""
    image = pathlib.Path(kernel).read_bytes()
    setup_sectors = image[0x1f1]
    offset, length = struct.unpack_from("<II", image, 0x248)
    begin = (1 + setup_sectors) * 512 + offset
    path = folder / "vmlinux"
    path.write_bytes(decompressed(image[begin:begin + length - 4]))
    return str(path) if path.read_bytes()[:4] == b"\x7fELF" else kernel


def make_initramfs(folder, commands, environment, seconds, modules=(), files=()):
    """commands: {name: [program, argument...]}; returns the path of the archive."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    put(root, "/bin/busybox")
    for command in commands.values():
        for word in map(str, command):
            if word.startswith("/") and pathlib.Path(word).is_file():
                put(root, word)
                for library in libraries_of(word):
                    put(root, library)
    for path in files:
        put(root, path)
        for library in libraries_of(path):
            put(root, library)
    env = " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())
    lines = [COMMAND.format(name=name, seconds=seconds, environment=env, command=shlex.join(map(str, command)))
             for name, command in commands.items()]
    init = root / "init"
    init.write_text(INIT.replace("{commands}", "".join(lines)).replace("{modules}\n", put_modules(root, modules)))
    init.chmod(0o755)
    archive = folder / "initramfs"
    subprocess.run("find . | cpio --quiet -o -H newc | gzip -1", shell=True, cwd=root, check=True,
                   stdout=archive.open("wb"))
    return archive


def machine(kernel, archive, append="", devices=(), qemu="qemu-system-x86_64"):
    """The command line of a virtual machine. One thread emulates both processors in turn: QEMU 7.2 with a thread
    each now and then runs what it translated of code that the other processor has changed meanwhile, and a kernel
    that patches its own code (1 boot of 25 with 7.3) meets a breakpoint that it has taken away already.

    Nor does the kernel try out whether its timer ticks: where this machine is busy, an emulated one may not tick while
    it looks, and it panics ("IO-APIC + timer doesn't work")."""
    return [qemu, "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults",
            "-display", "none", "-serial", "stdio", "-kernel", kernel, "-initrd", str(archive),
            "-append", f"console=ttyS0 quiet panic=-1 mitigations=off no_timer_check {append}", *devices]


def results_of(console):
    text = console.decode(errors="replace").replace("\r\n", "\n")
    return {name: (int(status), out) for name, out, status in RESULT.findall(text)}, text


def boot(folder, kernel, commands, append="", environment=None, seconds=300, timeout=600, modules=(), files=(),
         **more):
    """Boots and runs the commands; returns ({name: (exit status, output)}, the console's text). More: as machine()."""
    archive = make_initramfs(folder, commands, environment or {}, seconds, modules, files)
    command = [*machine(kernel, archive, append, **more), "-no-reboot"]
    with subprocess.Popen(ending_with_us(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as vm:
        try:
            console = vm.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            vm.kill()
            console = vm.communicate()[0]
    return results_of(console)


class Guest:
    """A virtual machine that goes on while the test does: its console is read and written. `cotenant vm run` ends the
    one that it has started when it is asked to end."""

    def __init__(self, command, **more):
        signal_of_end = "TERM" if pathlib.Path(command[0]).name == "cotenant" else "KILL"
        self.process = subprocess.Popen(ending_with_us(command, signal_of_end), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True, **more)
        self.text = ""
        self.seen = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while data := self.process.stdout.read1():
            self.text += data.decode(errors="replace").replace("\r", "")

    def wait_for(self, pattern, seconds=300):
        """What the console says next that matches; what was waited for before does not count. It comes byte by byte: a
        pattern has an end that the text before it is not taken for."""
        end = time.monotonic() + seconds
        goes_on = True
        while goes_on and time.monotonic() < end:
            # Looked at first: what it said last is read by then.
            goes_on = self.reader.is_alive()
            found = re.compile(pattern).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in:\n{self.text[-3000:]}")

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self):
        """With all that it has started: as long as any of that lives the console is open, and its reader waits."""
        if self.reader.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
