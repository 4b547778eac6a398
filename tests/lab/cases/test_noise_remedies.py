"""The remedies remove their causes: a disturbed CPU before quiet is applied, and after."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["isolated-6.1", "isolated-6.12"], indirect=True),
]

# A task that wakes on CPU 3 ten times a second, and a device whose interrupt goes there and which has work to do.
SCRIPT = r"""
folder=$(dirname $LAB_OUT)
line=$(python -c "import pathlib, tests.lab.guest.plant as p; print(p.busiest_interrupt(pathlib.Path('$folder')))")
echo 3 > /proc/irq/$line/smp_affinity_list
taskset -c 0 sh -c "while :; do echo x > $folder/traffic; sleep 0.2; done" & traffic=$!
taskset -c 3 sh -c 'while :; do sleep 0.1; done' & task=$!
sleep 1
quiet verify --duration 8 --threshold 2us --json > $LAB_OUT/before.json
quiet apply --profile bench
quiet verify --duration 8 --threshold 2us --json > $LAB_OUT/after.json
kill $traffic $task
quiet restore
echo $line > $LAB_OUT/line
"""


@once
def reports(machine: Machine) -> tuple[dict[str, Any], dict[str, Any], str]:
    result = boot(machine, SCRIPT, timeout=600)
    assert result.code == 0, result.output
    before, after = (json.loads(result.files[f"{name}.json"]) for name in ("before", "after"))
    return before, after, result.files["line"].strip()


def causes(report: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["noise"]["cpus"]["3"]["causes"]
    return found


def count(report: dict[str, Any], begin: str) -> int:
    return sum(each["count"] for each in causes(report) if each["cause"].startswith(begin))


def test_before_apply_each_disturbance_is_named_with_a_knob(machine: Machine) -> None:
    before, _, line = reports(machine)
    knobs = {each["cause"].partition(" (")[0]: each["knob"] for each in causes(before)}
    assert count(before, f"IRQ {line} ") >= 3
    assert next(knob for cause, knob in knobs.items() if cause.startswith(f"IRQ {line} ")) == "irq"
    assert count(before, "task sleep ") + count(before, "task sh ") >= 10
    assert knobs["task sleep"] == "cpuset"
    assert before["quiet"] is False


def test_after_apply_they_are_gone_and_no_knob_is_recommended(machine: Machine) -> None:
    _, after, line = reports(machine)
    assert after["drift"] == []
    assert count(after, f"IRQ {line} ") == 0
    assert count(after, "task ") - count(after, "task migration/") == 0, causes(after)
    assert [each for each in causes(after) if each["knob"]] == []


def test_every_remaining_interruption_has_a_cause_and_an_explanation(machine: Machine) -> None:
    _, after, _ = reports(machine)
    for cpu in after["noise"]["cpus"].values():
        assert cpu["unattributed"] == 0
        assert all(each["remedy"] for each in cpu["causes"])
        assert [line for line, counts in cpu["interrupts"].items() if counts["exact"] is False] == []
