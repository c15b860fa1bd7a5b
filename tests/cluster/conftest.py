# SPDX-License-Identifier: Apache-2.0
"""
One cluster at a time, for as many tests as go on with it; each test begins with an empty queue and idle nodes.
"""
import importlib.util
import pathlib
import signal
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_system_conftest():
    """What the system tests share serves here as well, under a name that is not taken."""
    spec = importlib.util.spec_from_file_location("system_conftest", ROOT / "tests/system/conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


system = load_system_conftest()

from controller import CONTROLLER, Controller  # noqa: E402
from networked import Networked  # noqa: E402
from slurm import Cluster, missing  # noqa: E402


class Clusters:
    """The cluster that runs, and a way to another one: two would be in each other's way."""

    def __init__(self):
        self.running = None

    def get(self, kind):
        if type(self.running) is not kind:
            self.close()
            self.running = kind().__enter__()
        return self.running

    def close(self):
        if self.running:
            self.running.close()
        self.running = None


def require_slurm():
    system.require_root()
    reason = missing()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def clusters():
    require_slurm()
    with system.machine_to_itself():
        clusters = Clusters()
        yield clusters
        clusters.close()


def at_rest(cluster):
    cluster.come_to_rest()
    yield cluster
    cluster.end_jobs()


@pytest.fixture
def cluster(clusters):
    yield from at_rest(clusters.get(Cluster))


@pytest.fixture
def networked(clusters):
    yield from at_rest(clusters.get(Networked))


@pytest.fixture
def controller(cluster, tmp_path):
    if not CONTROLLER.exists():
        pytest.skip("built without MUNGE's headers")
    controller = Controller(cluster, tmp_path)
    controller.start()
    yield controller
    controller.kill(signal.SIGTERM)
    assert controller.process.returncode == 0, controller.log.read_text()
