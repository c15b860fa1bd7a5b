# SPDX-License-Identifier: Apache-2.0
"""Jobs of Slurm as tenants: what they ask for is booked, held to, and given back."""
import pytest

from slurm import SHARDS, USER
from system_conftest import GIB, MIB, OUT_OF_MEMORY, eventually


def test_a_job_is_a_tenant_before_it_runs(cluster):
    job = cluster.submit("--gpu-mem=1G:max=2G", "--gpu-compute=50", "--gpu-policy=evict").started()
    host = job.node()
    shown = host.json("show", job.tenant())
    assert shown["limits"] == {"memory.low": "1G", "memory.max": "2G", "compute.max": "50%", "memory.policy": "evict"}
    assert job.alloc(GIB) > 0 and job.alloc(GIB) == -OUT_OF_MEMORY
    job.send("quit")
    eventually(lambda: job.state() == "COMPLETED", "the job is over")
    eventually(lambda: not host.json("list")["tenants"], "and so is its tenant")
