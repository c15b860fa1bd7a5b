# SPDX-License-Identifier: Apache-2.0
"""Nodes that nobody reaches: what Slurm starts elsewhere has ended there before. cuts.py cuts them at random."""
import contextlib
import os
import pathlib
import re
import signal

import pytest

from controller import CONTROLLER
from networked import Hearing, Service
from reporters import NODE
from system_conftest import GIB, eventually


@pytest.fixture
def hearing(networked, tmp_path):
    if not CONTROLLER.exists() or not NODE.exists():
        pytest.skip("built without MUNGE's headers")
    with Hearing(networked, tmp_path) as hearing:
        yield hearing


def freeze(pid):
    """As Slurm suspends a job: not even SIGKILL ends who is in a freezer of v1."""
    with open(f"/proc/{pid}/cgroup") as lines:
        path = next((line.strip().split(":", 2)[2] for line in lines if ":freezer:" in line), None)
    if path:
        pathlib.Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").write_text("FROZEN")


@contextlib.contextmanager
def standing_still(networked, hearing, node):
    """A node on which nobody answers cotenant-node: neither the daemon, nor the disk on which it writes."""
    daemon = networked.nodes[node].daemon
    # It is there for moments while the lease is written.
    eventually(lambda: not os.system(f"mkfifo {hearing.leases[node]}.new~ 2>/dev/null"), "no disk answers")
    daemon.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.send_signal(signal.SIGCONT)


def test_what_runs_on_nodes_that_are_cut_off_ends_before_it_is_started_elsewhere(networked, hearing):
    """
    Also where who ends it has heard nothing himself: the one before him was killed, and had written it down. And where
    he is alone: what runs is frozen, the daemon stands still, and so does whoever writes to the disk.
    """
    network = networked.network
    web = Service(hearing, "web")
    first = [web.goes_on()]
    restarted = first[0][0]
    stays = networked.submit("-w", restarted, "--no-requeue", "--gres=shard:g1:512").started()
    # Where least is taken, which is on another node now.
    base = Service(hearing, "base", "--placement=spread")
    first.append(base.goes_on())
    other = first[1][0]
    assert other != restarted
    eventually(lambda: f"of its jobs here: {stays.number}\n" in hearing.said(restarted), "its agent knows that one")
    eventually(hearing.leases[other].exists, "the other's has heard of Slurm, too")
    hearing.kill_node(restarted)
    network.cut(restarted)
    hearing.start_node(restarted)
    with standing_still(networked, hearing, other):
        network.cut(other)
        freeze(first[1][2])
        for service, was in zip([web, base], first):
            now = service.goes_on(besides=[was])
            assert not pathlib.Path(f"/proc/{was[2]}").exists(), f"{was} is there still"
            assert now[0] not in (restarted, other) and service.overlap() == 0, service.runs()
        assert re.search(rf"job-{first[0][1]} is (ended|killed)", hearing.said(restarted))
    assert stays.alloc(GIB // 4) > 0
    for node in (restarted, other):
        network.mend(node)
    for node in (restarted, other):
        networked.is_heard(node)
    assert [service.overlap() for service in (web, base)] == [0, 0]


def test_a_node_that_is_cut_off_protects_who_is_within_his_request(networked, hearing):
    """Neither is started elsewhere by Slurm, so neither ends because of the cut."""
    stays = ("-w", "n2", "--no-requeue")
    greedy = networked.submit(*stays, "--gres=shard:g0:512", "--gpu-policy=kill").started()
    neighbour = networked.submit(*stays, "--gres=shard:g0:2304").started()
    eventually(lambda: f"of its jobs here: {greedy.number} {neighbour.number}\n" in hearing.said("n2"),
               "the node knows them")
    host = neighbour.node()
    networked.network.cut("n2")
    assert greedy.alloc(5 * GIB // 2) > 0
    assert neighbour.alloc(2 * GIB) > 0 and neighbour.ask("check") == ["right"]
    known = host.json("incidents", "--tenant", greedy.tenant())["incidents"]
    words = [entry["action"] for i in known for entry in host.json("explain", f"i{i['id']}")["entries"]]
    assert words[:2] == ["warn", "kill"]
    eventually(lambda: networked.run("sinfo", "-hN", "-n", "n2", "-o", "%T").stdout.strip() == "down*", "Slurm gives it up", 60)
    assert neighbour.ask("check") == ["right"] and not host.json("incidents", "--tenant", neighbour.tenant())["incidents"]
    networked.network.mend("n2")
    networked.is_heard("n2")
