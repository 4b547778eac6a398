"""A study in a profile: its trials sit on the isolated CPUs, and the host is restored, also when it is interrupted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["isolated-6.12"], indirect=True)]

TIMEOUT_S = 1500
WHERE, HASH, LONG = 0, 1, 2


@once
def report(machine: Machine) -> dict[str, Any]:
    result = boot(machine, "python -m tests.lab.guest.study", timeout=TIMEOUT_S)
    assert result.code == 0, result.output
    found: dict[str, Any] = json.loads(result.files["report.json"])
    return found


def test_ctrl_c_ends_it_and_leaves_nothing_changed(machine: Machine) -> None:
    made = report(machine)["interrupted"]
    assert made["code"] == 130, made["said"]
    assert "cbench order resume s.db" in made["said"]
    assert made["left"] == []


def test_a_resume_continues_in_the_profile_and_leaves_nothing_changed(machine: Machine) -> None:
    made = report(machine)
    assert made["resumed"]["code"] == 0, made["resumed"]["said"]
    assert made["resumed"]["left"] == []
    trials = made["store"]["trials"]
    assert sorted(test for test, _, _, _ in trials) == [WHERE, HASH, LONG]
    assert all(failure is None for _, failure, _, _ in trials)
    assert made["steps"]["text"] == "down\ndown\n"


def test_trials_run_on_the_isolated_cpus(machine: Machine) -> None:
    found = {test: (output, facts) for test, _, output, facts in report(machine)["store"]["trials"]}
    assert found[WHERE][0].split() == ["Cpus_allowed_list:", "2-3", "1"]
    assert found[HASH][1]["cpu"] in (2, 3)


def test_the_state_of_the_host_and_of_its_caches_is_stored_with_the_run(machine: Machine) -> None:
    ((reset, facts, resumed),) = report(machine)["store"]["runs"]
    assert reset["drops"] >= 1
    for each in (facts, *resumed):
        assert each["cpus"] == "2-3"
        assert isinstance(each["quiet"]["quiet"], bool)
        assert each["quiet"]["drift"] == []
        assert sorted(each["quiet"]["cpus"]) == ["2", "3"]
    assert len(resumed) == 1
