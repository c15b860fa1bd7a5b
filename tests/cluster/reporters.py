# SPDX-License-Identifier: Apache-2.0
"""What reports to a controller: a node's program, over a line that can be cut, and a node that lies."""
import contextlib
import json
import selectors
import signal
import socket
import subprocess
import threading

from slurm import free_ports
from system_conftest import ROOT

NODE = ROOT / "build/bin/cotenant-node"


def connect(port, source="127.0.0.1", reserved=True):
    """A connection from a port that only root may take, or from any."""
    for own in range(1023, 511, -1) if reserved else [0]:
        s = socket.socket()
        try:
            s.bind((source, own))
            s.connect(("127.0.0.1", port))
            return s
        except OSError as error:
            s.close()
            refused = error
    raise refused


class Line:
    """A connection from a port of its own to another one. While it is cut nothing arrives, and nobody is told so."""

    def __init__(self, to):
        self.to = to
        self.is_cut = self.is_over = False
        self.selector = selectors.DefaultSelector()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.waking, self.wakes = socket.socketpair()
        self.selector.register(self.waking, selectors.EVENT_READ)
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        while not self.is_over:
            # What is not looked at does not arrive.
            ready = [self.waking] if self.is_cut else [key.fileobj for key, _ in self.selector.select()]
            for side in ready:
                if side is self.waking:
                    self.waking.recv(1)
                elif side is self.listening:
                    self.open()
                elif side.fileno() >= 0:
                    self.pass_on(side, self.selector.get_key(side).data)

    def open(self):
        near, _ = self.listening.accept()
        try:
            far = connect(self.to)
        except OSError:
            near.close()
            return
        self.selector.register(near, selectors.EVENT_READ, far)
        self.selector.register(far, selectors.EVENT_READ, near)

    def pass_on(self, side, other):
        try:
            data = side.recv(65536)
            other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for s in (side, other):
                self.selector.unregister(s)
                s.close()

    def cut(self):
        self.is_cut = True
        self.wakes.send(b".")

    def mend(self):
        self.is_cut = False
        self.wakes.send(b".")

    def close(self):
        self.is_over = True
        self.wakes.send(b".")
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        self.wakes.close()


class Reporter:
    """A node's program, and its line to the controller."""

    def __init__(self, cluster, name, port):
        self.line = Line(port)
        with open(cluster.dir / f"node-{name}.out", "ab") as log:
            self.process = subprocess.Popen(
                [NODE, f"--controller=127.0.0.1:{self.line.port}", f"--node={name}", "--interval=200ms",
                 f"--socket={cluster.nodes[name].dir}/socket", f"--munge-socket={cluster.dir}/munge/socket",
                 "--batch-program="],
                stdout=log, stderr=log)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        # What it waits for may lie beyond the cut.
        self.line.close()
        try:
            assert self.process.wait(60) == 0
        finally:
            self.process.kill()


class Liar:
    """Reports whatever it is told, as whom it is told."""

    def __init__(self, cluster, port):
        self.cluster = cluster
        self.port = port

    def munge(self, program, text, user=None):
        return self.cluster.do(program, f"--socket={self.cluster.dir}/munge/socket", *(
            ["--metadata=/dev/null"] if program == "unmunge" else []), user=user, text=text)

    def send(self, line, **connection):
        """What the controller answers to a line: "" where it just ends."""
        with connect(self.port, **connection) as s, s.makefile("r") as stream:
            nonce = stream.readline().strip()
            if not nonce:
                return ""
            # What it does not want to hear to the end it may answer, and hang up, before all is said.
            with contextlib.suppress(ConnectionError):
                s.sendall(f"{line(nonce)}\n".encode())
            answer = stream.readline()
        said = json.loads(self.munge("unmunge", answer))
        assert said["nonce"] == nonce
        return said.get("refused", "taken")

    def say(self, report, user=None, **connection):
        return self.send(lambda nonce: self.munge("munge", json.dumps({"nonce": nonce} | report), user).strip(),
                         **connection)


def port_for_controller():
    return free_ports(1)[0]
