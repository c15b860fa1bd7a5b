# SPDX-License-Identifier: Apache-2.0
"""
A Slurm cluster of its own on this machine: munged, slurmctld and three slurmd, on loopback or in
a network of their own.

All it writes is below one folder, its ports are its own, and what it started is ended by its
process id. Each node has a daemon of Cotenant and two devices of a software GPU of its own.
"""
import contextlib
import json
import os
import pathlib
import pwd
import re
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from networks import HEAD
from system_conftest import ROOT, SOFTGPU, TENANT, Host, eventually

PLUGINS = ROOT / "build/src/cluster/slurm"
BATCH = ROOT / "build/bin/cotenant-slurm"
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel"]
NODES = ["n1", "n2", "n3"]
# A user who is in every Debian's /etc/passwd: slurmd starts nothing for one who is not.
USER = "games"
# MiB of a device, and what of it is for jobs: max(3 %, 512 MiB) are kept back.
DEVICE, SHARDS = 4096, 3584

SLURM_CONF = """
ClusterName=cotenant
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={ctld_port}
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmdSpoolDir={dir}/spool/%n
StateSaveLocation={dir}/state
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
TaskProlog={dir}/task-prolog
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType={scheduler}
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
CommunicationParameters={communication}
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PluginDir={plugins}:{system_plugins}
JobSubmitPlugins=cotenant
PlugStackConfig={dir}/plugstack.conf
GresTypes={types}
MinJobAge=3600
KillWait=2
MailProg=/bin/true
SlurmdTimeout={slurmd_timeout}
MessageTimeout={message_timeout}
SlurmdParameters=config_overrides
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

NODE_LINE = ("NodeName={node} NodeHostname={host} NodeAddr={address} Port={port} CPUs=64 RealMemory=4000 "
             "Gres=gpu:g0:1,gpu:g1:1,shard:g0:{shards},shard:g1:{shards} State=UNKNOWN\n")

CGROUP_CONF = """
CgroupPlugin=autodetect
CgroupMountpoint=/sys/fs/cgroup
ConstrainDevices=yes
ConstrainCores=no
ConstrainRAMSpace=no
"""

# The nodes are one machine: what tells a program which software GPU it has differs by node. What
# jobs are to find before the machine's own programs is in a folder of the cluster.
TASK_PROLOG = """#!/bin/sh
echo "export SOFTGPU_DIR={dir}/nodes/$SLURMD_NODENAME/gpu"
echo "export SOFTGPU_MEMORY={memory}M"
echo "export SOFTGPU_CONTEXT=64M"
echo "export LD_LIBRARY_PATH={library}"
echo "export PATH={dir}/bin:$PATH"
"""


def missing():
    """Why there can be no cluster here, or None."""
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    if absent:
        return f"Slurm is not installed: no {absent[0]}"
    if not (PLUGINS / "spank_cotenant.so").exists():
        return "built without Slurm's headers"
    return None


def free_ports(n):
    """Below those that the kernel gives to connections: nobody has taken one before it is listened on, or again."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = []
    for port in range(first - 1, 1023, -1):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == n:
            return ports
    raise AssertionError(f"{n} ports are not free")


def is_before(*release):
    version = re.search(r"(\d+)\.(\d+)", subprocess.run(["slurmctld", "-V"], capture_output=True, text=True).stdout)
    return tuple(map(int, version.groups())) < release


def scheduler():
    """
    The one of Slurm's schedulers that starts jobs here: the simple one up to 23.02.

    Since 23.11 that one starts none where accounting has no database: it finds no list of accounts, and takes every
    job's for invalid. Backfill does not ask.
    """
    return "sched/builtin" if is_before(23, 11) else "sched/backfill"


def gres_types():
    """With mps, where jobs were seen to hear of their devices all the same: who asks for it is told what to ask for."""
    return "gpu,mps,shard" if is_before(23, 11) else "gpu,shard"


