"""Disturbances of a command are named while `quiet why` runs it, and `quiet run` leaves those that were predicted.

The CPU has its tick, so pauses of the whole machine are seen too. What reaches a process through its memory, the
command does to itself.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from tests.lab.cases.test_noise import stop_the_host
from tests.lab.guest.noise import STOP_S, STOPS, TIMERS
from tests.lab.guest.why import CPU
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["plain-6.1", "plain-6.12"], indirect=True)]
Report = dict[str, Any]
# what is planted -> (its cause, the least and the most that it may be counted as; a name is a number from the guest)
PLANTED: dict[str, tuple[str, str | int, str | int | None]] = {
    "timer": ("local timer: perf_swevent_hrtimer", "timer", "timer_at_most"),
    "task": (r"task planted-task \({task}\)", "switches", "switches"),
    "work": (rf"kworker/{CPU}:.* update_pages_handler", "works", "works"),
    "device": ("IRQ {line} virtio.*", 100, None),
    "packets": ("softirq NET_RX", "packets", "packets"),
    "shootdowns": ("IPI: TLB shootdown.*", 50, "shootdowns"),
    "barriers": ("IPI: (membarrier|function call).*", 50, None),
    "pauses": ("host took the CPU", STOPS, None),
}


@once
def report(machine: Machine, parts: str = "trace counts predicted shared foreseen") -> Report:
    result = boot(machine, f"python -m tests.lab.guest.why {parts}", timeout=3600, on_line=stop_the_host)
    found: Report = json.loads(result.files.get("report.json", "{}"))
    assert found, result.output
    assert "broke" not in found, found["broke"]
    return found


def count(seen: Report, pattern: str) -> int:
    return sum(each["count"] for each in seen["causes"] if re.fullmatch(pattern, each["cause"]))


def length_ns(seen: Report, pattern: str) -> int:
    return sum(each["total_ns"] or 0 for each in seen["causes"] if re.fullmatch(pattern, each["cause"]))


def test_each_planted_disturbance_has_its_name_and_number(machine: Machine) -> None:
    both = report(machine, "trace")["trace"]
    planted, seen = both["planted"], both["report"]
    assert seen["method"] == "trace"
    assert planted["timer"] >= TIMERS
    for name in ("timer", "task", "work", "device", "packets"):
        least, found, most = bounds(name, planted, seen)
        assert least <= found <= most, name


def bounds(name: str, planted: Report, seen: Report) -> tuple[float, int, float]:
    """The least that a planted disturbance has to be counted as, its count, and the most."""
    pattern, least, most = PLANTED[name]
    found = count(seen, pattern.format(**planted))
    at_least, at_most = (planted[each] if isinstance(each, str) else each for each in (least, most))
    return at_least or 0, found, math.inf if at_most is None else at_most


@pytest.mark.long
def test_nothing_of_the_command_itself_is_an_interruption(machine: Machine) -> None:
    for half in ("trace", "counts"):
        seen = report(machine)[half]["report"]
        assert seen["cpus_used"] == [CPU] or CPU in seen["cpus_used"]
        assert seen["interrupted"]["count"] == sum(cause["count"] for cause in seen["causes"])


@pytest.mark.long
def test_counts_name_tasks_lines_and_softirqs_too(machine: Machine) -> None:
    planted, seen = report(machine)["counts"]["planted"], report(machine)["counts"]["report"]
    assert seen["method"] == "counts"
    switched = count(seen, rf"task planted-task \({planted['task']}\)")
    assert 0.8 * planted["switches"] <= switched <= planted["switches"]
    assert count(seen, f"IRQ {planted['line']} virtio.*") >= 80
    assert 0.8 * planted["packets"] <= count(seen, "softirq NET_RX") <= planted["packets"]


@pytest.mark.long
def test_interruptions_that_a_command_causes_itself_are_named(machine: Machine) -> None:
    planted, seen = report(machine)["shared"]["planted"], report(machine)["shared"]["report"]
    barrier = "IPI: membarrier.*" if machine.series != "6.1" else "IPI: function call.*"
    assert 50 <= count(seen, "IPI: TLB shootdown.*") <= planted["shootdowns"]
    assert count(seen, barrier) >= 50


@pytest.mark.long
def test_a_stopped_machine_is_found_by_the_tick_that_is_late(machine: Machine) -> None:
    seen = report(machine)["shared"]["report"]
    assert count(seen, "host took the CPU") >= STOPS
    assert length_ns(seen, "host took the CPU") >= 0.9e9 * STOPS * STOP_S


def tick_rates(seen: Report) -> tuple[float, float]:
    """The least and the most ticks per second in which the command ran.

    The emulator stops a CPU for longer than a tick, mostly in interruptions that belong to the command's CPU time.
    """
    ticks, cpu_s = count(seen, "local timer: tick.*"), float(seen["cpu_s"])
    return ticks / cpu_s, ticks / (cpu_s - length_ns(seen, "(host|local timer|softirq|IRQ|IPI|irq work).*") / 1e9)


@pytest.mark.long
def test_on_a_busy_host_tasks_disappear_and_ticks_stay_as_predicted(machine: Machine) -> None:
    before, after = (report(machine)["predicted"][when] for when in ("before", "after"))
    expected = before["remaining"]
    own = count(before, "quiet itself .*")
    assert expected["count"] + expected["gone"] + own == before["interrupted"]["count"]
    gone = {cause["cause"] for cause in before["causes"]} - set(expected["causes"])
    tasks = {name for name in gone if name.startswith("task ")}
    assert tasks
    assert not tasks & {cause["cause"] for cause in after["causes"]}
    (least, most), (least_after, most_after) = tick_rates(before), tick_rates(after)
    assert 0.8 * least <= most_after, "too few ticks remain"
    assert 0.8 * least_after <= most, "more ticks than before"


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_a_real_run_sees_the_interruptions_that_were_predicted_to_stay(machine: Machine, name: str) -> None:
    before, after = (report(machine)["foreseen"][when] for when in ("why", "run"))
    least, found, most = bounds(name, before["planted"], before["report"])
    assert least <= found <= most
    pattern = PLANTED[name][0].format(**before["planted"])
    stays = any(re.fullmatch(pattern, cause) for cause in before["report"]["remaining"]["causes"])
    least, found, most = bounds(name, after["planted"], after["report"])
    assert least <= found <= most if stays else found == 0
