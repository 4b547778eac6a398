"""The report of wake-ups: percentiles, bins, causes with their remedies, the verdict, the text and the JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.cli import json_output
from quiet.noise.attribute import IDLE, IRQS_OFF, USER_RETURN, Cause
from quiet.noise.wake import command, report, table
from quiet.noise.wake.anatomy import Anatomy, Part
from quiet.noise.wake.events_around import TimelineEvent
from quiet.noise.wake.report import WakeBudgets
from quiet.noise.wake.sleeper import BIN_NS
from tests.quiet.noise.wake.making import measured, slept

NONE = WakeBudgets()
RETURNED = Part("return", Cause(USER_RETURN, ""), 1_000)
OFF = Anatomy((300_000, 0, 0, 1_000), (Part("timer", Cause(IRQS_OFF, "task hog (812)"), 300_000), RETURNED))
SLEPT = Anatomy((40_000, 0, 0, 1_000), (Part("timer", Cause(IDLE, "C1"), 40_000), RETURNED))
EVENTS = (TimelineEvent(-1500.0, "idle state C1 begins"), TimelineEvent(0.0, "due: the timer should expire now"))


@given(st.lists(st.integers(1, 20_000_000), min_size=1, max_size=300), st.sampled_from([0.5, 0.99, 0.999]))
def test_a_percentile_is_that_of_the_sorted_latencies_to_a_bin(latencies: list[int], q: float) -> None:
    exact = next(each for rank, each in enumerate(sorted(latencies), 1) if rank >= q * len(latencies))
    found = report.percentile(slept(latencies), q)
    assert min(latencies) <= found <= max(latencies)
    assert exact - BIN_NS < found <= exact or (exact >= 10_000_000 and found == max(latencies))


@given(st.lists(st.integers(0, 12_000_000), max_size=200))
def test_the_bins_of_a_microsecond_hold_every_wake_up(latencies: list[int]) -> None:
    one = slept(latencies)
    bins = dict(report.histogram_us(one))
    assert sum(bins.values()) + one.beyond == len(latencies)
    assert all(bins[each // 1000] for each in latencies if each < 10_000_000)


def test_each_of_the_worst_wake_ups_has_its_phases_parts_and_remedies() -> None:
    made = report.make(measured(slept([301_000, 41_000, 3_000]), [OFF, SLEPT]), NONE, {})
    first, second, third = made.cpus[1].worst
    assert first.phases_ns == {"timer": 300_000, "wake": 0, "switch": 0, "return": 1_000}
    assert [part.cause for part in first.parts] == ["interrupts off in task hog (812)", "return to user space"]
    assert (second.parts[0].cause, second.parts[0].knob) == ("idle state C1", "idle.cpus")
    assert third.phases_ns is None
    assert first.at_s == pytest.approx(0.001301)


def test_causes_are_counted_by_the_longest_part() -> None:
    made = report.make(measured(slept([301_000, 41_000, 41_000]), [OFF, SLEPT, SLEPT]), NONE, {})
    assert [(cause.cause, cause.wake_ups) for cause in made.cpus[1].causes] == [
        ("idle state C1", 2),
        ("interrupts off in task hog (812)", 1),
    ]


def test_a_knob_that_is_in_place_is_not_proposed() -> None:
    made = report.make(measured(slept([41_000]), [SLEPT], frozenset({"idle.cpus"})), NONE, {})
    assert made.cpus[1].causes[0].knob is None
    assert "already in place" in made.cpus[1].causes[0].remedy


def test_without_a_trace_the_idle_states_used_have_a_remedy() -> None:
    made = report.make(measured(slept([41_000])), NONE, {})
    assert made.cpus[1].causes == ()
    assert made.cpus[1].idle_remedy
    assert made.cpus[1].idle_remedy in "\n".join(table.lines(made))


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        (NONE, []),
        (WakeBudgets(max_latency_ns=41_000.0), []),
        (WakeBudgets(max_latency_ns=40_999.0), ["max-latency"]),
        (WakeBudgets(stop_above_ns=40_000.0), ["stop-above"]),
        (WakeBudgets(40_000.0, 40_000.0), ["max-latency", "stop-above"]),
    ],
)
def test_the_verdict_depends_on_the_worst_wake_up(limits: WakeBudgets, exceeded: list[str]) -> None:
    made = report.make(measured(slept([41_000, 2_000])), limits, {})
    assert [each.budget for each in made.exceeded] == exceeded
    assert all("41.0 us" in each.text for each in made.exceeded)
    verdict = "not quiet" if exceeded else "quiet" if limits != NONE else "no limit"
    assert any(verdict in line for line in table.lines(made))


def test_the_text_has_the_split_the_causes_and_the_timeline() -> None:
    stopped = measured(slept([2_000, 301_000]), [OFF], stop_above=100_000, timeline=EVENTS)
    text = "\n".join(table.lines(report.make(stopped, WakeBudgets(stop_above_ns=100_000.0), {})))
    for part in (
        "timer interrupt 300 us late",
        "interrupts off in task hog (812)",
        "stopped** by a wake-up on CPU 1 that was 301 us late",
        "-1.5 us  idle state C1 begins",
        "+0.0 us  due",
        "C1 90 times, 900 us (wakes in 2 us)",
    ):
        assert part in text, part


def test_a_measurement_without_a_wake_up_is_a_line() -> None:
    text = "\n".join(table.lines(report.make(measured(slept([])), NONE, {})))
    assert "0 wake-ups" in text


def test_the_json_is_plain_and_whole() -> None:
    stopped = measured(slept([2_000, 301_000]), [OFF], stop_above=100_000, timeline=EVENTS)
    made = report.make(stopped, WakeBudgets(stop_above_ns=100_000.0), {})
    shape = json.loads(json.dumps(json_output.to_object(made)))
    assert shape["budgets"] == {"max_latency_ns": None, "stop_above_ns": 100_000.0}
    assert shape["stopped"]["timeline"][0] == {"ns": -1500.0, "event": "idle state C1 begins"}
    assert shape["cpus"]["1"]["histogram_us"] == [[2, 1], [301, 1]]
    assert shape["cpus"]["1"]["percentiles_ns"] == {"p50": 2_000, "p99": 301_000, "p99.9": 301_000}
    assert shape["cpus"]["1"]["idle"][0]["usage"] == 90
    assert shape["exceeded"] == [{"cpu": 1, "budget": "stop-above", "limit": 100_000.0, "found": 301_000}]


def test_the_saved_trace_is_the_timeline_or_states_that_there_is_none() -> None:
    stopped = measured(slept([301_000]), [OFF], stop_above=100_000, timeline=EVENTS)
    saved = command.saved_trace(report.make(stopped, NONE, {}))
    assert saved.splitlines()[0].startswith("CPU 1: a wake-up 301 us late")
    assert len(saved.splitlines()) == 3
    assert command.saved_trace(report.make(measured(slept([2_000])), NONE, {})) == "no wake-up exceeded the limit\n"
