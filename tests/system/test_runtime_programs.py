# SPDX-License-Identifier: Apache-2.0
"""Programs on the CUDA runtime as tenants with limits. What they compute directly is tested in tests/programs."""
import pytest

from conftest import GIB
from cudart import NAMES, all_compiled, compiled

LIMIT = 2 * GIB


def as_tenant(host, program, *arguments):
    """What a program says that is a tenant of its name, and the tenant's refusals."""
    name = program.name
    said = host.cotenant("run", "--name", name, "--memory.max", LIMIT, "--", program, *arguments)
    return said, host.events("refused", name)


@pytest.mark.parametrize("version", [12, 13])
def test_a_program_sees_its_limit(host, version):
    said, refused = as_tenant(host, compiled("limited", version=version), LIMIT)
    assert said == "limits right\n"
    assert len(refused) == 10


# What two of the programs ask for, and nobody gets.
BEYOND = {"devices": [LIMIT + 1], "refusals": [1 << 60]}


def test_every_program_is_right(host):
    """One after the other."""
    programs = all_compiled()
    for name in NAMES:
        said, refused = as_tenant(host, programs[name].result())
        assert "right" in said, name
        assert [event["size"] for event in refused] == BEYOND.get(name, []), name
