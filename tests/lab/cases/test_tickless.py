"""A machine booted with nohz_full= and isolcpus=managed_irq, without domain: the partition and new knobs, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.guest.tickless import MINE, MM, SERVER
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["tickless"], indirect=True)]
PROFILES = pytest.mark.parametrize("profile", ["as-is", "strict", str(MINE)])


@once
def booted(machine: Machine) -> Result:
    return boot(machine, "python3 -P -m tests.lab.guest.tickless", timeout=900)


def report(machine: Machine) -> dict[str, Any]:
    result = booted(machine)
    assert "report.json" in result.files, result.output
    found: dict[str, Any] = json.loads(result.files["report.json"])
    assert "broke" not in found, found["broke"]
    return found


@PROFILES
def test_a_profile_is_applied_completely_and_restored_byte_for_byte(machine: Machine, profile: str) -> None:
    trip = report(machine)[profile]
    assert trip["apply"]["code"] == 0, trip["apply"]
    assert trip["plan_again"]["json"]["changes"] == []
    assert trip["restore"]["code"] == 0, trip["restore"]
    assert trip["left"] == []


@PROFILES
def test_the_cpus_of_nohz_full_are_chosen_and_become_a_partition(machine: Machine, profile: str) -> None:
    plan = report(machine)[profile]["plan"]["json"]
    assert plan["cpus"]["isolated"] == "2-3"
    assert "isolated at boot" in plan["cpus"]["why"]
    again = report(machine)[profile]["plan_again"]["json"]
    assert [skip for skip in again["skips"] if skip["knob"] == "cpuset"] == []


def test_the_partition_is_isolated_while_it_lasts(machine: Machine) -> None:
    found = report(machine)
    assert found["applied"]["/sys/fs/cgroup/quiet/cpuset.cpus.partition"] == "isolated"
    assert "/sys/fs/cgroup/quiet/cpuset.cpus.partition" not in found["restored"]


def test_the_fair_server_of_the_isolated_cpus_alone_is_switched_off_or_the_refusal_named(machine: Machine) -> None:
    found = report(machine)
    assert found["apply"]["code"] == 0, found["apply"]
    runtimes = {state: [found[state][SERVER.format(cpu)] for cpu in range(4)] for state in ("found", "applied")}
    assert "0" not in runtimes["found"]
    if "the kernel's admission control for deadline tasks rejects this" in found["apply"]["out"]:
        assert runtimes["applied"] == runtimes["found"]
    else:
        assert runtimes["applied"] == [*runtimes["found"][:2], "0", "0"], found["apply"]["out"]


def test_each_size_of_huge_pages_is_set_and_restored(machine: Machine) -> None:
    found = report(machine)
    assert "[madvise]" in found["applied"][f"{MM}/hugepages-64kB/enabled"]
    assert "[never]" in found["applied"][f"{MM}/shmem_enabled"]
    assert found["restored"] == found["found"]


def test_neither_the_partition_nor_a_runs_group_accounts_pressure(machine: Machine) -> None:
    found = report(machine)
    assert found["applied"]["/sys/fs/cgroup/quiet/cgroup.pressure"] == "0"
    assert found["run"]["out"].strip().splitlines()[-1] == "0", found["run"]
