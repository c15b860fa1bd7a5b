# SPDX-License-Identifier: Apache-2.0
"""What holds for tenants holds with each build of the driver: those of other versions, one whose
entries begin with a push, and one whose calls a file of offsets tells."""
import pytest
import test_offsets
import test_tenants

from conftest import SOFTGPU

BUILDS = ["driver535", "driver550", "push"]

# Each leaves its host as it found it, and asks nothing of the driver that only one build has. By tenants whom `run`
# starts, as it has their copy probed before: of one that nobody knows the first calls can go unseen.
SHORT = [test_tenants.test_refused_at_its_quota_while_a_neighbour_goes_on,
         test_tenants.test_a_tenant_is_shown_its_own_totals_to_the_byte,
         test_tenants.test_known_allocations_give_known_numbers]
STARTED_BY_RUN = SHORT + [test_tenants.test_held_for_its_time_and_then_answered,
                               test_tenants.test_limits_change_under_way,
                               test_tenants.test_a_held_tenant_can_be_killed,
                               test_tenants.test_nested_limits_the_tightest_decides,
                               test_tenants.test_a_child_stays_in_the_tenant]

stripped = test_offsets.stripped


def name_of(case):
    return case.__name__.removeprefix("test_")


@pytest.mark.parametrize("case", SHORT, ids=name_of)
@pytest.mark.parametrize("build", BUILDS)
def test_with_a_build(host, build, case):
    host.env["LD_LIBRARY_PATH"] = f"{SOFTGPU / build}:{SOFTGPU}"
    case(host)


@pytest.mark.parametrize("build", BUILDS)
def test_users_of_a_build_are_held(host, build):
    """Those of a copy that a tenant has used before them."""
    host.env["LD_LIBRARY_PATH"] = f"{SOFTGPU / build}:{SOFTGPU}"
    host.run(name="before").started()
    test_tenants.test_held_until_memory_is_freed(host)


@pytest.mark.parametrize("case", STARTED_BY_RUN, ids=name_of)
def test_with_offsets(host, stripped, case):
    test_offsets.place(host, test_offsets.offsets(test_offsets.WITH_SYMBOLS).stdout)
    case(host)
    assert not host.events("unprobed")
