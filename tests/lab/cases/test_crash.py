"""Killed at any moment, without a chance to clean up: `quiet restore` then still restores everything."""

from __future__ import annotations

import json

import pytest

from tests.lab.harness.boot import Machine, boot

pytestmark = pytest.mark.lab

SEED = 20240607
TIMEOUT_S = 1500


@pytest.mark.parametrize(
    ("machine", "command", "rounds"),
    [
        ("plain-6.12", "apply", 6),
        pytest.param("plain-6.12", "apply", 25, marks=pytest.mark.long),
        ("isolated-6.1", "restore", 25),
    ],
    indirect=["machine"],
)
def test_after_a_kill_at_any_moment_restore_leaves_nothing_changed(machine: Machine, command: str, rounds: int) -> None:
    script = f"python -m tests.lab.guest.drive kill-{command} {rounds} {SEED}"
    result = boot(machine, script, timeout=TIMEOUT_S)
    report = json.loads(result.files["report.json"])
    assert "broke" not in report, report["broke"]
    assert report["left_by_warm_up"] == []
    for each in report["rounds"]:
        assert each["restore"] == 0
        assert each["left"] == [], f"{each['profile']}: killed after {each['after']} writes"
    assert len(report["rounds"]) == rounds
    # The moments are worth something only if most of the kills hit while there was something to restore.
    assert len([each for each in report["rounds"] if each["cut"]]) > rounds / 2
