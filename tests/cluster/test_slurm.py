# SPDX-License-Identifier: Apache-2.0
"""Jobs of Slurm as tenants: what they ask for is booked, held to, and given back."""
import contextlib
import os
import pathlib
import re
import tempfile

import pytest

from slurm import SHARDS, USER, gres_types
from system_conftest import GIB, MIB, OUT_OF_MEMORY, TENANT, eventually

# So much in use of a device of 4 GiB is pressure: whoever is over his request is acted on at once.
MUCH = 7 * GIB // 2


def on(node, mib, gpu=0):
    """Options for a job that is to be on this very device."""
    return ["-w", node, *anywhere(mib, gpu)]


def anywhere(mib, gpu=0):
    """Options for a job that may be on any node."""
    return [f"--gres=shard:g{gpu}:{mib}"]


def words(job, host):
    """What was done about a job: the actions of its incidents."""
    known = host.json("incidents", "--tenant", job.tenant())["incidents"]
    return [entry["action"] for i in known for entry in host.json("explain", f"i{i['id']}")["entries"]]


def results(job, host):
    """What came of it, of all actions in one text; each has its result some moments after it has begun."""
    known = host.json("incidents", "--tenant", job.tenant())["incidents"]
    return " ".join(entry["result"] or "" for i in known for entry in host.json("explain", f"i{i['id']}")["entries"])


def tells(job, host, word):
    """Slurm may be through with a job before the daemon has looked what came of its order."""
    eventually(lambda: word in results(job, host), f"the result is known: {word}")


def outgrow_and_say(job):
    """Beyond its request it is from when it has said that it has what it asked for."""
    job.node().cotenant("set", job.tenant(), "memory.low=4G")
    assert job.alloc(MUCH) > 0
    job.node().cotenant("set", job.tenant(), "memory.low=1G")


def booked(cluster, node):
    """What Slurm has given away of a node: MiB by job."""
    given = {}
    for number in cluster.do("squeue", "-h", "-t", "running,suspended", "-w", node, "-o", "%i").split():
        shards = re.findall(r"shard:\w+:([1-9]\d*)", cluster.show_job(number)["JOB_GRES"])
        if shards:
            given[f"job-{number}"] = int(shards[0])
    return given


def books_are_right(cluster):
    """The node's tenants are the jobs that Slurm has there, with what it gave them, and hold what the device says."""
    for name, host in cluster.nodes.items():
        tenants = {t["tenant"]: t for t in host.json("list")["tenants"]}
        given = booked(cluster, name)
        if tenants.keys() != given.keys():
            return False
        held = dict.fromkeys(tenants, 0)
        for process in host.json("ps")["processes"]:
            for tenant in process["tenants"]:
                # One that has come since the list was read.
                if tenant not in held:
                    return False
                held[tenant] += process["memory"]
        for tenant, shown in tenants.items():
            charged = sum(device["memory.current"] for device in shown["devices"])
            if shown["devices"][0]["memory.low"] not in (0, given[tenant] * MIB) or charged != held[tenant]:
                return False
    return True


def test_a_job_is_a_tenant_before_it_runs(cluster):
    job = cluster.submit("--gpu-mem=1G:max=2G", "--gpu-compute=50", "--gpu-policy=evict").started()
    host = job.node()
    shown = host.json("show", job.tenant())
    assert shown["limits"] == {"memory.low": "1G", "memory.max": "2G", "compute.max": "50%", "memory.policy": "evict"}
    assert len(shown["gpus"]) == 1
    assert job.alloc(GIB) > 0 and job.alloc(GIB) == -OUT_OF_MEMORY
    assert re.search(r"shard:g[01]:1024", job.show("JOB_GRES"))
    eventually(lambda: books_are_right(cluster), "the books are right")
    job.send("quit")
    eventually(lambda: job.state() == "COMPLETED", "the job is over")
    eventually(lambda: not host.json("list")["tenants"], "and so is its tenant")


