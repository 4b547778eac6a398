"""Disturbances of a CPU are named: those planted in a known number are found under their own names.

On a CPU that is isolated from the boot on. In each of two rounds it is measured twice: by the detector as users have
it, and by one that is a thread of the disturbing process, for what reaches a process through its memory.
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import Any

import psutil
import pytest

from tests.lab.guest.noise import CPU, STOP_ME, STOP_S, STOPS, TIMERS
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["isolated-6.1", "isolated-6.12"], indirect=True),
]

ROUNDS = 2


def emulators() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if each.name().startswith("qemu-system")]


def stop_the_host(line: str) -> None:
    """Stop the emulator and let it go on, as a host does that runs another guest on the processor."""

    def stop() -> None:
        for _ in range(STOPS):
            for each in emulators():
                each.suspend()
            time.sleep(STOP_S)
            for each in emulators():
                each.resume()
            time.sleep(STOP_S)

    if STOP_ME in line:
        threading.Thread(target=stop).start()


@once
def rounds(machine: Machine) -> list[dict[str, Any]]:
    result = boot(machine, f"python -m tests.lab.guest.noise {ROUNDS}", timeout=1800, on_line=stop_the_host)
    report = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in report, report["broke"]
    assert len(report["rounds"]) == ROUNDS, result.output
    found: list[dict[str, Any]] = report["rounds"]
    return found


def cpu(half: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, Any] = half["noise"]["cpus"][str(CPU)]
    return seen


def found(half: dict[str, Any], pattern: str) -> list[dict[str, Any]]:
    return [each for each in cpu(half)["causes"] if re.fullmatch(pattern, each["cause"])]


def count(half: dict[str, Any], pattern: str) -> int:
    return sum(each["count"] for each in found(half, pattern))


def remedies(half: dict[str, Any], pattern: str) -> str:
    return " ".join(each["remedy"] for each in found(half, pattern))


def test_a_timer_is_found_with_its_function(machine: Machine) -> None:
    for each in rounds(machine):
        planted = each["apart"]["planted"]
        assert planted["timer"] >= TIMERS
        fired = count(each["apart"], "local timer: perf_swevent_hrtimer")
        assert planted["timer"] <= fired <= planted["timer_at_most"]
        assert "profiler" in remedies(each["apart"], "local timer: perf_swevent_hrtimer")


def test_a_task_is_found_with_its_name_and_number(machine: Machine) -> None:
    for each in rounds(machine):
        planted = each["apart"]["planted"]
        name = rf"task planted-task \({planted['task']}\)"
        assert planted["switches"] >= 30
        assert count(each["apart"], name) == planted["switches"]
        assert "cpuset" in remedies(each["apart"], name)


def test_a_work_is_found_with_its_function_and_its_kworker(machine: Machine) -> None:
    for each in rounds(machine):
        assert count(each["apart"], rf"kworker/{CPU}:.* update_pages_handler") == each["apart"]["planted"]["works"]
        assert "trace buffer" in remedies(each["apart"], r"kworker/.* update_pages_handler")


def test_a_devices_interrupt_is_found_with_its_line_and_name(machine: Machine) -> None:
    for each in rounds(machine):
        line = each["apart"]["planted"]["line"]
        counted = cpu(each["apart"])["interrupts"][str(line)]["counted"]
        assert counted >= 100
        assert abs(count(each["apart"], f"IRQ {line} virtio.*") - counted) <= counted // 100
        assert "knob irq" in remedies(each["apart"], f"IRQ {line} virtio.*")


def test_a_softirq_is_found_net_of_the_task_that_raised_it(machine: Machine) -> None:
    for each in rounds(machine):
        assert count(each["apart"], "softirq NET_RX") == each["apart"]["planted"]["packets"]
        assert cpu(each["apart"])["softirqs"]["NET_RX"] == each["apart"]["planted"]["packets"]


def test_tlb_shootdowns_are_found_with_who_sent_them(machine: Machine) -> None:
    for each in rounds(machine):
        planted = each["shared"]["planted"]["shootdowns"]
        counted = cpu(each["shared"])["interrupts"]["TLB"]["counted"]
        assert planted <= count(each["shared"], "IPI: TLB shootdown.*") <= counted <= planted + 20
        assert count(each["shared"], r"IPI: TLB shootdown from CPU [012], python \(\d+\)") >= 0.9 * planted
        assert "page tables" in remedies(each["shared"], "IPI: TLB shootdown.*")


def test_memory_barriers_are_found_where_the_kernel_names_functions(machine: Machine) -> None:
    name = "IPI: membarrier.*" if machine.series != "6.1" else "IPI: function call.*"
    for each in rounds(machine):
        planted, sent = each["shared"]["planted"]["barriers"]
        most = sent + (0 if machine.series != "6.1" else 10)
        assert planted == 50
        assert planted <= count(each["shared"], name) <= most


def test_a_stopped_host_is_attributed_to_the_host(machine: Machine) -> None:
    for each in rounds(machine):
        longest = sorted(each["shared"]["gaps"], key=lambda gap: -gap[1])[: STOPS + 1]
        assert [kind for _, _, kind in longest[:STOPS]] == ["host"] * STOPS, longest
        assert all(length >= 0.95e9 * STOP_S for _, length, _ in longest[:STOPS]), longest
        assert "no setting in the guest" in remedies(each["shared"], "host took the CPU")


def test_gaps_above_a_microsecond_have_a_cause(machine: Machine) -> None:
    for each in rounds(machine):
        for half in (each["apart"], each["shared"]):
            assert cpu(half)["unattributed"] <= cpu(half)["gaps"] / 100
            assert cpu(half)["lost_events"] == 0
            assert half["noise"]["limits"] == []


def test_the_trace_and_the_kernels_own_counts_agree_exactly(machine: Machine) -> None:
    for each in rounds(machine):
        for half in (each["apart"], each["shared"]):
            lines = cpu(half)["interrupts"]
            assert [line for line, counts in lines.items() if counts["exact"] is False] == []
            assert "LOC" in lines


def test_the_cost_of_tracing_itself_is_measured(machine: Machine) -> None:
    costs = [cpu(each["apart"])["tracing"] for each in rounds(machine)]
    assert all(each["events"] > 100 for each in costs)
    assert any(each["event_ns"] > 0 and each["cost_pct"] > 0 for each in costs)  # an emulator's page faults vary
