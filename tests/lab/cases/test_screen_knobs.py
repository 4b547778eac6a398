"""`cbench screen knobs` with planted causes: they are named, the host is restored, the smallest profile is as quiet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.parametrize("machine", ["isolated-6.12"], indirect=True),
]

SCRIPT = """
cd "$(mktemp -d)"; export PYTHONPATH="$OLDPWD"
python -m tests.lab.guest.knobs --duration 3 --applications 30
"""
ONE_EACH = {"irq", "watchdog.cpus", "static_keys.timestamps"}
EITHER = {"cpuset", "tasks"}


@once
def files(machine: Machine) -> dict[str, str]:
    result = boot(machine, SCRIPT, timeout=3600)
    assert result.code == 0, result.output
    return dict(result.files)


def screening(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(machine)["screen.json"])
    return found


def report(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(machine)["report.json"])
    return found


def test_the_planted_causes_are_named_and_at_most_one_other_knob(machine: Machine) -> None:
    matter = {each["knob"] for each in screening(machine)["effects"] if each["verdict"] == "matters"}
    assert matter >= ONE_EACH
    assert matter & EITHER
    assert len(matter - ONE_EACH - EITHER - {"mce.interval"}) <= 1


def test_it_takes_at_most_the_applications_that_it_may(machine: Machine) -> None:
    assert screening(machine)["applications"] <= 30


def test_the_smallest_profile_has_few_knobs_and_was_not_shown_to_be_noisier(machine: Machine) -> None:
    assert len(screening(machine)["written"]) <= 10
    assert screening(machine)["check"]["outcome"] in ("within", "no difference shown")


def test_the_written_profile_is_accepted_by_quiet_plan(machine: Machine) -> None:
    assert report(machine)["planned"] == 0
    assert "profile mine" in files(machine)["mine.txt"]


def test_after_a_kill_and_a_resume_the_host_is_as_it_was(machine: Machine) -> None:
    assert report(machine)["killed"] == -9
    assert report(machine)["code"] in (0, 1), report(machine)["said"]
    assert report(machine)["left"] == []
