"""A limit on idle states lasts exactly as long as the profile, whatever happens to those who hold it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.cases import visits
from tests.lab.guest.disturb import LIMIT_US as SOMEBODYS
from tests.lab.guest.holding import LIMIT_US
from tests.lab.harness.boot import Machine

EACH = pytest.mark.parametrize("machine", ["cpufreq", "cgroup-v1", "isolated-6.1"], indirect=True)
pytestmark = [pytest.mark.lab, pytest.mark.visit]


def found(machine: Machine) -> dict[str, Any]:
    held: dict[str, Any] = visits.report(machine)["held"]
    return held


@EACH
def test_the_kernel_has_the_limit_from_apply_to_restore(machine: Machine) -> None:
    held = found(machine)
    assert held["apply"]["code"] == 0, held["apply"]
    assert (held["before"], held["applied"], held["restored"]) == (SOMEBODYS, LIMIT_US, SOMEBODYS)
    assert held["verify"]["code"] == 0, held["verify"]
    assert held["restore"]["code"] == 0, held["restore"]
    assert held["holders_left"] == 0


@EACH
def test_the_holder_is_one_process_in_no_cgroup_of_its_caller(machine: Machine) -> None:
    held = found(machine)
    assert held["holders"] == 1
    assert {line.split(":")[2] for line in held["cgroups"][0]} == {"/"}


@EACH
def test_a_killed_holder_is_named_and_set_again(machine: Machine) -> None:
    held = found(machine)
    assert held["killed"] == SOMEBODYS
    assert held["verify_killed"]["code"] == 1
    assert "held:cpu_dma_latency" in held["verify_killed"]["out"]
    assert held["apply_again"]["code"] == 0, held["apply_again"]
    assert held["applied_again"] == LIMIT_US


@EACH
def test_nothing_is_left_behind(machine: Machine) -> None:
    assert visits.report(machine)["left_by_held"] == []


@pytest.mark.parametrize("machine", ["cpufreq"], indirect=True)
def test_one_additional_idle_state_is_enough_for_the_bundled_profile(machine: Machine) -> None:
    changes = visits.report(machine)["bench"]["plan"]["json"]["changes"]
    limited = [change for change in changes if change["knob"] == "idle.cpus"]
    assert {change["wanted"] for change in limited} == {"2"}
