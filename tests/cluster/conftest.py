# SPDX-License-Identifier: Apache-2.0
"""One cluster for all tests of a run; each test begins with an empty queue and idle nodes."""
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
from slurm import Cluster, missing  # noqa: E402


@pytest.fixture(scope="session")
def running_cluster():
    system.require_root()
    reason = missing()
    if reason:
        pytest.skip(reason)
    with system.machine_to_itself():
        with Cluster() as cluster:
            yield cluster


@pytest.fixture
def cluster(running_cluster):
    running_cluster.come_to_rest()
    yield running_cluster
    running_cluster.end_jobs()


@pytest.fixture
def controller(cluster, tmp_path):
    if not CONTROLLER.exists():
        pytest.skip("built without MUNGE's headers")
    controller = Controller(cluster, tmp_path)
    controller.start()
    yield controller
    controller.kill(signal.SIGTERM)
    assert controller.process.returncode == 0, controller.log.read_text()
