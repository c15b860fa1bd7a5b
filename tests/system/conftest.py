# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: a daemon of their own, and tenants that do what they are told.

Each test has its own device state, books, files and socket, so that it neither sees nor
disturbs another daemon on the machine, and checks at its end that nothing is left of it.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from waiting import PATIENCE, eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
COTENANT = ROOT / "build/bin/cotenant"
COTENANTD = ROOT / "build/bin/cotenantd"
TENANT = ROOT / "build/tests/system/tenant"
SOFTGPU = ROOT / "build/softgpu"

MIB = 1 << 20
GIB = 1 << 30
OUT_OF_MEMORY = 2
# Users without an account: the kernel knows them by number alone.
ALICE, BOB = 61001, 61002


def as_user(user):
    """What a command begins with that a user runs; nothing without one."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []


class Tenant:
    """A running tenant program: ask() sends it a command and returns its answer in words."""

    def __init__(self, command, env):
        self.process = subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = b""

    def send(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def answer(self, seconds=PATIENCE):
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.lines:
                left = end - time.monotonic()
                assert left > 0 and selector.select(left), "the tenant does not answer"
                chunk = os.read(self.process.stdout.fileno(), 65536)
                assert chunk, f"the tenant has ended: {self.process.stderr.read().decode()}"
                self.lines += chunk
        line, self.lines = self.lines.split(b"\n", 1)
        return line.decode().split()

    def has_answered(self, seconds):
        """Whether an answer comes within that time; it stays to be read."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return bool(self.lines or selector.select(seconds))

    def ask(self, line, seconds=PATIENCE):
        self.send(line)
        return self.answer(seconds)

    def started(self):
        assert self.answer() == ["0"]
        return self

    def alloc(self, size):
        """The address, or the code as a negative number."""
        code, address = map(int, self.ask(f"alloc {size}"))
        return address if code == 0 else -code

    def info(self):
        code, free, total = map(int, self.ask("info"))
        assert code == 0
        return free, total

    def pid(self):
        return int(self.ask("pid")[0])

    def end(self):
        """Ends it in good order and returns its exit code."""
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """Ends it although it does not listen; what `cotenant run` has started hears of it, too."""
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()