def system_plugins():
    """Where the distribution keeps Slurm's own."""
    listed = subprocess.run(["dpkg", "-L", "slurm-wlm-basic-plugins"], capture_output=True, text=True).stdout
    found = [pathlib.Path(line).parent for line in listed.splitlines() if line.endswith("/auth_munge.so")]
    return found[0] if found else pathlib.Path("/usr/lib/slurm")


class Job:
    """A job whose program does what it is told: the script joins the tenant program to two pipes."""

    def __init__(self, cluster, number, folder):
        self.cluster = cluster
        self.number = number
        self.folder = folder
        self.pipes = {name: os.open(folder / name, os.O_RDWR | os.O_NONBLOCK) for name in ("in", "out")}
        self.lines = b""

    def send(self, line):
        os.write(self.pipes["in"], f"{line}\n".encode())

    def has_answered(self, seconds):
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipes["out"], selectors.EVENT_READ)
            while b"\n" not in self.lines and selector.select(max(0, end - time.monotonic())):
                self.lines += os.read(self.pipes["out"], 65536)
        return b"\n" in self.lines

    def answer(self, seconds=60):
        assert self.has_answered(seconds), f"job {self.number} does not answer: {self.said()}"
        line, self.lines = self.lines.split(b"\n", 1)
        return line.decode().split()

    def ask(self, line, seconds=60):
        self.send(line)
        return self.answer(seconds)

    def started(self):
        answer = self.answer()
        assert answer == ["0"], f"{answer}: {self.said()}\n{self.node().command('events').stdout}"
        return self

    def outgrow(self, size):
        """Takes so much that it may be ended before it has said that it has it."""
        self.send(f"alloc {size}")

    def restarted(self):
        """It has begun again; what it said last before that is passed over."""
        while (answer := self.answer()) != ["0"]:
            assert answer[0] == "0" and len(answer) == 2, f"{answer}: {self.said()}"

    def alloc(self, size):
        """The address, or the code as a negative number."""
        code, address = map(int, self.ask(f"alloc {size}"))
        return address if code == 0 else -code

    def said(self):
        """What it wrote on standard error."""
        log = self.folder / "err"
        return log.read_text() if log.exists() else ""

    def show(self, key):
        return self.cluster.show_job(self.number).get(key)

    def state(self):
        return self.show("JobState")

    def node(self):
        return self.cluster.nodes[self.show("NodeList")]

    def tenant(self):
        return f"job-{self.number}"

    def book(self, gpu=0):
        return self.node().book(self.tenant(), gpu)

    def close(self):
        for pipe in self.pipes.values():
            os.close(pipe)


