"""Under systemd on other kernels, both profiles are applied and restored; test_boot.py does it on 6.12."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["host-6.1", "host-own"], indirect=True)]
PROFILES = pytest.mark.parametrize("profile", ["bench", "strict"])
TIMEOUT_S = 1200


@once
def report(machine: Machine) -> dict[str, Any]:
    result = boot(machine, "python3 -P -m tests.lab.guest.drive round-trip", timeout=TIMEOUT_S)
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in found, found["broke"]
    assert found, result.output
    return found


def said(step: dict[str, Any]) -> str:
    return f"exit status {step['code']}\n{step['out']}{step['err']}"


@PROFILES
def test_apply_does_what_the_plan_shows(machine: Machine, profile: str) -> None:
    trip = report(machine)[profile]
    assert len(trip["plan"]["json"]["changes"]) > 10
    assert trip["apply"]["code"] == 0, said(trip["apply"])
    assert trip["plan_again"]["json"]["changes"] == []
    assert trip["verify"]["code"] == 0, said(trip["verify"])
    assert len(trip["changed_by_apply"]) > 10


@PROFILES
def test_restore_leaves_nothing_changed(machine: Machine, profile: str) -> None:
    trip = report(machine)[profile]
    assert trip["restore"]["code"] == 0, said(trip["restore"])
    assert trip["left"] == []