def test_two_share_a_device_within_their_requests(cluster):
    first = cluster.submit(*on("n1", 1536)).started()
    second = cluster.submit(*on("n1", 1536), user=USER).started()
    assert first.alloc(1400 * MIB) > 0 and second.alloc(1400 * MIB) > 0
    assert first.ask("check") == second.ask("check") == ["right"]
    eventually(lambda: books_are_right(cluster), "the books are right")
    # Nothing more fits there, and it is not given away: this one is placed elsewhere, or waits.
    third = cluster.submit("--gpu-mem=1G").started()
    assert "g0" not in third.show("JOB_GRES") or third.show("NodeList") != "n1"
    assert not any(words(job, job.node()) for job in (first, second, third))


def test_of_its_own_device_alone(cluster):
    """The second device is a job's first, and the other one is not there for it."""
    job = cluster.submit(*on("n2", 1024, gpu=1)).started()
    assert job.alloc(512 * MIB) > 0
    host = cluster.nodes["n2"]
    shown = eventually(lambda: [p for p in host.json("ps")["processes"] if p["tenants"] == [job.tenant()]], "it is listed")
    assert [p["gpu"] for p in shown] == [1] and shown[0]["job"] == job.number


def test_of_its_own_devices_file_alone(cluster):
    """Behind these files there is no device: the one that may be opened says so, and Slurm keeps a job from the others."""
    def submit(*options):
        log = pathlib.Path(tempfile.mkdtemp(dir=cluster.dir / "jobs")) / "said"
        line = f"for i in 0 1; do (: <{cluster.dir}/dev/n1-nvidia$i); done; echo done"
        cluster.do("sbatch", *options, f"--output={log}", f"--wrap={line}", env={"LC_ALL": "C"})
        return log

    own, none = "No such device or address", "Operation not permitted"
    for options, first, second in ((on("n1", 512, gpu=1), none, own), (("-w", "n1"), none, none)):
        log = submit(*options)
        said = eventually(lambda: log.exists() and log.read_text().endswith("done\n") and log.read_text(), "it has run")
        assert [first in said.splitlines()[0], second in said.splitlines()[1]] == [True, True], said


def say_to_reader(fifo, text):
    """To whoever reads there, once somebody does; to open it would wait for ever for one who never comes."""
    def opened():
        with contextlib.suppress(OSError):
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)

    with open(eventually(opened, f"somebody reads {fifo}"), "w") as pipe:
        pipe.write(text)


def test_steps_are_one_tenant(cluster):
    folder = pathlib.Path(tempfile.mkdtemp(dir=cluster.dir / "jobs"))
    script = folder / "script"
    script.write_text(f"#!/bin/sh\nfor i in 1 2; do (echo alloc 300000000; cat {folder}/end-$i) | "
                      f"srun --overlap {TENANT} 0 >{folder}/out-$i & done; wait\n")
    ends = [folder / f"end-{i}" for i in (1, 2)]
    for end in ends:
        os.mkfifo(end)
    number = cluster.do("sbatch", "--parsable", *on("n1", 1024), "--output=/dev/null", script).strip()
    host = cluster.nodes["n1"]
    held = eventually(lambda: [t for t in host.json("list")["tenants"]
                               if t["devices"][0]["memory.current"] > 600000000], "both steps are charged")
    assert [t["tenant"] for t in held] == [f"job-{number}"]
    for end in ends:
        say_to_reader(end, "quit\n")
    eventually(lambda: not host.json("list")["tenants"], "it ends with the job")


def test_whole_devices(cluster):
    job = cluster.submit("-w", "n3", "--gres=gpu:2").started()
    assert sorted(job.show("JOB_GRES").split(",")) == [f"shard:g0:{SHARDS}", f"shard:g1:{SHARDS}"]
    shown = cluster.nodes["n3"].json("show", job.tenant())
    assert len(shown["gpus"]) == 2 and [d["memory.low"] for d in shown["devices"]] == [SHARDS * MIB] * 2
    waiting = cluster.submit("-w", "n3", "--gpu-mem=1G")
    assert waiting.state() == "PENDING"
    job.send("quit")
    assert waiting.started().node() is cluster.nodes["n3"]


