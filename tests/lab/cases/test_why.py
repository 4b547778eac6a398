"""Who disturbs a command is named while `quiet why` runs it, and what `quiet run` leaves is what was predicted.

The CPU has its tick, so pauses of the whole machine are seen too. What reaches a process through its memory, the
command does to itself.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.lab.cases.test_noise import stop_the_host
from tests.lab.guest.noise import STOP_S, STOPS, TIMERS
from tests.lab.guest.why import CPU
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.parametrize("machine", ["plain-6.1", "plain-6.12"], indirect=True),
]
Report = dict[str, Any]


@once
def report(machine: Machine) -> Report:
    result = boot(machine, "python -m tests.lab.guest.why", timeout=3600, on_line=stop_the_host)
    found: Report = json.loads(result.files.get("report.json", "{}"))
    assert found, result.output
    assert "broke" not in found, found["broke"]
    return found


def count(seen: Report, pattern: str) -> int:
    return sum(each["count"] for each in seen["causes"] if re.fullmatch(pattern, each["cause"]))


def length_ns(seen: Report, pattern: str) -> int:
    return sum(each["total_ns"] or 0 for each in seen["causes"] if re.fullmatch(pattern, each["cause"]))


def test_each_planted_disturbance_has_its_name_and_number(machine: Machine) -> None:
    planted, seen = report(machine)["trace"]["planted"], report(machine)["trace"]["report"]
    assert seen["method"] == "trace"
    assert TIMERS <= planted["timer"] <= count(seen, "local timer: perf_swevent_hrtimer") <= planted["timer_at_most"]
    assert count(seen, rf"task planted-task \({planted['task']}\)") == planted["switches"]
    assert count(seen, rf"kworker/{CPU}:.* update_pages_handler") == planted["works"]
    assert count(seen, f"IRQ {planted['line']} virtio.*") >= 100
    assert count(seen, "softirq NET_RX") == planted["packets"]


def test_nothing_of_the_command_itself_is_an_interruption(machine: Machine) -> None:
    for half in ("trace", "counts"):
        seen = report(machine)[half]["report"]
        assert seen["cpus_used"] == [CPU] or CPU in seen["cpus_used"]
        assert seen["interrupted"]["count"] == sum(cause["count"] for cause in seen["causes"])


def test_counts_name_tasks_lines_and_softirqs_too(machine: Machine) -> None:
    planted, seen = report(machine)["counts"]["planted"], report(machine)["counts"]["report"]
    assert seen["method"] == "counts"
    switched = count(seen, rf"task planted-task \({planted['task']}\)")
    assert 0.8 * planted["switches"] <= switched <= planted["switches"]
    assert count(seen, f"IRQ {planted['line']} virtio.*") >= 80
    assert 0.8 * planted["packets"] <= count(seen, "softirq NET_RX") <= planted["packets"]


def test_what_a_command_does_to_its_own_threads_is_named(machine: Machine) -> None:
    seen = report(machine)["shared"]
    barrier = "IPI: membarrier.*" if machine.series != "6.1" else "IPI: function call.*"
    assert 50 <= count(seen, "IPI: TLB shootdown.*") <= 100
    assert count(seen, barrier) >= 50


def test_a_stopped_machine_is_found_by_the_tick_that_is_late(machine: Machine) -> None:
    seen = report(machine)["shared"]
    assert count(seen, "host took the CPU") >= STOPS
    assert length_ns(seen, "host took the CPU") >= 0.9e9 * STOPS * STOP_S


def test_what_is_predicted_to_stay_is_what_a_real_run_then_sees(machine: Machine) -> None:
    before, after = (report(machine)["predicted"][when] for when in ("before", "after"))
    expected = before["remaining"]
    assert expected["count"] + expected["gone"] == before["interrupted"]["count"]
    gone = {cause["cause"] for cause in before["causes"]} - set(expected["causes"])
    tasks = {name for name in gone if name.startswith("task ")}
    assert tasks
    assert not tasks & {cause["cause"] for cause in after["causes"]}
    ticks = [count(seen, "local timer: tick.*") / seen["cpu_s"] for seen in (before, after)]
    assert 0.8 <= ticks[0] / ticks[1] <= 1.25
