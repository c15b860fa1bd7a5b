# SPDX-License-Identifier: Apache-2.0
"""Services that are images: containers of the nodes' podman, each as a job on its device."""
import os

import pytest

from controller import CONTROLLER
from images import IMAGE, Images, missing
from slurm import Cluster
from system_conftest import GIB, MIB, eventually

MUCH = 7 * GIB // 2


@pytest.fixture(scope="module")
def images(clusters):
    if missing():
        pytest.skip(missing())
    images = Images(clusters.get(Cluster))
    images.make()
    yield images
    images.close()


@pytest.fixture
def serve(images, controller):
    """Sets a service that runs the tenant program of the image in a container."""
    return lambda name, *options: controller.serve(name, f"--image={IMAGE}", *options, command="tenant")


def test_an_image_runs_as_a_container_on_its_device(images, serve):
    first = serve("first", "--gpu-mem=3G").started()
    web = serve("web", "--gpu-mem=1G", "--gpu-compute=40", "--gpu-policy=kill").started()
    host = web.node()
    assert (first.show("NodeList"), first.show("JOB_GRES")) == ("n1", "shard:g0:3072")
    assert (web.show("NodeList"), web.show("JOB_GRES")) == ("n1", "shard:g1:1024")
    limits = host.json("show", web.tenant())["limits"]
    assert limits == {"memory.low": "1G", "compute.max": "40%", "memory.policy": "kill"}
    assert web.ask("pid") == ["1"], "its processes are its own"
    assert web.alloc(512 * MIB) > 0 and web.ask("check") == ["right"]
    shown = eventually(lambda: [p for p in host.json("ps")["processes"] if p["tenants"] == [web.tenant()]], "it is listed")
    assert (shown[0]["gpu"], shown[0]["job"]) == (1, web.number)
    assert [pid for name, pid in images.listed() if name.startswith(f"web.0.{web.number}.")] == [shown[0]["pid"]]
    web.outgrow(3 * GIB)
    eventually(lambda: web.state() == "CANCELLED", "its job is killed")
    eventually(lambda: not os.path.exists(f"/proc/{shown[0]['pid']}"), "the container ends with its job")
    eventually(lambda: web.tenant() not in [t["tenant"] for t in host.json("list")["tenants"]], "and so does its tenant")
    assert first.ask("pid") == ["1"]


def test_a_container_is_suspended_with_its_job(serve):
    job = serve("web", "--gpu-mem=1G", "--gpu-policy=suspend").started()
    # Beyond its request from when it has said what it has.
    job.node().cotenant("set", job.tenant(), "memory.low=4G")
    assert job.alloc(MUCH) > 0
    job.node().cotenant("set", job.tenant(), "memory.low=1G")
    eventually(lambda: job.state() == "SUSPENDED", "it is suspended")
    job.send("pid")
    assert not job.has_answered(0.5)
    job.node().cotenant("set", job.tenant(), "memory.low=4G")
    assert job.answer() == ["1"]


def test_a_container_is_evicted(images, controller, serve):
    job = serve("greedy", "--gpu-mem=1G", "--gpu-policy=evict").started()
    node = job.show("NodeList")
    job.outgrow(MUCH)
    job.restarted()
    assert job.show("NodeList") != node and job.show("Restarts") == "1"
    assert job.alloc(512 * MIB) > 0 and len(controller.jobs("greedy.0")) == 1
    # What died with the first run is removed by the second one, whose own container stays.
    eventually(lambda: len(images.listed()) == 1, "one container is left")
    assert job.ask("pid") == ["1"]


def test_what_cannot_be_an_image_is_refused(cluster, controller):
    for words, said in ((["--image=-v"], "cannot be an image's name"), (["--image=a b"], "cannot be an image's name"),
                        (["true", "more", "--image=a"], "the command is one word"), ([], "the command is one word")):
        assert said in cluster.refused(CONTROLLER, "set", "a", *words, "--gpu-mem=1G", f"--state={controller.state}")