@pytest.mark.parametrize("option,n", [("--gpus=2", 2), ("--gpus=g1:1", 1), ("--gpus-per-node=1", 1)])
def test_gpus_are_whole_devices_of_a_node(cluster, option, n):
    job = cluster.submit("-w", "n2", option).started()
    booked = job.show("JOB_GRES").split(",")
    assert len(booked) == n and all(f":{SHARDS}" in one for one in booked) and ("g1" in booked[0] or option != "--gpus=g1:1")
    assert job.show("NumNodes") == "1" and len(job.node().json("show", job.tenant())["gpus"]) == n
    # Steps ask for what the job has, and not for what the job was asked for.
    line = f"env | grep SLURM_GPUS >{job.folder}/told; srun --overlap true; echo $? >{job.folder}/code"
    number = cluster.do("sbatch", "--parsable", "-w", "n1", option, "--output=/dev/null", f"--wrap={line}").strip()
    eventually(lambda: cluster.show_job(number)["JobState"] == "COMPLETED", "the steps are over")
    assert (job.folder / "code").read_text() == "0\n", (job.folder / "told").read_text()


@pytest.mark.parametrize("options,word", [
    (["--gpu-mem=lots"], "--gpu-mem: the request: 'lots' is not a size"),
    (["--gpu-mem=-1"], "is not a size"),
    (["--gpu-mem=0"], "nothing is asked for"),
    (["--gpu-mem=4G:max=1G"], "max is less than the request"),
    (["--gpu-mem=4G:min=1G"], "only ':max=SIZE'"),
    (["--gpu-mem=99999999999999999999"], "more than any device has"),
    (["--gpu-compute=101"], "--gpu-compute: '101' is not a part"),
    (["--gpu-policy=pardon"], "--gpu-policy: 'pardon' is not warn, suspend"),
    (["--gpu-mem=8000"], f"8000 MiB fit on no device: the largest of 6, g0 on n1, has {SHARDS} MiB"),
    (["-w", "n2", "--gpu-mem=8000"], "the largest of 2, g0 on n2"),
    (["--gres=shard:g7:100"], "no node that the job may use has a device of type g7"),
    (["--gres=gpu:3"], "has 3 whole devices of one size: the most is 2"),
    (["--gres=gpu:1", "--gpu-mem=1G"], "exclude each other"),
    (["--gres=shard:g0:100,shard:g1:100"], "ask for one of"),
    (["--gpus=3"], "has 3 whole devices of one size: the most is 2"),
    (["--gpus=0"], "of nothing"),
    (["--gpus=2", "-N2"], "say by --gpus-per-node=N how many each is to have"),
    (["--gpus=2", "-N1-2"], "say by --gpus-per-node=N how many each is to have"),
    (["--gpus=1", "--gpus-per-node=1"], "ask for one of"),
    (["--gpus=1", "--gpu-mem=1G"], "exclude each other"),
    (["--gpus-per-task=1", "-n1"], "devices are booked per node here"),
    (["--gpus-per-socket=1", "--sockets-per-node=1"], "devices are booked per node here"),
])
def test_refused_with_the_reason(cluster, options, word):
    said = cluster.refused("sbatch", *options, "--wrap=true")
    assert word in said, said
    if options[0].startswith("--gpu-"):
        assert word in cluster.refused("srun", *options, "true")
        assert word in cluster.refused("salloc", *options, "true")


def test_who_asks_for_mps_is_told_what_to_ask_for(cluster):
    """Where it is among the types; else Slurm's commands refuse it before anybody is asked."""
    word = "--gpu-mem=SIZE for the memory and by --gpu-compute=PCT" if "mps" in gres_types() else "Invalid generic resource"
    for program in ("sbatch", "srun", "salloc"):
        said = cluster.refused(program, "--gres=mps:40", *(["--wrap=true"] if program == "sbatch" else ["true"]))
        assert word in said, said


