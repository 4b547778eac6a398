"""`quiet watch --cpus` on a real kernel: interruptions of isolated CPUs are in its history, and it adds none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.guest.monitor import CPU, PLANTED
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["isolated-6.12"], indirect=True)]

ROUNDS, SECONDS = 2, 15
CALM_S, MOST_SHARE = 600, 0.0005
IPIS = ("IPI: reschedule", "IPI: function call")


def report_of(machine: Machine, arguments: str, timeout: int) -> dict[str, Any]:
    result = boot(machine, f"python -m tests.lab.guest.monitor {arguments}", timeout=timeout)
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert found, result.output
    assert "broke" not in found, found["broke"]
    return found


@once
def report(machine: Machine) -> dict[str, Any]:
    return report_of(machine, f"{ROUNDS} {SECONDS}", 900)


@once
def calm(machine: Machine) -> dict[str, Any]:
    return report_of(machine, f"--calm {CALM_S}", 3000)


def causes(found: dict[str, Any]) -> dict[str, int]:
    return {row["cause"]: row["count"] for row in found["history"]["json"]["causes"]}


def total(counted: dict[str, dict[str, int]]) -> int:
    return sum(count for lines in counted.values() for count in lines.values())


def test_every_planted_interrupt_is_in_the_history(machine: Machine) -> None:
    found = report(machine)
    seen = causes(found)
    assert sum(seen.get(name, 0) for name in IPIS) >= PLANTED, found
    assert seen["task switch"] >= PLANTED, found
    lines = found["counted"][str(CPU)]
    assert sum(seen.get(name, 0) for name in IPIS) >= lines.get("RES", 0) + lines.get("CAL", 0) >= PLANTED, found


def test_the_monitor_interrupts_no_isolated_cpu(machine: Machine) -> None:
    """A check each second: the same interruptions occur with and without it, and no more.

    A check that interrupts one of these CPUs would add at least SECONDS to each round; chance adds a few to some.
    """
    rounds = report(machine)["rounds"]
    without, with_monitor = ([total(each[name]) for each in rounds] for name in ("without", "with"))
    print(f"interrupts in {SECONDS} s: without the monitor {without}, with it {with_monitor}: {rounds[-1]['with']}")
    assert min(with_monitor) < max(without) + SECONDS / 2, rounds


def test_the_watch_runs_to_the_end(machine: Machine) -> None:
    for ended in (report(machine)["ended"], *(each["ended"] for each in report(machine)["rounds"])):
        assert ended["code"] == 0
        assert ended["lines"][-1]["event"] == "ended"
        assert ended["lines"][-1]["looks"] >= 1


def test_the_history_is_one_table(machine: Machine) -> None:
    assert f"of CPU {CPU}, watched for" in report(machine)["table"]


@pytest.mark.long
def test_in_ten_minutes_every_planted_interrupt_is_in_the_history(machine: Machine) -> None:
    found = calm(machine)
    assert found["woken"] >= PLANTED * CALM_S // 60 - 1
    lines = found["counted"][str(CPU)]
    assert lines.get("RES", 0) + lines.get("CAL", 0) >= found["woken"]  # either one wakes a CPU
    assert causes(found)["task switch"] >= found["woken"]
    assert sum(causes(found).get(name, 0) for name in IPIS) >= found["woken"]


@pytest.mark.long
def test_in_ten_minutes_it_interrupts_no_isolated_cpu(machine: Machine) -> None:
    """As above, in one round of ten minutes without the monitor and ten with it, and a check each second."""
    (only,) = report_of(machine, f"1 {CALM_S}", 3000)["rounds"]
    print("without the monitor", only["without"], "with it", only["with"])
    assert total(only["with"]) < total(only["without"]) + CALM_S / 10, only


@pytest.mark.long
def test_in_ten_minutes_it_takes_at_most_a_two_thousandth_of_a_cpu(machine: Machine) -> None:
    found = calm(machine)
    share = found["cost_s"] / found["seconds"]
    print(f"{100 * share:.4f} % of a CPU of the emulator, {found['ticks']} ticks in {found['seconds']:.0f} s")
    assert share <= MOST_SHARE
