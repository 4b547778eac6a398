"""`cbench step` where a frequency driver is: the settings change, and are put back however it ends."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["cpufreq"], indirect=True)]


@functools.cache
def report(machine: Machine) -> dict[str, Any]:
    result = boot(machine, "python -m tests.lab.guest.step", timeout=900)
    assert result.code == 0, result.output
    made: dict[str, Any] = json.loads(result.files["report.json"])
    return made


def test_the_frequency_is_changed_at_half_time_and_put_back(machine: Machine) -> None:
    made = report(machine)
    assert made["code"] == 0, made["err"]
    step = json.loads(made["out"])
    assert (step["from_khz"], step["to_khz"], step["seen_khz"]) == (1_000_000, 3_000_000, [1_000_000, 3_000_000])
    assert len(step["trials"]) == len(step["trials_ns"]) == 800
    assert 400 <= step["written_after"] < 800
    assert step["policy"]["driver"] == "acpi-cpufreq"
    assert made["after"] == made["before"]
    assert not made["journal"]


def test_a_signal_puts_the_frequency_back_before_the_command_ends(machine: Machine) -> None:
    ended = report(machine)["SIGTERM"]
    assert ended["held"][:2] == ["1000000", "1000000"]
    assert ended["code"] == 143
    assert "Traceback" not in ended["err"]
    assert ended["after"] == ended["before"]
    assert not ended["journal"]


def test_after_a_kill_quiet_restore_puts_the_frequency_back(machine: Machine) -> None:
    ended = report(machine)["SIGKILL"]
    assert ended["after"][:2] == ["1000000", "1000000"]
    assert ended["journal"]
    assert ended["restore"] == 0, ended["restore_said"]
    assert ended["restored"] == ended["before"]