def test_gpus_of_an_allocation_are_refused(cluster):
    """Its steps would ask for whole devices again, which nobody has here."""
    for program in ("srun", "salloc"):
        said = cluster.refused(program, "--gpus=1", "true")
        assert "ask salloc by --gres=gpu:N" in said, said


def test_what_a_client_forges_gives_it_nothing(cluster):
    forged = {"SLURM_SHARDS_ON_NODE": "7000", "SLURM_JOB_GPUS": "0,1", "SLURM_STEP_GPUS": "0,1",
              "CUDA_VISIBLE_DEVICES": "0,1", "_SLURM_SPANK_OPTION_cotenant_gpu_mem": "7000"}
    job = cluster.submit(*on("n1", 1024, gpu=1), user=USER, env=forged).started()
    nothing = cluster.submit("-w", "n1", user=USER, env=forged)
    eventually(lambda: nothing.state() == "RUNNING", "it runs")
    host = cluster.nodes["n1"]
    tenants = host.json("list")["tenants"]
    assert [t["tenant"] for t in tenants] == [job.tenant()]
    assert tenants[0]["limits"] == {"memory.low": "1G"} and len(tenants[0]["gpus"]) == 1


def test_a_users_own_job(cluster):
    job = cluster.submit("--gpu-mem=2G:max=3G", user=USER).started()
    host = job.node()
    own = host.json("list", user=USER)["tenants"]
    assert [t["tenant"] for t in own] == [job.tenant()] and own[0]["user"] == USER
    host.cotenant("set", job.tenant(), "memory.max=2G", user=USER)
    assert job.alloc(2 * GIB) == -OUT_OF_MEMORY
    for change in ("memory.max=4G", "memory.low=3G", "memory.max=", "memory.policy=warn"):
        host.refused("set", job.tenant(), change, user=USER)
    assert host.json("list", user="daemon")["tenants"] == []


# --- over-use ---


