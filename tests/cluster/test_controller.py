# SPDX-License-Identifier: Apache-2.0
"""Services that the controller keeps running as jobs: placed, moved, neither lost nor doubled."""
import contextlib
import signal
import sqlite3
import subprocess

from controller import CONTROLLER, Controller
from reporters import NODE
from slurm import NODES, SHARDS, USER
from system_conftest import GIB, MIB, eventually


def test_services_share_a_device_within_their_requests(cluster, controller):
    web = controller.serve("web", "--gpu-mem=1G").started()
    base = controller.serve("base", "--gpu-mem=1G", "--gpu-compute=40").started()
    assert web.show("NodeList") == base.show("NodeList") and web.show("JOB_GRES") == base.show("JOB_GRES")
    assert web.alloc(512 * MIB) > 0 and base.alloc(512 * MIB) > 0
    limits = base.node().json("show", base.tenant())["limits"]
    assert limits == {"memory.low": "1G", "compute.max": "40%"}
    controller.do("remove", "web")
    eventually(lambda: web.state() == "CANCELLED", "what is no longer wanted is cancelled")
    assert base.ask("check") == ["right"]


def test_an_evicted_one_is_moved(cluster, controller):
    greedy = controller.serve("greedy", "--gpu-mem=1G", "--gpu-policy=evict")
    job = greedy.started()
    node = job.show("NodeList")
    job.outgrow(7 * GIB // 2)
    greedy.moved()
    assert job.show("NodeList") != node and job.show("Restarts") == "1"
    assert len(controller.jobs("greedy.0")) == 1
    assert f"move\tgreedy.0\tjob {job.number}" in controller.do("log")


def test_an_evicted_one_asks_for_what_it_held(cluster, controller):
    # It moves from one type of device to another, where Slurm would leave it the former one as well.
    cluster.occupy("-w", "n1", f"--gres=shard:g0:{SHARDS}")
    for node in ("n2", "n3"):
        cluster.occupy("-w", node, f"--gres=shard:g1:{SHARDS}")
    greedy = controller.serve("greedy", "--gpu-mem=1G", "--gpu-raise=3G", "--gpu-policy=evict")
    job = greedy.started()
    assert job.show("JOB_GRES") == "shard:g1:1024"
    job.outgrow(7 * GIB // 2)
    greedy.moved()
    assert job.show("JOB_GRES") == "shard:g0:3072"
    shown = job.node().json("show", job.tenant())
    assert shown["limits"]["memory.low"] == "3G" and len(shown["gpus"]) == 1
    assert [i[0] for i in controller.instances()] == ["greedy.0"] and "for 3072M" in controller.do("log")
    assert controller.do("list").split("\t")[1] == "3072M" and len(controller.jobs("greedy.0")) == 1
    # What is placed anew, as its node is lost, is another job of the same instance.
    node, number = job.show("NodeList"), job.number
    cluster.do("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        cluster.do("scontrol", "requeue", number)
        eventually(lambda: [i for i in controller.instances() if i[1] == "running" and i[2] != f"job {number}"],
                   "it runs elsewhere")
        again = greedy.started()
        assert again.show("NodeList") != node and again.show("JOB_GRES").endswith(":3072")
    finally:
        cluster.do("scontrol", "update", f"nodename={node}", "state=resume")


def test_one_whose_node_is_drained_is_placed_anew(cluster, controller):
    web = controller.serve("web", "--gpu-mem=1G")
    job = web.started()
    node = job.show("NodeList")
    cluster.do("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        assert job.ask("pid")
        cluster.do("scontrol", "requeue", job.number)
        eventually(lambda: [i for i in controller.instances() if i[1] == "running" and not i[3].startswith(node)],
                   "it runs elsewhere")
        web.started()
        eventually(lambda: len(controller.jobs("web.0")) == 1, "it is there once")
    finally:
        cluster.do("scontrol", "update", f"nodename={node}", "state=resume")


def test_users_jobs_are_counted(cluster, controller):
    for node in NODES:
        for gpu in range(2):
            cluster.submit("-w", node, f"--gres=shard:g{gpu}:{SHARDS - 1000 - 100 * gpu}").started()
    fits = controller.serve("fits", "--gpu-mem=950").started()
    assert "shard:g0:950" in fits.show("JOB_GRES")
    controller.serve("waits", "--gpu-mem=1200")
    eventually(lambda: ("waits.0", "waiting") in controller.instances(), "it waits")
    told = controller.do("explain", "waits.0").splitlines()
    assert len(told) == 7 and all("1200 are asked for" in line for line in told[1:]), told
    assert "100 MiB are free" in "".join(told) or "1000 MiB are free" in "".join(told)


def test_the_compute_of_users_jobs_is_counted(cluster, controller):
    for node in NODES:
        for gpu in range(2):
            part = 60 if (node, gpu) == ("n3", 1) else 80
            cluster.occupy("-w", node, f"--gres=shard:g{gpu}:512", f"--gpu-compute={part}", user=USER)
    for name in ("fits", "waits"):
        controller.do("set", name, "sleep 600", "--gpu-mem=512", "--gpu-compute=40")
    fits = eventually(lambda: [i for i in controller.instances() if i[:2] == ("fits.0", "running")], "it runs")
    assert fits[0][3] == "n3 g1"
    eventually(lambda: ("waits.0", "waiting") in controller.instances(), "it waits")
    told = controller.do("explain", "waits.0").splitlines()[1:]
    assert len(told) == 6 and all("40" in line for line in told), told


def test_a_controller_that_is_killed_loses_and_doubles_nothing(cluster, controller):
    job = controller.serve("web", "--gpu-mem=1G").started()
    controller.kill()
    assert job.ask("pid") and job.state() == "RUNNING"
    controller.start()
    for name in ("a", "b", "c"):
        controller.serve(name, "--gpu-mem=512")
    # At any moment of what it does: between orders, and before they have arrived.
    for seconds in (1.05, 1.25, 1.5):
        try:
            controller.process.wait(seconds)
        except subprocess.TimeoutExpired:
            controller.kill()
        controller.start()
    eventually(lambda: [i[1] for i in controller.instances()] == ["running"] * 4, "all run")
    for name in ("web", "a", "b", "c"):
        eventually(lambda: len(controller.jobs(f"{name}.0")) == 1, "each is there once")
    assert job.state() == "RUNNING"


def test_one_of_two_machines_gives_the_orders(cluster, controller):
    """They share the file and not its lock: as on storage where locks do not reach the other machine."""
    other = Controller(cluster, controller.state.parent)
    other.state, other.log = controller.state.with_name("other.db"), controller.state.with_name("other-log")
    other.state.symlink_to(controller.state)
    word = "this controller gives the orders now"
    job = controller.serve("web", "--gpu-mem=1G").started()
    other.start()
    try:
        controller.serve("base", "--gpu-mem=1G").started()
        assert word not in other.log.read_text()
        controller.kill()
        controller.serve("late", "--gpu-mem=1G").started()
        assert word in other.log.read_text()
        controller.start()
        controller.do("remove", "base")
        eventually(lambda: [i[0] for i in controller.instances()] == ["web.0", "late.0"], "it is no more")
        eventually(lambda: not controller.jobs("base.0"), "nor is its job")
        assert controller.log.read_text().count(word) == 1
    finally:
        other.kill(signal.SIGTERM)
    eventually(lambda: controller.log.read_text().count(word) == 2, "the first one gives them again")
    assert job.state() == "RUNNING" and len(controller.jobs("web.0")) == len(controller.jobs("late.0")) == 1


def test_a_clock_that_was_set_back(cluster, controller):
    """What a node said is then of the future; the command needs no controller, so nobody else writes this file."""
    state = controller.state.with_name("other.db")
    cluster.do(CONTROLLER, "set", "a", "true", "--gpu-mem=1G", f"--state={state}")
    with contextlib.closing(sqlite3.connect(state)) as db, db:
        db.execute("INSERT INTO nodes VALUES ('n1', unixepoch() + 3600, 0, '')")
    assert cluster.do(CONTROLLER, "nodes", f"--state={state}") == "n1\treports\t0 s ago\n"


def test_what_cannot_be_a_service_is_refused(cluster, controller):
    for words, said in ((["set", "a.b", "true", "--gpu-mem=1G"], "cannot be a service's name"),
                        (["set", "a", "true"], "say how much memory"),
                        (["set", "a\nb", "true", "--gpu-mem=1G"], "cannot be a service's name"),
                        (["set", 64 * "a", "true", "--gpu-mem=1G"], "cannot be a service's name"),
                        (["set", "a", "true", "--gpu-mem=-1"], "is not a size"),
                        (["set", "a", "true", "--gpu-mem=99999999999999999999"], "more than any device has"),
                        (["set", "a", "true", "--gpu-mem=1G", "--replicas=-1"], "is not a number"),
                        (["set", "a", "true", "--gpu-mem=1G", "--replicas=18446744073709551617"], "is not a number"),
                        (["set", "a", "true", "--gpu-mem=1G", "--priority=4294967296"], "is not a number"),
                        (["set", "a", "true", "--gpu-mem=1G", "--placement=best"], "is not binpack"),
                        (["set", "a", "true", "--gpu-mem=1G", "--gpu-policy=pardon"], "is not warn"),
                        (["set", "a", "true", "--gpu-mem=1G", "--gpu-raise=1G"], "is not a size above"),
                        (["remove", "a"], "there is no service"), (["explain", "a.0"], "no such instance"),
                        (["explain", "a.18446744073709551616"], "no such instance")):
        assert said in cluster.refused(CONTROLLER, *words, f"--state={controller.state}")
    said = cluster.refused(NODE, "--controller=localhost:1", "--batch-program=kubernetes")
    assert "'kubernetes' cannot be started; cotenant-slurm is the one for Slurm" in said
