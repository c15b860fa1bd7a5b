# SPDX-License-Identifier: Apache-2.0
"""A controller with a file of its own, and the services that it keeps."""
import signal
import subprocess

from networks import HEAD
from processes import catches
from system_conftest import ROOT, eventually

CONTROLLER = ROOT / "build/bin/cotenant-cluster"


class Controller:
    def __init__(self, cluster, folder):
        self.cluster = cluster
        # A lease is longer than the machine may stand still for.
        self.options = ["--interval=200ms", "--settle=1s", "--lease=6s"]
        self.state = folder / "cluster.db"
        self.log = folder / "log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.cluster.inside(HEAD), CONTROLLER, "run", f"--state={self.state}",
                                             *self.options],
                                            env=self.cluster.env, stdout=log, stderr=log)

    def kill(self, sig=signal.SIGKILL):
        """By a signal that it catches it ends in good order, once it has begun to."""
        try:
            eventually(lambda: sig == signal.SIGKILL or self.process.poll() is not None or catches(self.process.pid, sig),
                       "the controller listens to signals")
            self.process.send_signal(sig)
            self.process.wait(60)
        finally:
            self.process.kill()

    def do(self, *words):
        return self.cluster.do(CONTROLLER, *words, f"--state={self.state}")

    def serve(self, name, *options, **program):
        """A service of one instance that does what it is told."""
        folder, line = self.cluster.program(**program)
        self.do("set", name, line, *options)
        return Instance(self, name, folder)

    def instances(self):
        """[(instance, state, job, device)] of all services"""
        lines = [line.split("\t") for line in self.do("list").splitlines()]
        return [(line[0], line[2], *line[3:]) for line in lines]

    def jobs(self, instance):
        """The jobs that Slurm has of an instance, whoever submitted them."""
        return self.cluster.do("squeue", "-h", f"--name={instance}", "-o", "%i %T").splitlines()


class Instance:
    """The first instance of a service; its job is whichever Slurm has."""

    def __init__(self, controller, name, folder):
        self.controller = controller
        self.name = f"{name}.0"
        self.folder = folder

    def number(self):
        found = eventually(lambda: [i for i in self.controller.instances() if i[0] == self.name and i[1] == "running"],
                           f"{self.name} runs")
        return int(found[0][2].split()[1])

    def started(self):
        self.job = self.controller.cluster.adopt(self.number(), self.folder).started()
        return self.job

    def moved(self):
        """It has begun again, elsewhere, perhaps as another job."""
        self.job.restarted()
        self.job.number = self.number()
        return self.job
