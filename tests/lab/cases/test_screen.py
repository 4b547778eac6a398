"""Levels that change the host, in a guest that may be changed: governor, knob, profile. Killed or not, it is
restored.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["cpufreq"], indirect=True)]

TIMEOUT_S = 1800
FIXED = 0x40000  # ADDR_NO_RANDOMIZE, personality(2)


@once
def report(machine: Machine) -> dict[str, Any]:
    result = boot(machine, "python -m tests.lab.guest.screen", timeout=TIMEOUT_S)
    assert result.code == 0, result.output
    found: dict[str, Any] = json.loads(result.files["report.json"])
    return found


def test_a_governor_that_is_not_offered_is_refused_before_anything_runs(machine: Machine) -> None:
    made = report(machine)["refused"]
    assert made["code"] == 3
    assert "governor=save cannot be set here: policy 0 offers no governor 'nonesuch'" in made["said"]
    assert made["left"] == []


def test_kill_9_leaves_its_level_and_a_resume_restores_it_first_and_continues(machine: Machine) -> None:
    made = report(machine)
    assert made["killed"]["code"] == -9
    assert made["killed"]["left"] != []  # so there was something to restore
    assert made["resumed"]["code"] == 0, made["resumed"]["said"]
    assert (
        "restored the levels of an earlier, killed process: settings that quiet had applied" in made["resumed"]["said"]
    )
    assert made["resumed"]["left"] == []
    trials = made["knobs"]["trials"]
    assert [(run, position) for run, position, *_ in trials] == [(run, place) for run in (0, 1) for place in range(4)]
    assert all(failure is None for _, _, _, failure, _, _ in trials)


def test_each_trial_has_its_levels_and_the_read_back_values_are_stored_with_it(machine: Machine) -> None:
    intervals: dict[str, set[str]] = {"found": set(), "quiet": set()}
    for _, _, name, _, output, facts in report(machine)["knobs"]["trials"]:
        levels = dict(each.split("=") for each in name.split())
        governor, interval = output.split()[:2]
        assert governor == {"save": "powersave", "fast": "performance"}[levels["governor"]]
        intervals[levels["stat"]].add(interval)
        assert facts["confirmed"]["governor"] == f"governor {governor}"
        assert ("stat" in facts["confirmed"]) is (levels["stat"] == "quiet")
    assert len(intervals["found"]) == len(intervals["quiet"]) == 1
    assert intervals["found"] != intervals["quiet"]


def test_a_profile_is_a_level_of_batches_and_its_trials_sit_on_the_isolated_cpus(machine: Machine) -> None:
    made = report(machine)
    assert made["profile"]["code"] == 0, made["profile"]["said"]
    assert made["profile"]["left"] == []
    batches = made["profiled"]["batches"]
    assert sorted(batch["host"] for batch in batches) == ["bench", "bench", "found", "found"]
    for run, _, name, failure, output, _ in made["profiled"]["trials"]:
        level = batches[int(made["profiled"]["runs"][run][0].split()[1])]["host"]
        assert failure is None
        assert f"host={level}" in name.split()
        _, _, _, cpus, personality, _ = output.split()
        assert (cpus == "2-3") is (level == "bench")
        assert bool(int(personality, 16) & FIXED) is (level == "bench")


def test_the_confirmation_of_a_batchs_level_is_stored_with_its_first_iteration(machine: Machine) -> None:
    made = report(machine)["profiled"]
    for kind, facts in made["runs"]:
        level = made["batches"][int(kind.split()[1])]["host"]
        assert ("host" in facts["levels"]["confirmed"]) is (level == "bench")
