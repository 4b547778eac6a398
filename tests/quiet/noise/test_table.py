"""The text report has the required content."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import report, table
from quiet.noise.attribute import HOST, HYPERVISOR, STALL, UNKNOWN, Cause
from quiet.noise.budgets import NONE, Budgets
from quiet.noise.call_nesting import HRTIMER, IRQ, THREAD
from quiet.noise.command_tasks import TaskTimes
from quiet.noise.counters import Count
from quiet.noise.frequency import Frequency
from quiet.noise.measure import NoiseMeasurement
from tests.quiet.noise.making import measured, on_cpu

TICK = Cause(HRTIMER, "tick_nohz_handler")


def said(made: NoiseMeasurement, limits: Budgets = NONE) -> str:
    return "\n".join(table.lines(report.make(made, limits, {})))


def test_a_cause_is_printed_with_its_numbers_and_its_remedy() -> None:
    text = said(measured({1: on_cpu([(TICK, 4_000), (TICK, 5_000)])}))
    (line,) = [line for line in text.splitlines() if "tick_nohz_handler" in line]
    assert all(word in line for word in ("2", "9.00 us", "5.00 us"))
    assert "nohz_full=1" in text


def test_the_method_and_its_limits_are_reported() -> None:
    text = said(measured())
    assert "a synthetic source" in text
    assert "a synthetic limit" in text
    assert "not detected" in text


def test_there_is_a_verdict_only_with_a_budget() -> None:
    made = measured({1: on_cpu([(TICK, 4_000)])})
    assert "no verdict" in said(made)
    assert "**quiet**" in said(made, Budgets(max_gap_ns=4_000))
    last = said(made, Budgets(max_gap_ns=3_999)).splitlines()[-1]
    assert last.startswith("**not quiet**")
    assert "CPU 1" in last


def test_each_cpu_has_its_own_part_in_order() -> None:
    text = said(measured({3: on_cpu([(TICK, 4_000)], 3), 1: on_cpu([(TICK, 4_000)])}))
    assert re.findall(r"\*\*CPU (\d)\*\*", text) == ["1", "3"]
    assert "nohz_full=3" in text


def test_a_cpu_that_nothing_interrupted_says_so() -> None:
    counted = on_cpu([])
    assert "nothing interrupted" in said(measured({1: replace(counted, interrupts={})}))
    assert "no interruption was as long as the threshold" in said(measured({1: counted}))


def test_a_full_buffer_is_reported_with_the_number_of_attributed_gaps() -> None:
    text = said(measured({1: on_cpu([(TICK, 4_000)] * 10, more=1_000)}))
    (line,) = [line for line in text.splitlines() if "buffer" in line]
    assert "10" in line
    assert "1,010 gaps" in text
    assert "the ring" not in said(measured({1: on_cpu([(TICK, 4_000)] * 10)}))


def test_in_a_virtual_machine_the_hosts_share_is_reported() -> None:
    on = on_cpu([(Cause(HOST, HYPERVISOR), 3_000_000), (TICK, 1_000_000)])
    text = said(measured({1: on}, virtual="hypervisor (of the test)"))
    assert "0.3000 %" in text
    assert "0.1000 %" in text
    assert "in a virtual machine: of the test" in text


def test_gaps_without_a_cause_are_reported() -> None:
    two = measured({1: on_cpu([(Cause(UNKNOWN, "short"), 1_500)] * 2)})
    assert "2 gaps of 1.00 us or more without a cause" in said(two)
    assert "without a cause" not in said(measured({1: on_cpu([(TICK, 1_500)])}))


def test_a_line_where_the_trace_and_the_kernel_disagree_is_reported() -> None:
    on = on_cpu([(TICK, 1_500)])
    assert "eth0" not in said(measured({1: on}))
    on.interrupts["27"] = Count("eth0", 9, 7, False)
    (line,) = [line for line in said(measured({1: on})).splitlines() if "eth0" in line]
    assert all(word in line for word in ("27", "9", "7"))


def test_the_cost_of_tracing_is_reported() -> None:
    on = on_cpu([(TICK, 4_000)])
    assert "tracing itself" not in said(measured({1: on}))
    on.events = 20_000
    assert "20,000 events, their cost was not measured" in said(measured({1: on}))
    on.event_cost = 0
    assert "20,000 events, too cheap to measure" in said(measured({1: on}))
    on.event_cost = 150
    assert "20,000 events, at 150 ns each, 0.3000 % of the time" in said(measured({1: on}))


def test_the_reason_for_keeping_the_tick_is_reported_with_its_count() -> None:
    on = on_cpu([(TICK, 4_000)])
    assert "could not be stopped" not in said(measured({1: on}))
    on.tick_kept = {"RCU needs it": 1_234, "a perf event needs it": 2}
    text = said(measured({1: on}))
    assert "could not be stopped 1,234 times: RCU needs it" in text
    assert "could not be stopped 2 times: a perf event needs it" in text


def test_settings_already_in_place_are_not_advised() -> None:
    cpus = {1: on_cpu([(TICK, 4_000)])}
    assert "boot with nohz_full=1" in said(measured(cpus))
    text = said(measured(cpus, in_place=["nohz_full"]))
    assert "boot with" not in text
    assert "the CPU is nohz_full" in text


def test_of_many_causes_the_costliest_are_shown_and_the_rest_counted() -> None:
    many = [(Cause(IRQ, f"{number} device"), 1_000 + number) for number in range(table.FEW + 5)]
    text = said(measured({1: on_cpu(many)}))
    assert f"{table.FEW + 4} device" in text
    assert not re.search(r"\b4 device", text)
    assert "5 more" in text


def test_a_task_that_ran_once_is_named_in_the_singular() -> None:
    on = on_cpu([(TICK, 1_500)])
    on.tasks = [TaskTimes(7, "python", 1, 1000, 0, 1), TaskTimes(8, "make", 1, 1000, 0, 2)]
    listed = "python (7) 1 time, 1.00 us; make (8) 2 times, 1.00 us"
    assert f"tasks last seen here, with their times on all CPUs: {listed}" in said(measured({1: on}))


def test_a_tasks_name_is_not_interpreted_as_markup() -> None:
    text = said(measured({1: on_cpu([(Cause(THREAD, "[red]x[/red]", "7"), 5_000)])}))
    assert "[red]x[/red]" in text


@given(st.dictionaries(st.integers(0, 1 << 40), st.integers(1, 10_000), min_size=1, max_size=20))
def test_the_histogram_counts_every_gap_once_in_rising_rows(counts: dict[int, int]) -> None:
    _, *rows = table.histogram(counts)
    numbers = [int(found[1]) if (found := re.search(r" (\d+)$", row)) else 0 for row in rows]
    assert sum(numbers) == sum(counts.values())
    bars = [row.count("#") for row in rows]
    assert max(bars) == table.BAR
    assert [bool(bar) for bar in bars] == [bool(number) for number in numbers]
    assert len({len(row) for row in rows}) == 1


def test_without_gaps_there_is_no_histogram() -> None:
    assert list(table.histogram({})) == []


def test_stalls_are_causes_like_others() -> None:
    assert "processor stall" in said(measured({1: on_cpu([(Cause(STALL, "processor stall"), 200)])}))


def test_the_frequency_is_shown_beside_the_requested_one_or_is_unknown() -> None:
    on = on_cpu([(TICK, 1_500)])
    on.ran, on.fixed_hz = Frequency("APERF and MPERF of its CPUs", 2.795e9), 2.8e9
    assert "ran at 2.795 GHz of 2.800 requested (APERF and MPERF of its CPUs)" in said(measured({1: on}))
    on.fixed_hz = None
    assert "ran at 2.795 GHz (APERF" in said(measured({1: on}))
    on.ran = Frequency("no cycle counter here, or no permission to read it")
    assert "frequency during the measurement unknown: no cycle counter here" in said(measured({1: on}))


def test_uncounted_throttling_is_unknown_and_not_zero() -> None:
    made = measured({1: on_cpu([(TICK, 1_500)])})
    made.smi_source = "not known: no root"
    assert "SMIs of the firmware: not known: no root" in said(made)
    assert "throttling by heat or a power limit: unknown" in said(made)
    made.cpus[1].firmware = 0
    assert "0 SMIs (firmware) were counted" in said(made)
    made.virtual = "hypervisor"
    assert "SMIs" not in said(made)