class Cluster:
    """On loopback, or where a network says."""

    names = NODES
    slurmd_timeout, message_timeout = 60, 10
    communication = "NoCtldInAddrAny,NoInAddrAny"

    def __init__(self, network=None):
        self.network = network
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cotenant-slurm-"))
        self.dir.chmod(0o755)
        self.daemons = {}  # by name
        self.nodes = {}    # hosts, by the node's name
        self.jobs = []
        self.evictions = {}  # the last of each host that was seen
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("SLURM", "SOFTGPU_", "CUDA_", "COTENANT_"))}
        self.env["SLURM_CONF"] = str(self.dir / "slurm.conf")

    def __enter__(self):
        try:
            self.write_files()
            self.start_nodes()
            self.start_slurm()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *unused):
        self.close()

    def address(self, name):
        return self.network.addresses[name] if self.network else "127.0.0.1"

    def inside(self, name):
        """What the commands of a node begin with, or those of the head."""
        return self.network.inside(name if name in self.names else HEAD) if self.network else []

    # --- starting and ending ---

    def write_files(self):
        for name in ("bin", "munge", "state", "spool", "nodes", "dev", "jobs"):
            (self.dir / name).mkdir()
        (self.dir / "jobs").chmod(0o1777)
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + len(self.names))
        conf = SLURM_CONF.format(dir=self.dir, host=host, address=self.address(HEAD), ctld_port=ports[0], plugins=PLUGINS,
                                 system_plugins=system_plugins(), scheduler=scheduler(), types=gres_types(),
                                 communication=self.communication, slurmd_timeout=self.slurmd_timeout,
                                 message_timeout=self.message_timeout)
        gres = ""
        for i, node in enumerate(self.names):
            conf += NODE_LINE.format(node=node, host=host, address=self.address(node), port=ports[1 + i],
                                     shards=SHARDS)
            for gpu in range(2):
                device = self.dir / f"dev/{node}-nvidia{gpu}"
                os.mknod(device, 0o600 | 0o020000, os.makedev(195, 10 * i + gpu))
                gres += f"NodeName={node} Name=gpu Type=g{gpu} File={device}\n"
                gres += f"NodeName={node} Name=shard Type=g{gpu} Count={SHARDS} File={device}\n"
        # Partitions come behind the nodes that they are of.
        lines = conf.strip().splitlines()
        lines.sort(key=lambda line: line.startswith("PartitionName"))
        conf = "\n".join(lines) + "\n"
        (self.dir / "slurm.conf").write_text(conf)
        (self.dir / "patient.conf").write_text(re.sub("(?m)^MessageTimeout=.*", "MessageTimeout=60", conf))
        (self.dir / "gres.conf").write_text(gres)
        (self.dir / "cgroup.conf").write_text(CGROUP_CONF.lstrip())
        (self.dir / "plugstack.conf").write_text(
            f"required {PLUGINS}/spank_cotenant.so socket={self.dir}/nodes/%n/socket\n")
        (self.dir / "task-prolog").write_text(TASK_PROLOG.format(dir=self.dir, memory=DEVICE, library=SOFTGPU))
        (self.dir / "task-prolog").chmod(0o755)
        (self.dir / "munge/key").write_bytes(os.urandom(1024))
        (self.dir / "munge/key").chmod(0o600)

    def start_nodes(self):
        for node in self.names:
            host = Host({"SOFTGPU_MEMORY": f"{DEVICE}M", "SLURM_CONF": self.env["SLURM_CONF"]})
            host.options += ["--sample", "100ms", "--sample-tense", "50ms",
                             "--batch-program", BATCH]
            host.become += self.inside(node)
            self.nodes[node] = host
            (self.dir / "nodes" / node).symlink_to(host.dir)
            host.start()

    def start_slurm(self):
        munge = self.dir / "munge"
        self.start("munged", ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                              f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"])
        eventually(lambda: self.run("munge", "-n", f"--socket={munge}/socket").returncode == 0, "munged answers")
        self.start_controller()
        for node in self.names:
            self.start_slurmd(node)
        eventually(lambda: self.node_states() == ["idle"] * len(self.names), "the nodes are idle")
        self.wait_for_devices()

    def start(self, name, command):
        log = open(self.dir / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen([*self.inside(name), *command], env=self.env, stdin=subprocess.DEVNULL,
                                              stdout=log, stderr=log)
        log.close()

    def start_controller(self):
        self.start("slurmctld", ["slurmctld", "-D", "-f", self.env["SLURM_CONF"]])
        eventually(lambda: self.run("scontrol", "ping").stdout.find("is UP") > 0, "slurmctld answers")

    def wait_for_devices(self):
        """slurmctld's plugin asks it for the devices, and refuses whoever needs whole ones before it has heard."""
        eventually(lambda: "not known yet" not in self.run("sbatch", "--test-only", "--gres=gpu:1", "--wrap=true").stderr,
                   "the devices are known")

    def start_slurmd(self, node):
        self.start(node, ["slurmd", "-D", "-N", node, "-f", self.env["SLURM_CONF"]])

    def kill(self, name, sig=signal.SIGKILL):
        self.daemons[name].send_signal(sig)
        self.daemons[name].wait(60)

    def close(self):
        with contextlib.suppress(Exception):
            self.end_jobs()
        # In the other direction than they were started: who is gone is not waited for.
        for name in reversed(list(self.daemons)):
            process = self.daemons[name]
            if process.poll() is not None:
                continue
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # All of it, also where something is left of one of them.
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.dir)
            stack.callback(remove_cgroups, self.names)
            for host in self.nodes.values():
                stack.callback(host.close)

    # --- asking Slurm ---

    def run(self, *words, user=None, env=None, text=None, timeout=120):
        """Commands wait longer for an answer than daemons do for each other."""
        become = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"] if user else []
        patient = {"SLURM_CONF": str(self.dir / "patient.conf")}
        return subprocess.run([str(word) for word in [*self.inside(HEAD), *become, *words]],
                              env=self.env | patient | (env or {}), text=True, capture_output=True, cwd="/",
                              timeout=timeout,
                              **({"input": text} if text is not None else {"stdin": subprocess.DEVNULL}))

    def do(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode != 0, f"{words} is not refused: {done.stdout}"
        return done.stderr

    def node_states(self):
        return [line.strip() for line in self.run("sinfo", "-hN", "-o", "%T").stdout.split()]

    def show_job(self, number):
        shown = self.do("scontrol", "-o", "-d", "show", "job", number)
        return dict(re.findall(r"(\w+)=(\S*)", shown))

    def save(self, job):
        """
        Slurm writes down what it knows of a running job, which it forgets otherwise, and then ends, when it is killed.

        It does so some seconds after an order about the job; what backfill begins it does not save by itself.
        """
        mark = f"saved-{job.number}"
        self.do("scontrol", "update", f"JobId={job.number}", f"Comment={mark}")

        def is_saved():
            with contextlib.suppress(FileNotFoundError):
                return mark.encode() in (self.dir / "state/job_state").read_bytes()

        eventually(is_saved, f"job {job.number} is saved")

    def end_jobs(self):
        self.run("scancel", "--user=root")
        self.run("scancel", f"--user={USER}")
        eventually(self.has_no_jobs, "no job is left")
        for job in self.jobs:
            job.close()
        self.jobs.clear()

    def come_to_rest(self):
        """No job, no tenant, and what is booked is what is used: nothing."""
        eventually(self.has_no_jobs, "no job is left")
        for host in self.nodes.values():
            eventually(lambda: not host.json("list")["tenants"], "no tenant is left")
            self.forget_evictions(host)
        eventually(lambda: self.node_states() == ["idle"] * len(self.names), "the nodes are idle")

    def has_no_jobs(self):
        done = self.run("squeue", "-h")
        return done.returncode == 0 and not done.stdout.strip()

    def forget_evictions(self, host):
        """No more than three are ended of a device in ten minutes, but a daemon that begins anew knows of none."""
        last = max((event["id"] for kind in ("evicted", "ended") for event in host.events(kind)), default=0)
        if last != self.evictions.get(host, 0):
            host.stop()
            host.start()
        self.evictions[host] = last

    # --- jobs ---

    def program(self, device=0, command=TENANT):
        """A folder with two pipes, and the line for a shell that joins the tenant program to them."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.dir / "jobs"))
        folder.chmod(0o777)
        for name in ("in", "out"):
            os.mkfifo(folder / name)
            (folder / name).chmod(0o666)
        # Opened for both directions: neither side waits for the other one to come.
        return folder, f"exec {command} {device} <>{folder}/in >{folder}/out"

    def adopt(self, number, folder):
        """A job whose program is joined to the pipes of that folder."""
        job = Job(self, number, folder)
        self.jobs.append(job)
        return job

    def submit(self, *options, device=0, user=None, env=None):
        """Submits a job that runs the tenant program, and returns it at once."""
        folder, line = self.program(device)
        script = folder / "script"
        script.write_text(f"#!/bin/sh\n{line}\n")
        done = self.do("sbatch", "--parsable", f"--error={folder}/err", "--output=/dev/null", *options, script, user=user,
                       env=env)
        return self.adopt(int(done.split(";")[0]), folder)

    def occupy(self, *options, **others):
        """Submits a job that takes its part of a device and leaves it alone, and waits until it has it."""
        number = int(self.do("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap=sleep 600", **others))
        eventually(lambda: self.show_job(number)["JobState"] == "RUNNING", f"job {number} runs")


def remove_cgroups(nodes):
    """Slurm leaves its folders in the v1 hierarchies behind."""
    for node in nodes:
        for top in pathlib.Path("/sys/fs/cgroup").glob(f"*/slurm_{node}"):
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
