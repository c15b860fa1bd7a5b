# SPDX-License-Identifier: Apache-2.0
"""A network of its own: a head and nodes, each in a network namespace, joined by a bridge that can be cut."""
import subprocess

HEAD = "head"
HEAD_ADDRESS = "10.77.0.1"


class Network:
    """The namespaces last as long as a process that sleeps in each; nothing of them is left then."""

    def __init__(self, nodes):
        self.sleepers = {}
        self.addresses = {HEAD: HEAD_ADDRESS} | {node: f"10.77.0.{11 + i}" for i, node in enumerate(nodes)}
        try:
            for name in self.addresses:
                self.begin(name)
            self.ip(HEAD, "link", "add", "bridge", "type", "bridge")
            self.ip(HEAD, "addr", "add", f"{HEAD_ADDRESS}/24", "dev", "bridge")
            self.ip(HEAD, "link", "set", "bridge", "up")
            for node in nodes:
                self.join(node)
        except BaseException:
            self.close()
            raise

    def begin(self, name):
        sleeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        self.sleepers[name] = sleeper
        assert sleeper.stdout.readline(), "no network namespaces here"
        self.ip(name, "link", "set", "lo", "up")

    def join(self, node):
        self.ip(HEAD, "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", str(self.sleepers[node].pid))
        self.ip(HEAD, "link", "set", node, "master", "bridge", "up")
        self.ip(node, "addr", "add", f"{self.addresses[node]}/24", "dev", "eth0")
        self.ip(node, "link", "set", "eth0", "up")

    def inside(self, name):
        """What a command begins with that is to run there."""
        return ["nsenter", f"--net=/proc/{self.sleepers[name].pid}/ns/net"]

    def ip(self, name, *words):
        subprocess.run([*self.inside(name), "ip", *words], check=True)

    def cut(self, node):
        self.ip(HEAD, "link", "set", node, "down")

    def mend(self, node):
        self.ip(HEAD, "link", "set", node, "up")

    def close(self):
        for sleeper in self.sleepers.values():
            sleeper.kill()
            sleeper.wait()
            sleeper.stdout.close()
