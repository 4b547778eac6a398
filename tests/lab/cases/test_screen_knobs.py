"""`cbench screen knobs` with eight planted causes and 40 inert knobs: the eight are named, and the host is restored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.guest.causes import CAUSES, CAUSES_OF_A_HOST, MOST_INERT
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.parametrize("machine", ["isolated-6.12", "host-isolated"], indirect=True),
]

APPLICATIONS = 40
MOST_WRITTEN = 10
SCRIPT = f"""
[ ! -d /run/systemd/system ] || systemctl start memcached
cd "$(mktemp -d)"; export PYTHONPATH="$OLDPWD"
python -m tests.lab.guest.knobs --duration 12 --applications {APPLICATIONS}
"""
TIMEOUT_S = 7200


@once
def files(machine: Machine) -> dict[str, str]:
    result = boot(machine, SCRIPT, timeout=TIMEOUT_S, on_line=print)
    assert result.code == 0, result.output
    return dict(result.files)


def report(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(machine)["report.json"])
    assert "broke" not in found, found["broke"]
    return found


def screening(machine: Machine) -> dict[str, Any]:
    assert report(machine)["code"] in (0, 1), report(machine)["said"]
    found: dict[str, Any] = json.loads(files(machine)["screen.json"])
    return found


def planted(machine: Machine) -> set[str]:
    return set(CAUSES_OF_A_HOST if machine.disk else CAUSES)


def test_there_are_eight_causes_and_40_inert_knobs(machine: Machine) -> None:
    assert report(machine)["lacking"] == []
    assert len(report(machine)["inert"]) == MOST_INERT
    assert screening(machine)["screened"] == len(planted(machine)) + MOST_INERT == 48


def test_the_eight_causes_are_named_and_at_most_one_other_knob(machine: Machine) -> None:
    matter = {each["knob"] for each in screening(machine)["effects"] if each["verdict"] == "matters"}
    assert matter >= planted(machine), screening(machine)["effects"]
    assert len(matter - planted(machine)) <= 1


def test_the_screening_takes_at_most_the_permitted_applications(machine: Machine) -> None:
    assert screening(machine)["applications"] <= APPLICATIONS


def test_the_smallest_profile_has_few_knobs_and_was_not_shown_to_be_noisier(machine: Machine) -> None:
    assert len(screening(machine)["written"]) <= MOST_WRITTEN
    assert screening(machine)["check"]["outcome"] in ("within", "no difference shown")


def test_the_written_profile_is_accepted_by_quiet_plan(machine: Machine) -> None:
    assert report(machine)["planned"] == 0
    assert "profile mine" in files(machine)["mine.txt"]


def test_after_a_kill_and_a_resume_the_host_is_as_it_was(machine: Machine) -> None:
    assert report(machine)["killed"] == -9
    assert "causes" in report(machine)["after_kill"]
    assert report(machine)["left"] == []
