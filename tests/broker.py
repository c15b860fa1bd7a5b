# SPDX-License-Identifier: Apache-2.0
"""cotenant-vm on the software GPU, as a test starts it."""
import pathlib
import subprocess

from building import SOFTGPU
from processes import children_called

BIN = pathlib.Path(__file__).resolve().parents[1] / "build/bin"


class Broker:
    """One that listens: option is "--socket" for processes of this machine, or "--vm" for a virtual one."""

    def __init__(self, option, socket, env):
        self.socket = socket
        self.process = subprocess.Popen([BIN / "cotenant-vm", option, socket, "--worker", BIN / "cotenant-worker",
                                         "--driver", SOFTGPU / "libcuda.so.1"], env=env, stdout=subprocess.PIPE,
                                        text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            self.kill()
            raise AssertionError("cotenant-vm does not listen")

    def workers(self):
        return children_called(self.pid, "cotenant-worker")

    def mappers(self):
        return children_called(self.pid, "cotenant-mapper")

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