class Host:
    """A daemon on a software GPU, with all it writes below one folder."""

    def __init__(self, env):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cotenant-test-"))
        self.dir.chmod(0o755)
        (self.dir / "gpu").mkdir()
        (self.dir / "gpu").chmod(0o1777)
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("SOFTGPU_", "CUDA_", "COTENANT_"))}
        self.env |= {"SOFTGPU_DIR": str(self.dir / "gpu"), "LD_LIBRARY_PATH": str(SOFTGPU),
                     "SOFTGPU_MEMORY": "8G", "SOFTGPU_CONTEXT": "64M",
                     "COTENANT_SOCKET": str(self.dir / "socket")} | env
        self.options = ["--socket", self.dir / "socket", "--state-dir", self.dir / "state",
                        "--config-dir", self.dir / "conf", "--nvml", SOFTGPU / "libnvidia-ml.so.1"]
        self.become = []  # what the daemon is started by
        self.daemon = None
        self.tenants = []

    def daemon_command(self, *words):
        return [str(word) for word in [*self.become, COTENANTD, *self.options, *words]]

    def start(self):
        log = open(self.dir / "log", "ab")
        self.daemon = subprocess.Popen(self.daemon_command(), env=self.env, stdout=log, stderr=log)
        log.close()
        eventually(lambda: self.command("version", "--json").stdout.find('"pid"') > 0, "the daemon starts")

    def learn_contexts(self):
        """Lets the daemon see what a context costs on each device, so that it is charged from its first moment."""
        for device in range(2):
            teacher = self.run(name="teacher", device=device).started()
            eventually(lambda: self.json("api", "devices.list")["devices"][device]["memory.context"],
                       "the cost of a context is known")
            teacher.end()
        eventually(lambda: not self.json("list")["tenants"], "the teacher is gone")

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()

    def kill_holder(self):
        """Kills what the daemon leaves behind to hold and answer calls; it has the daemon's command line."""
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == str(COTENANTD).encode() and str(self.dir / "state").encode() in words:
                kill_if_there(int(entry.parent.name))

    def stop(self):
        self.daemon.terminate()
        assert self.daemon.wait(PATIENCE) == 0, self.log()

    def log(self):
        return (self.dir / "log").read_text()

    def command(self, *words, user=None):
        return subprocess.run([str(word) for word in [*as_user(user), COTENANT, *words]], env=self.env, text=True,
                              capture_output=True, timeout=60)

    def cotenant(self, *words, user=None):
        """Runs a verb that must succeed, and returns what it prints."""
        done = self.command(*words, user=user)
        assert done.returncode == 0, f"cotenant {words}: {done.stderr}"
        return done.stdout

    def refused(self, *words, user=None):
        """Runs a verb that must fail, and returns what it says."""
        done = self.command(*words, user=user)
        assert done.returncode not in (0, 139), f"cotenant {words} succeeded: {done.stdout}"
        return done.stderr

    def json(self, *words, user=None):
        return json.loads(self.cotenant(*words, "--json", user=user))

    def book(self, tenant, gpu=0):
        """A tenant's numbers on a device."""
        return self.json("show", tenant)["devices"][gpu]

    def settled(self, device=0):
        """Waits until what tenants are charged for is what the device says, and returns those bytes. Whoever reads
        the books of a program that does nothing any more reads the same from then on."""
        def numbers():
            book = self.json("api", "devices.list")["devices"][device]
            return book["memory.used"] == book["memory.charged"] and book["memory.used"]
        return eventually(numbers, "the books are what the device says")

    def events(self, kind, tenant=None):
        lines = self.cotenant("events", "--json", "--lines", "1000").splitlines()
        events = [event for event in map(json.loads, lines) if event["kind"] == kind]
        return [event for event in events if tenant in (None, event["tenant"])]

    def told(self, kind, tenant=None):
        """The events of a kind, of which there is to be one: the daemon hears of a call after whoever made it."""
        return eventually(lambda: self.events(kind, tenant), f"there is an event: {kind}")

    def waiting(self, tenant):
        """The calls of a tenant that wait, of which there is to be one."""
        return eventually(lambda: self.json("show", tenant)["waiting"], "a call waits")

    def run(self, *options, name=None, user=None, device=0):
        """Starts a tenant program by `cotenant run`."""
        named = ["--name", name] if name else []
        return self.add([*as_user(user), COTENANT, "run", *named, *options, "--", TENANT, device])

    def spawn(self, user=None, device=0):
        """Starts a tenant program as anybody would, without cotenant."""
        return self.add([*as_user(user), TENANT, device])

    def add(self, command):
        """Starts a tenant program by any command; "cotenant" stands for the one of this build."""
        command = [COTENANT if word == "cotenant" else word for word in command]
        tenant = Tenant(command, self.env)
        self.tenants.append(tenant)
        return tenant

    def cgroups_of_runs(self):
        """The folders that were made for what `cotenant run` began, and jobs."""
        root, files = cgroup_root(), (self.dir / "state").glob("run.d/*.ini")
        paths = [path for file in files for path in re.findall(r"(?m)^match *= *cgroup:(/\S+)", file.read_text())]
        return [root / path.lstrip("/") for path in paths] if root else []

    def abandon(self):
        """Ends everything at once where something is wrong with it: what is left would limit whoever comes next."""
        for tenant in self.tenants:
            tenant.kill()
        if self.daemon:
            self.kill()
        cgroups = self.cgroups_of_runs()
        eventually(lambda: not any(map(killed_inside, cgroups)), "what ran has ended")
        subprocess.run(self.daemon_command("--remove"), check=False, timeout=60, capture_output=True)
        self.kill_holder()
        for mount in mounts_below(self.dir):
            subprocess.run(["umount", "--lazy", mount], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    @contextlib.contextmanager
    def abandoned_if_in_vain(self):
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    def close(self):
        """Ends everything, and checks that nothing is left."""
        for tenant in self.tenants:
            if tenant.process.poll() is None:
                tenant.process.stdin.close()
                try:
                    tenant.process.wait(5)
                except subprocess.TimeoutExpired:
                    tenant.terminate()
        if self.daemon.poll() is None:
            eventually(lambda: not [t for t in self.json("list")["tenants"] if t["origin"] == "run"],
                       "runs are forgotten after their last process")
            self.stop()
        subprocess.run(self.daemon_command("--remove"), check=True, timeout=60)
        assert not mounts_below(self.dir)
        assert not list((self.dir / "state").glob("run.d/*"))
        shutil.rmtree(self.dir)


def mounts_below(folder):
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    return [mount for mount in mounts if mount.startswith(f"{folder}/")]


def kill_if_there(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def killed_inside(folder):
    """Kills who is in a cgroup; whether anybody was."""
    try:
        pids = (folder / "cgroup.procs").read_text().split()
    except FileNotFoundError:
        return False
    for pid in pids:
        kill_if_there(int(pid))
    return bool(pids)


def cgroup_root():
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, path, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(path)
    return None


def require_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@contextlib.contextmanager
def machine_to_itself():
    """
    Other runs of these tests wait until this is over: a limit on a user or on everybody counts for each
    process of the machine, and so for the tenants of another run, whichever daemon it has.
    """
    with open(pathlib.Path(tempfile.gettempdir()) / "cotenant-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def machine():
    require_root()
    with machine_to_itself():
        yield


def host_in_use(env, *options, become=(), knows_contexts=True):
    """What the fixtures yield: a host until the test is over; skips where the machine cannot enforce limits."""
    host = Host(env)
    with host.abandoned_if_in_vain():
        host.options += options
        host.become += become
        host.start()
        is_enforcing = "rung none" not in host.cotenant("version")
        if is_enforcing and knows_contexts:
            host.learn_contexts()
    if not is_enforcing:
        reason = host.log().strip().splitlines()[-1]
        host.close()
        pytest.skip(f"this machine cannot enforce limits: {reason}")
    yield host
    with host.abandoned_if_in_vain():
        host.close()


@pytest.fixture
def host(machine):
    yield from host_in_use({})


@pytest.fixture
def second_host(machine):
    yield from host_in_use({})


@pytest.fixture
def small_host(machine):
    """A host whose devices have 4 GiB each."""
    yield from host_in_use({"SOFTGPU_MEMORY": "4G"})


@pytest.fixture
def large_context_host(machine):
    """A host where a context takes 300 MiB."""
    yield from host_in_use({"SOFTGPU_CONTEXT": "300M"})


@pytest.fixture
def new_driver_host(machine):
    """A host whose daemon has never seen a context of this driver, each of which takes 300 MiB."""
    yield from host_in_use({"SOFTGPU_CONTEXT": "300M"}, knows_contexts=False)


@pytest.fixture
def supervised_host(machine):
    """A host whose calls are answered by its holder, on each kernel, and wait for it no longer than a second."""
    yield from host_in_use({}, "--rung", "supervised", "--failure-wait", "1s")


@pytest.fixture
def cgroup():
    """A cgroup of our own; its path as the daemon calls it, and its folder."""
    root = cgroup_root()
    folder = root / f"cotenant-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    yield f"/{folder.name}", folder
    for pid in (folder / "cgroup.procs").read_text().split():
        kill_if_there(int(pid))
    eventually(lambda: not (folder / "cgroup.procs").read_text(), "the cgroup is empty")
    folder.rmdir()
