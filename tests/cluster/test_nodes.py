# SPDX-License-Identifier: Apache-2.0
"""What nodes report to the controller: heard, cut off, and lied."""
import contextlib
import signal

import pytest

from controller import CONTROLLER, Controller
from reporters import NODE, Liar, Reporter, port_for_controller
from slurm import DEVICE, NODES, USER
from system_conftest import GIB, MIB, eventually


class Hearing(Controller):
    """A controller that nodes report to."""

    def __init__(self, cluster, folder):
        super().__init__(cluster, folder)
        self.port = port_for_controller()
        self.options += [f"--listen=127.0.0.1:{self.port}", "--silent=5s",
                         f"--munge-socket={cluster.dir}/munge/socket"]
        self.reporters = {}

    def states(self):
        """How each node is, and why its last report was refused."""
        lines = [line.split("\t") for line in self.do("nodes").splitlines()]
        return {line[0]: (line[1], *line[3:]) for line in lines}

    def becomes(self, node, state):
        eventually(lambda: self.states()[node][0] == state, f"{node} {state}")

    def all_report(self):
        return self.states() == dict.fromkeys(NODES, ("reports",))


@pytest.fixture
def controller(cluster, tmp_path):
    if not CONTROLLER.exists() or not NODE.exists():
        pytest.skip("built without MUNGE's headers")
    controller = Hearing(cluster, tmp_path)
    controller.start()
    try:
        for node in NODES:
            controller.reporters[node] = Reporter(cluster, node, controller.port)
        eventually(controller.all_report, "all report")
        yield controller
    finally:
        with contextlib.ExitStack() as stack:
            stack.callback(controller.kill, signal.SIGTERM)
            for reporter in controller.reporters.values():
                stack.callback(reporter.close)
    assert controller.process.returncode == 0, controller.log.read_text()


def explains_silence_of(controller, node):
    told = controller.do("explain", "large.0").splitlines()[1:]
    return len(told) == 6 and all(("does not report" in line) == line.strip().startswith(f"{node} ") for line in told)


def test_nothing_is_placed_on_a_silent_node(cluster, controller):
    stays = controller.serve("stays", "--gpu-mem=1G").started()
    node = stays.show("NodeList")
    controller.reporters[node].line.cut()
    controller.becomes(node, "silent")
    # Beside the first one it would be best.
    other = controller.serve("other", "--gpu-mem=1G").started()
    assert other.show("NodeList") != node
    controller.do("set", "large", "true", "--gpu-mem=8000")
    eventually(lambda: ("large.0", "waiting") in controller.instances(), "it waits")
    eventually(lambda: explains_silence_of(controller, node), f"{node} alone is not considered as it is silent")
    assert stays.ask("pid") and stays.state() == "RUNNING"
    controller.reporters[node].line.mend()
    eventually(controller.all_report, "all report")
    back = controller.serve("back", "--gpu-mem=1G").started()
    assert back.show("NodeList") == node


def test_a_node_that_lies_is_refused(cluster, controller):
    job = controller.serve("web", "--gpu-mem=1G").started()
    node = job.show("NodeList")
    lying = next(name for name in NODES if name != node)
    controller.reporters.pop(lying).close()
    liar = Liar(cluster, controller.port)
    device = {"total": DEVICE * MIB, "used": 0}
    honest = {"node": lying, "devices": [device, device], "tenants": [], "incidents": []}
    tenant = {"tenant": job.tenant(), "gpu": 0, "low": 0, "held": 0}
    eventually(lambda: liar.say(honest | {"tenants": [tenant]}) != "taken", "the controller has seen the job at Slurm's")
    assert liar.say(honest) == "taken"
    for change, said in (
            ({"devices": [device, device | {"used": DEVICE * MIB + 1}]}, "device 1: 4294967297 bytes are used of 4294967296"),
            ({"devices": [device]}, "1 devices are there, and Slurm has 2"),
            ({"devices": [device, device | {"total": GIB}]}, "device 1 has 1024 MiB, and Slurm gives away 3584"),
            ({"devices": [device] * 65}, "'devices' has 65 entries, 64 is the most"),
            ({"tenants": [tenant] * 3073}, "'tenants' has 3073 entries, 3072 is the most"),
            ({"tenants": [tenant]}, f"{job.tenant()} is not here: Slurm has it on {node}"),
            ({"tenants": [tenant | {"held": -1}]}, "'held' is not a number"),
            ({"tenants": [tenant | {"gpu": 7}]}, f"{job.tenant()} is on device 7, and there are 2"),
            ({"node": "n9"}, "Slurm has no node 'n9'"),
            ({"node": "n1\n"}, "'node' is not a name"),
            ({"nonce": "0" * 32}, "the report was made for another question")):
        assert said in liar.say(honest | change), change
    assert liar.say(honest, user=USER).endswith("sealed it, and not root")
    assert f"reports of {lying} come from 127.0.0.1" in liar.say(honest, source="127.0.0.9")
    assert liar.say(honest, reserved=False) == ""
    assert "MUNGE: " in liar.send(lambda nonce: "MUNGE:AwQFAAB:")
    assert "nothing came" in liar.send(lambda nonce: "x" * (2 << 20))
    kept = liar.munge("munge", "{}")
    assert "not a name" in liar.send(lambda nonce: kept.strip())
    assert "Replayed credential" in liar.send(lambda nonce: kept.strip())
    assert liar.say(honest | {"tenants": [tenant]}) != "taken"
    eventually(lambda: controller.states()[lying] == ("silent", f"refused: {job.tenant()} is not here: Slurm has it on {node}"),
               "who lies is as good as silent")
    for name in controller.reporters:
        controller.becomes(name, "reports")
    assert job.ask("pid") and job.state() == "RUNNING"
