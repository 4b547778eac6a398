"""Units and slices on a machine with systemd: held off under a profile, not undone by systemd, and back as found."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["host"], indirect=True)]
SCRIPT = "python3 -P -m tests.lab.guest.services"
TIMEOUT_S = 1500
HELD = ("apt-daily.timer", "atd.service", "backup@daily.service", "cron.service", "packagekit.service", "snapd.socket")
GONE = "ActiveState=inactive LoadState=masked"


@once
def booted(machine: Machine) -> Result:
    return boot(dataclasses.replace(machine, cpus=3), SCRIPT, timeout=TIMEOUT_S)


def report(machine: Machine) -> dict[str, Any]:
    result = booted(machine)
    assert result.code == 0, result.output
    found: dict[str, Any] = json.loads(result.files["report.json"])
    assert "broke" not in found, found["broke"]
    return found


def test_sockets_and_the_bus_start_services_that_are_not_masked(machine: Machine) -> None:
    started = report(machine)["triggered_before"]
    assert set(started.values()) == {"ActiveState=active LoadState=loaded"}


def test_every_unit_is_stopped_and_masked_and_no_trigger_starts_it(machine: Machine) -> None:
    found = report(machine)
    for states in (found["applied"], found["triggered"]):
        assert {name: states[name] for name in HELD} == dict.fromkeys(HELD, GONE)
        assert "ActiveState=inactive" in states["snapd.service"]


def test_a_unit_with_a_file_in_etc_is_masked_in_front_of_it(machine: Machine) -> None:
    assert report(machine)["enabled"]["atd.service"] == "masked-runtime"


def test_a_unit_that_another_one_needs_keeps_running_and_is_reported(machine: Machine) -> None:
    found = report(machine)
    assert found["applied"]["ksmtuned.service"] == found["applied"]["needy.service"]
    assert "ActiveState=active" in found["applied"]["needy.service"]
    skips = [(skip["target"], skip["reason"]) for skip in found["apply"]["json"]["skips"]]
    assert any(target == "unit:ksmtuned.service" and "would stop with it" in reason for target, reason in skips)
    assert found["apply"]["code"] == 0


def test_a_second_name_of_a_unit_is_not_a_separate_unit(machine: Machine) -> None:
    targets = [change["target"] for change in report(machine)["plan"]["json"]["changes"]]
    assert "unit:smartmontools.service" in targets
    assert "unit:smartd.service" not in targets


def test_tuned_is_held_and_released_as_the_same_process(machine: Machine) -> None:
    (held, state), (after, state_after) = report(machine)["tuned"], report(machine)["tuned_restored"]
    assert held == after
    assert (state, state_after) == ("T", "S")


def test_a_second_plan_is_empty(machine: Machine) -> None:
    assert report(machine)["plan_again"]["json"]["changes"] == []


def test_a_restore_returns_every_unit_to_its_original_state(machine: Machine) -> None:
    found = report(machine)
    assert found["left_by_state"] == found["left_by_plan"] == []
    assert found["restore"]["code"] == 0, found["restore"]
    assert found["left"] == []


def test_when_informed_systemd_leaves_the_partition_alone(machine: Machine) -> None:
    found = report(machine)
    applied, after = found["partition_with"][1:]
    assert applied["partition"] == "isolated"
    assert applied["system.slice"] == applied["user.slice"] == applied["init.scope"] == "0-1"
    for later in (after, found["partition_reexec"]):  # the processor's controller is there for the other unit
        assert later == applied | {"controllers": later["controllers"]}
        assert "cpuset" in later["controllers"].split()
    assert found["verify"]["json"]["drift"] == []
    assert found["left_by_controllers"] == []


def test_the_partitions_own_slice_is_enough_for_systemd_to_leave_it(machine: Machine) -> None:
    before, after = report(machine)["partition_without"][1:]
    assert before["partition"] == after["partition"] == "isolated"
    assert "cpuset" in after["controllers"].split()


def test_a_slices_cpus_are_narrowed_and_restored(machine: Machine) -> None:
    found = report(machine)
    assert found["own_before"]["user.slice"] == "1-2"
    assert found["own_applied"]["user.slice"] == "1"
    assert found["own_restore"]["code"] == 0
    assert found["own_after"]["user.slice"] == "1-2"
    # the kernel lets nobody empty the set of a group with processes in it: all CPUs restrict nothing either
    emptied = [f"/sys/fs/cgroup/{name}/cpuset.cpus: was '\\n', is '0-2\\n'" for name in ("init.scope", "system.slice")]
    assert found["own_left"] == emptied


def test_a_restore_killed_at_any_moment_still_restores_everything(machine: Machine) -> None:
    rounds = report(machine)["killed"]
    assert len(rounds) == 4
    assert any(each["cut"] for each in rounds)
    assert [each["left"] for each in rounds] == [[]] * 4
    assert [each["done"]["code"] for each in rounds] == [0] * 4
