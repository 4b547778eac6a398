"""On every machine: quieting it carries out the plan, and restoring brings back the original state byte for byte.

Before that, every setting differs from its default (see disturb.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.cases import visits
from tests.lab.harness.boot import Machine
from tests.lab.harness.machines import ALL, MACHINES, OWN

pytestmark = [pytest.mark.lab, pytest.mark.visit]

EVERYWHERE = pytest.mark.parametrize("machine", [machine.name for machine in (*ALL, OWN)], indirect=True)
PROFILES = pytest.mark.parametrize("profile", ["bench", "strict"])
WATCHED = pytest.mark.parametrize("machine", visits.WATCHED, indirect=True)


def said(step: dict[str, Any]) -> str:
    return f"exit status {step['code']}\n{step['out']}{step['err']}"


@EVERYWHERE
def test_the_machine_starts_from_a_distinct_state(machine: Machine) -> None:
    done = visits.report(machine)["disturbed"]
    assert len(done) > 10
    assert [path for path, text in done.items() if text.startswith("refused")] == []
    if machine.cpufreq:
        assert len([path for path in done if "/cpufreq/" in path]) == 4


@EVERYWHERE
def test_status_changes_nothing(machine: Machine) -> None:
    assert visits.report(machine)["left_by_snapshot"] == []


@EVERYWHERE
@PROFILES
def test_planning_changes_nothing(machine: Machine, profile: str) -> None:
    trip = visits.report(machine)[profile]
    assert trip["plan"]["code"] == 0, said(trip["plan"])
    assert trip["left_by_plan"] == []


@EVERYWHERE
@PROFILES
def test_apply_does_what_the_plan_shows(machine: Machine, profile: str) -> None:
    trip = visits.report(machine)[profile]
    assert len(trip["plan"]["json"]["changes"]) > 10
    assert trip["apply"]["code"] == 0, said(trip["apply"])
    assert trip["plan_again"]["json"]["changes"] == []
    assert trip["verify"]["code"] == 0, said(trip["verify"])
    assert trip["status"]["json"]["applied"]["profile"] == profile
    assert len(trip["changed_by_apply"]) > 10


@EVERYWHERE
@PROFILES
def test_restore_leaves_nothing_changed(machine: Machine, profile: str) -> None:
    trip = visits.report(machine)[profile]
    assert trip["restore"]["code"] == 0, said(trip["restore"])
    assert trip["left"] == []


@WATCHED
def test_no_other_user_task_runs_on_the_isolated_cpus(machine: Machine) -> None:
    run = visits.report(machine)["run_with"]
    assert run["code"] == 0
    assert run["foreign"] == {}
    assert run["allowed"] == "2-3"
    assert run["turns"] > 1000


@pytest.mark.parametrize("machine", ["plain-6.1", "plain-6.12"], indirect=True)
def test_without_quiet_other_user_tasks_run_on_the_isolated_cpus(machine: Machine) -> None:
    run = visits.report(machine)["run_without"]
    assert run["code"] == 0
    assert run["foreign"] != {}


@WATCHED
def test_run_leaves_nothing_changed(machine: Machine) -> None:
    assert visits.report(machine)["left_by_run"] == []


def test_every_watched_machine_exists() -> None:
    assert set(visits.WATCHED) <= MACHINES.keys()
