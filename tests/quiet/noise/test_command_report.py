"""The text of the report of a command, for `quiet why` and `quiet run`."""

from __future__ import annotations

from dataclasses import replace

from quiet.cli import json_output
from quiet.noise import command_report
from quiet.noise.budgets import Nanoseconds
from quiet.noise.command_report import CommandReport, CommandUsage, Remaining
from quiet.noise.frequency import Frequency
from quiet.noise.interruptions import COUNTS, TRACE, InterruptionCause, Interruptions

USAGE = CommandUsage(("make",), 0, 12.3, 12.2, 100, 2, 7, 3)
STEADY = Frequency("APERF and MPERF of its CPUs", 3.1e9, 3.1e9, 3.1e9)


def cause(name: str, count: int, total: float | None, remedy: str = "knob irq: a device") -> InterruptionCause:
    ns = None if total is None else Nanoseconds(total)
    return InterruptionCause(name, "irq", count, ns, ns, remedy, "irq", None)


def seen(*causes: InterruptionCause, method: str = TRACE, frequency: Frequency = STEADY) -> Interruptions:
    known = [row.total_ns for row in causes if row.total_ns is not None]
    total = Nanoseconds(sum(known)) if known or not causes else None
    count = sum(row.count for row in causes)
    return Interruptions(method, 14.0, (2, 3), count, total, total, causes, frequency, {}, None, 4, ())


def report(*causes: InterruptionCause, settings: int | None = None, **others: str) -> CommandReport:
    return command_report.make(USAGE, seen(*causes, **others), settings=settings)


def test_the_summary_is_one_line_with_all_key_figures() -> None:
    traced = report(cause("IRQ 30 eth0", 3, 41_000), settings=65)
    wanted = "interrupted 3 times, 41.0 us of 12.3 s (0.00033 %); frequency 3.10 GHz ± 0; 65 settings restored"
    assert command_report.summary(traced) == wanted


def test_the_share_is_that_of_the_length_beside_it() -> None:
    assert "1.23 s of 12.3 s (10 %)" in command_report.summary(report(cause("IRQ 30 eth0", 3, 1.23e9)))


def test_the_share_of_a_command_on_several_cpus_is_that_of_its_cpu_time() -> None:
    used = replace(USAGE, wall_s=2.0, cpu_s=4.0)
    text = command_report.summary(command_report.make(used, seen(cause("IRQ 30 eth0", 3, 1e9))))
    assert text.startswith("interrupted 3 times, 1.00 s of 4.00 s of CPU time (25 %); ")


def test_a_quiet_run_is_reported_as_quiet() -> None:
    assert command_report.summary(report()).startswith("not interrupted in 12.3 s; ")


def test_counted_causes_are_marked_approximate_and_have_no_length() -> None:
    counted = command_report.make(USAGE, seen(cause("IRQ 30 eth0", 1, None), method=COUNTS))
    assert command_report.summary(counted).startswith("interrupted about 1 time in 12.3 s; ")
    table = list(command_report.lines(counted))
    assert table[1].split() == ["IRQ", "30", "eth0", "1", "-", "-", "-"]


def test_other_tasks_have_a_length_by_counts_too() -> None:
    counted = command_report.make(USAGE, seen(cause("IRQ 30", 2, None), cause("task a (1)", 1, 5e6), method=COUNTS))
    assert "interrupted about 3 times, by other tasks for 5.00 ms of 12.3 s" in command_report.summary(counted)


def test_a_varying_frequency_is_given_with_its_spread_and_an_unknown_one_is_reported_as_unknown() -> None:
    varied = Frequency("x", 3.0e9, 2.9e9, 3.05e9)
    assert command_report.frequency(varied) == "frequency 3.00 GHz ± 0.10"
    assert command_report.frequency(Frequency("no counter")) == "frequency unknown"


def test_causes_with_the_same_remedy_are_grouped_and_it_is_printed_once() -> None:
    rows = (cause("a", 3, 3e6, "same"), cause("b", 2, 2e6, "other"), cause("c", 1, 1e6, "same"))
    words = [line.split()[0] for line in command_report.lines(report(*rows))]
    assert words == ["cause", "a", "c", "->", "b", "->"]


def test_tasks_of_one_name_are_shown_as_one() -> None:
    rows = [replace(cause(f"task make ({number})", 2, 1e6), kind="thread") for number in (10, 11, 12)]
    table = list(command_report.lines(report(*rows)))
    assert len(table) == 3
    assert " ".join(table[1].split()) == "task make (3 tasks) 6 3.00 ms 1.00 ms 0.024 %"


def test_many_causes_are_counted_at_the_end() -> None:
    rows = [cause(f"task {number}", 2, 1e6) for number in range(command_report.FEW + 3)]
    assert list(command_report.lines(report(*rows)))[-1] == "  and 3 more causes, 6 times; the JSON report lists all"


def test_the_prediction_reports_the_removed_number_and_the_remaining_causes() -> None:
    expected = Remaining("bench", 2, 8, None, ("local timer: tick",))
    text = list(command_report.prediction(command_report.make(USAGE, seen(cause("a", 10, 1e6)), expected)))
    wanted = "under `quiet run` (profile bench) about 8 of these 10 would be gone; 2 would stay: local timer: tick"
    assert text == [wanted]
    assert not list(command_report.prediction(report()))


def test_the_use_of_the_cpus_is_one_line() -> None:
    text = command_report.cpus(report())
    assert text == (
        "12.3 s, 12.2 s of CPU time on CPUs 2-3; 4 migrations; preempted 3 times, waited 7 times; "
        "102 page faults (2 from disk)"
    )


def test_the_json_has_whole_nanoseconds() -> None:
    shape = json_output.to_object(report(cause("a", 1, 1234.6)))
    assert shape["causes"][0]["total_ns"] == 1235  # type: ignore[index, call-overload]
    assert shape["cpus_used"] == [2, 3]