def test_without_cotenant_a_neighbour_fails(cluster):
    """What the next test is about: these two have no part of a device, so nobody holds them to anything."""
    first = cluster.submit("-w", "n1").started()
    second = cluster.submit("-w", "n1").started()
    assert first.alloc(5 * GIB // 2) > 0
    assert second.alloc(2 * GIB) == -OUT_OF_MEMORY


def test_with_it_the_neighbour_gets_what_it_asked_for(cluster):
    first = cluster.submit(*anywhere(512), "--gpu-policy=evict").started()
    node = first.show("NodeList")
    second = cluster.submit(*on(node, 2304)).started()
    assert first.alloc(5 * GIB // 2) > 0
    address = second.alloc(2 * GIB)
    assert address > 0, "it waited for room"
    assert second.ask("check") == ["right"] and not words(second, cluster.nodes[node])
    first.restarted()
    assert first.show("NodeList") != node and first.show("Restarts") == "1"
    eventually(lambda: books_are_right(cluster), "the books are right")


def test_warned(cluster):
    job = cluster.submit(*on("n1", 1024)).started()
    assert job.alloc(MUCH) > 0
    host = cluster.nodes["n1"]
    eventually(lambda: words(job, host) == ["warn"], "it is warned")
    eventually(lambda: "asked for 1.00G" in job.said(), "and told by Slurm")
    assert job.state() == "RUNNING" and job.ask("pid")


def test_suspended_and_resumed(cluster):
    job = cluster.submit(*on("n1", 1024), "--gpu-policy=suspend").started()
    host = cluster.nodes["n1"]
    outgrow_and_say(job)
    eventually(lambda: "suspend" in words(job, host), "it is suspended")
    eventually(lambda: job.state() == "SUSPENDED", "and Slurm knows")
    job.send("info")
    assert not job.has_answered(0.5)
    host.cotenant("set", job.tenant(), "memory.low=4G")
    assert job.answer()[0] == "0"
    eventually(lambda: job.state() == "RUNNING", "Slurm knows that, too")


def test_evicted_to_another_node(cluster):
    job = cluster.submit(*anywhere(1024), "--gpu-policy=evict").started()
    host, node = job.node(), job.show("NodeList")
    job.outgrow(MUCH)
    job.restarted()
    assert job.show("NodeList") != node and job.show("Restarts") == "1"
    eventually(lambda: words(job, host) == ["warn", "evict", "clear"], "the incident is over")
    tells(job, host, f"requeued without {node}")
    assert job.alloc(512 * MIB) > 0
    eventually(lambda: books_are_right(cluster), "the books are right")


def test_a_suspended_job_is_evicted(cluster):
    job = cluster.submit(*anywhere(1024, gpu=1), "--gpu-policy=suspend-evict").started()
    host, node = job.node(), job.show("NodeList")
    job.outgrow(MUCH)
    job.restarted()
    assert job.show("NodeList") != node and job.show("Restarts") == "1"
    eventually(lambda: words(job, host) == ["warn", "suspend", "evict", "clear"], "it was suspended before")


def test_killed(cluster):
    job = cluster.submit(*on("n2", 1024), "--gpu-policy=kill").started()
    host = cluster.nodes["n2"]
    job.outgrow(MUCH)
    eventually(lambda: job.state() == "CANCELLED", "it is cancelled")
    eventually(lambda: words(job, host) == ["warn", "kill", "clear"], "the incident is over")
    tells(job, host, "cancelled")


def test_who_asks_for_this_node_waits_for_whoever_bound_it(cluster):
    job = cluster.submit(*on("n2", 1024, gpu=1), "--gpu-policy=evict").started()
    job.outgrow(MUCH)
    eventually(lambda: job.state() == "PENDING" and job.show("Priority") == "0", "it is held")
    tells(job, cluster.nodes["n2"], "it asks for n2 itself")


def test_who_cannot_be_started_elsewhere_is_ended(cluster):
    job = cluster.submit(*on("n3", 1024), "--gpu-policy=evict", "--no-requeue").started()
    job.outgrow(MUCH)
    eventually(lambda: job.state() in ("FAILED", "CANCELLED"), "it is ended")
    tells(job, cluster.nodes["n3"], "not requeued")


# --- failures ---


def test_the_daemon_is_killed(cluster):
    job = cluster.submit(*on("n1", 1024)).started()
    assert job.alloc(512 * MIB) > 0
    host = cluster.nodes["n1"]
    host.kill()
    late = cluster.submit(*on("n1", 1024))
    # It waits for the daemon, but not for ever.
    eventually(lambda: late.state() == "RUNNING", "Slurm starts it")
    assert not late.has_answered(0.5), "none starts without being a tenant"
    host.start()
    assert late.started().alloc(256 * MIB) > 0
    assert job.ask("check") == ["right"]
    eventually(lambda: books_are_right(cluster), "the books are right")


def test_a_slurmd_is_killed(cluster):
    job = cluster.submit(*on("n1", 1024)).started()
    assert job.alloc(512 * MIB) > 0
    cluster.kill("n1")
    assert job.ask("check") == ["right"]
    assert cluster.nodes["n1"].book(job.tenant())["memory.current"] > 512 * MIB
    cluster.start_slurmd("n1")
    eventually(lambda: books_are_right(cluster), "the books are right")
    job.send("quit")
    eventually(lambda: job.state() == "COMPLETED", "the job is over")


def test_slurmctld_is_killed(cluster):
    job = cluster.submit(*on("n1", 1024)).started()
    assert job.alloc(512 * MIB) > 0
    cluster.save(job)
    cluster.kill("slurmctld")
    assert job.ask("check") == ["right"]
    cluster.start_controller()
    eventually(lambda: cluster.node_states() == ["mixed", "idle", "idle"], "it is back")
    assert job.state() == "RUNNING" and job.ask("check") == ["right"]
    eventually(lambda: books_are_right(cluster), "the books are right")
