# SPDX-License-Identifier: Apache-2.0
"""A cluster whose nodes can be cut off, and which gives up a node soon; and when each copy of a service ran."""
import pathlib
import signal
import subprocess
import tempfile
import time

from controller import Controller
from networks import HEAD, Network
from reporters import NODE
from slurm import BATCH, Cluster
from system_conftest import eventually

# What a copy writes some twenty times a second: where it runs, as which job, and the time since the machine booted.
BEATS = ('while read -r now rest </proc/uptime; do echo "$SLURMD_NODENAME $SLURM_JOB_ID $$ $now"; sleep 0.05; done '
         '>>{file} 2>/dev/null')
PORT = 6870


class Networked(Cluster):
    slurmd_timeout, message_timeout = 9, 2
    # In namespaces of its own, where the machine's name is no address that anybody reaches.
    communication = "EnableIPv4"

    def __init__(self):
        super().__init__(Network(self.names))

    def close(self):
        try:
            super().close()
        finally:
            self.network.close()

    def is_heard(self, node):
        eventually(lambda: self.run("sinfo", "-hN", "-n", node, "-o", "%T").stdout.strip() in ("idle", "mixed"),
                   f"{node} is heard", 60)


class Hearing(Controller):
    """A controller in that network, and the node's program on each node."""

    def __init__(self, cluster, folder):
        super().__init__(cluster, folder)
        self.address = f"{cluster.address(HEAD)}:{PORT}"
        self.munge = f"--munge-socket={cluster.dir}/munge/socket"
        self.options += [f"--listen={self.address}", "--silent=2s", self.munge]
        self.leases = {node: folder / f"{node}.lease" for node in cluster.names}
        self.logs = {node: folder / f"{node}.log" for node in cluster.names}
        self.nodes = {}

    def __enter__(self):
        self.start()
        for node in self.cluster.names:
            self.start_node(node)
        return self

    def start_node(self, node):
        with open(self.logs[node], "ab") as log:
            self.nodes[node] = subprocess.Popen(
                [*self.cluster.inside(node), NODE, f"--node={node}", f"--controller={self.address}", self.munge,
                 f"--socket={self.cluster.nodes[node].dir}/socket", "--interval=500ms", f"--batch-program={BATCH}",
                 f"--state={self.leases[node]}"],
                env=self.cluster.env, stdout=log, stderr=log)

    def kill_node(self, node):
        self.nodes[node].kill()
        self.nodes[node].wait(30)

    def restart_node(self, node):
        self.kill_node(node)
        self.start_node(node)

    def said(self, node):
        return self.logs[node].read_text()

    def __exit__(self, *unused):
        for node, process in self.nodes.items():
            self.cluster.network.mend(node)
            process.send_signal(signal.SIGTERM)
        try:
            codes = [process.wait(60) for process in self.nodes.values()]
        finally:
            for process in self.nodes.values():
                process.kill()
            self.kill(signal.SIGTERM)
        assert codes == [0] * len(codes) and self.process.returncode == 0, self.log.read_text()


class Service:
    """A service of one instance, which writes down when it runs."""

    def __init__(self, controller, name, *options):
        self.name = name
        self.file = pathlib.Path(tempfile.mkdtemp(dir=controller.cluster.dir / "jobs")) / "beats"
        self.file.touch()
        controller.do("set", name, BEATS.format(file=self.file), "--gpu-mem=1G", *options)

    def runs(self):
        """{(node, job, pid): [first, last]} of all copies, in seconds"""
        runs = {}
        # The latest may be there in part.
        for line in self.file.read_text().rpartition("\n")[0].splitlines():
            node, job, pid, now = line.split()
            run = runs.setdefault((node, job, pid), [float(now), float(now)])
            run[1] = float(now)
        return runs

    def goes_on(self, besides=()):
        """Waits for a copy that is none of those, and returns it."""
        return eventually(lambda: next((run for run in self.runs() if run not in besides), None), f"{self.name} runs", 60)

    def beats(self):
        """Waits until one runs."""
        begin = time.clock_gettime(time.CLOCK_BOOTTIME)
        eventually(lambda: any(last > begin for _, last in self.runs().values()), f"{self.name} runs", 300)

    def gaps(self):
        """How long after each copy's end the next one began, in seconds; less than none where both ran at once."""
        runs = sorted(self.runs().values())
        return [b[0] - a[1] for a, b in zip(runs, runs[1:])]

    def overlap(self):
        """For how many seconds two copies ran at once."""
        runs = sorted(self.runs().values())
        return sum(max(0.0, min(a[1], b[1]) - b[0]) for i, a in enumerate(runs) for b in runs[i + 1:])
