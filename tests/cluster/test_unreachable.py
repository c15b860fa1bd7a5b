# SPDX-License-Identifier: Apache-2.0
"""Nodes that nobody reaches: what Slurm starts elsewhere has ended there before. cuts.py cuts them at random."""
import re

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


def test_what_runs_on_a_node_that_is_cut_off_ends_before_it_is_started_elsewhere(networked, hearing):
    network = networked.network
    services = [Service(hearing, "web"), Service(hearing, "base")]
    first = [service.goes_on() for service in services]
    # Binpacked onto one node.
    node = first[0][0]
    assert first[1][0] == node
    network.cut(node)
    second = [service.goes_on(besides=[was]) for service, was in zip(services, first)]
    for service, was, now in zip(services, first, second):
        assert now[0] != node and service.overlap() == 0, service.runs()
        assert re.search(rf"job-{was[1]} is (ended|killed)", hearing.said(node))
    network.mend(node)
    networked.is_heard(node)
    assert [service.overlap() for service in services] == [0, 0]


def test_a_node_that_is_cut_off_protects_who_is_within_his_request(networked, hearing):
    """Neither is started elsewhere by Slurm, so neither ends because of the cut."""
    stays = ("-w", "n2", "--no-requeue")
    greedy = networked.submit(*stays, "--gres=shard:g0:512", "--gpu-policy=kill").started()
    neighbour = networked.submit(*stays, "--gres=shard:g0:2304").started()
    eventually(lambda: f"of its jobs here: {greedy.number} {neighbour.number}\n" in hearing.said("n2"),
               "the node knows them", 20)
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
