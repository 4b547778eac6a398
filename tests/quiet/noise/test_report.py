"""Reports: numbers for programs, and the verdict based on budgets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import report
from quiet.noise._noise import lib
from quiet.noise.attribute import FIRMWARE, HOST, HYPERVISOR, STALL, UNKNOWN, Cause
from quiet.noise.budgets import NONE, Budgets
from quiet.noise.call_nesting import HRTIMER, IRQ, THREAD
from quiet.noise.frequency import Frequency
from tests.quiet.noise.making import KINDS, SECOND, cpu_shape, measured, on_cpu
from tests.quiet.noise.making import shape as shape_of

TICK = Cause(HRTIMER, "tick_nohz_handler")
SHAPE = {
    "gaps": int,
    "lost_pct": float,
    "max_ns": int,
    "causes": list,
    "unattributed": int,
}
CAUSE = {"cause": str, "kind": str, "count": int, "total_ns": int, "max_ns": int, "remedy": str}


def test_the_shape_is_the_promised_one_and_json_can_hold_it() -> None:
    made = measured({1: on_cpu([(TICK, 4_000), (Cause(UNKNOWN, "short"), 1_500)]), 3: on_cpu([(TICK, 5_000)], 3)})
    shape = shape_of(made)
    assert shape["duration_s"] == 1.0
    assert {"loop_ns", "threshold_ns"} <= set(shape["detector"])
    assert list(shape["cpus"]) == ["1", "3"]
    one = shape["cpus"]["1"]
    assert {key: type(one[key]) for key in SHAPE} == SHAPE
    assert [{key: type(cause[key]) for key in CAUSE} for cause in one["causes"]] == [CAUSE, CAUSE]
    assert (one["gaps"], one["max_ns"], one["unattributed"]) == (2, 4_000, 1)
    assert one["lost_pct"] == pytest.approx(5_500 * 100 / SECOND)
    assert [cause["total_ns"] for cause in one["causes"]] == [4_000, 1_500]


def test_a_cpu_without_gaps_is_reported_as_one() -> None:
    one = cpu_shape(measured({1: on_cpu([])}), 1)
    assert (one["gaps"], one["lost_pct"], one["max_ns"], one["causes"], one["unattributed"]) == (0, 0, 0, [], 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cause_of_any_kind_is_reported_with_its_remedy(kind: str) -> None:
    (cause,) = cpu_shape(measured({1: on_cpu([(Cause(kind, "x"), 2_000)])}), 1)["causes"]
    assert cause["kind"] == kind
    assert cause["remedy"]
    assert not (cause["knob"] and cause["boot"])


def test_a_full_ring_is_recognized_by_how_many_were_kept() -> None:
    one = cpu_shape(measured({1: on_cpu([(TICK, 4_000)], more=90)}), 1)
    assert (one["gaps"], one["kept"]) == (91, 1)


def test_gaps_without_a_cause_are_counted_above_a_length() -> None:
    on = on_cpu([(Cause(UNKNOWN, "short"), 999), (Cause(UNKNOWN, "short"), 1_000), (TICK, 1_000)])
    assert report.unattributed(on, 1_000) == 1


def test_the_costliest_cause_comes_first() -> None:
    on = on_cpu([(TICK, 10), (Cause(THREAD, "bash", "7"), 100), (TICK, 20), (Cause(IRQ, "27 eth0"), 50)])
    assert [cause.kind for cause, _ in report.by_cost(on.account.totals)] == [THREAD, IRQ, HRTIMER]


def test_the_hosts_share_is_apart_from_this_systems() -> None:
    one = cpu_shape(measured({1: on_cpu([(Cause(HOST, HYPERVISOR), 3_000_000), (TICK, 1_000_000)])}), 1)
    assert one["host_pct"] == pytest.approx(0.3)
    assert one["lost_pct"] == pytest.approx(0.4)


def test_without_budgets_nothing_is_exceeded() -> None:
    assert report.judge(measured({1: on_cpu([(TICK, SECOND)])}), NONE) == []


@pytest.mark.parametrize(
    ("budgets", "names"),
    [
        (Budgets(max_lost_pct=0.1), []),
        (Budgets(max_lost_pct=0.09), ["max-lost"]),
        (Budgets(max_gap_ns=1_000_000), []),
        (Budgets(max_gap_ns=999_999), ["max-gap"]),
        (Budgets(max_interrupts_per_s=250), []),
        (Budgets(max_interrupts_per_s=249), ["max-interrupts"]),
        (Budgets(0, 1, 0), ["max-lost", "max-gap", "max-interrupts"]),
    ],
)
def test_a_budget_is_exceeded_above_it_and_not_at_it(budgets: Budgets, names: list[str]) -> None:
    found = report.judge(measured({1: on_cpu([(TICK, 1_000_000)])}), budgets)
    assert [each.budget for each in found] == names
    assert all(each.cpu == 1 and each.found > each.limit for each in found)


def test_every_cpu_is_judged() -> None:
    made = measured({1: on_cpu([(TICK, 10)]), 3: on_cpu([(TICK, 5_000)], 3)})
    (found,) = report.judge(made, Budgets(max_gap_ns=1_000))
    assert found.cpu == 3
    assert all(word in found.text for word in ("CPU 3", "max-gap", "5.00 us", "1.00 us"))
    assert shape_of(made, Budgets(max_gap_ns=1_000))["exceeded"] == [
        {"cpu": 3, "budget": "max-gap", "limit": 1_000, "found": pytest.approx(5_000)}
    ]


def test_interrupts_that_two_lines_count_are_counted_once() -> None:
    assert report.interrupts(on_cpu([]).interrupts) == 250


def test_a_limit_that_all_cpus_share_is_reported_once() -> None:
    made = measured()
    made.limits.append("a synthetic limit")
    assert report.make(made, NONE, {}).all_limits == ["a synthetic limit"]


def test_the_cost_of_tracing_is_the_measured_cost_times_the_events() -> None:
    on = on_cpu([(TICK, 10_000)])
    none = {"events": 0, "event_ns": None, "cost_pct": None}
    assert cpu_shape(measured({1: on}), 1)["tracing"] == none
    on.events, on.event_cost = 10_000, 200
    assert cpu_shape(measured({1: on}), 1)["tracing"] == {
        "events": 10_000,
        "event_ns": 200,
        "cost_pct": pytest.approx(10_000 * 200 * 100 / SECOND),
    }


def test_the_reason_for_keeping_the_tick_is_reported() -> None:
    on = on_cpu([(TICK, 10_000)])
    on.tick_kept = {"RCU needs it": 3}
    assert cpu_shape(measured({1: on}), 1)["tick_kept"] == {"RCU needs it": 3}


def test_the_hosts_share_is_separate_from_the_processors() -> None:
    on = on_cpu([(Cause(HOST, FIRMWARE), 3_000_000), (Cause(STALL, "processor stall"), 1_000_000), (TICK, 5_000_000)])
    one = cpu_shape(measured({1: on}), 1)
    assert (one["host_pct"], one["stall_pct"]) == (pytest.approx(0.3), pytest.approx(0.1))


def test_a_remedy_that_is_in_place_already_is_not_given_once_more() -> None:
    for in_place, boot in (((), "nohz_full=1"), (("rcu_nocbs",), "nohz_full=1"), (("nohz_full",), None)):
        made = measured({1: on_cpu([(TICK, 4_000)])}, in_place=in_place)
        (cause,) = cpu_shape(made, 1)["causes"]
        assert cause["boot"] == boot
        assert ("boot with" in cause["remedy"]) == bool(boot)


def test_a_remedy_in_place_on_one_cpu_is_not_in_place_on_another() -> None:
    made = measured({1: on_cpu([(TICK, 4_000)]), 3: on_cpu([(TICK, 4_000)], 3)})
    made.in_place[3] = frozenset({"nohz_full"})
    boots = [cpu_shape(made, cpu)["causes"] for cpu in (1, 3)]
    assert [cause["boot"] for causes in boots for cause in causes] == ["nohz_full=1", None]


@given(st.lists(st.integers(0, 1 << 40), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_bucket_of_the_value_with_that_rank(values: list[int], percent: int) -> None:
    histogram: dict[int, int] = {}
    for value in values:
        low = lib.qn_bucket_floor(lib.qn_bucket(value))
        histogram[low] = histogram.get(low, 0) + 1
    ranked = sorted(values)[math.ceil(len(values) * percent / 100) - 1]
    assert (
        report.percentile(histogram, percent / 100)
        <= ranked
        < 1 + report.percentile(histogram, percent / 100) * 17 / 16
    )


@given(st.dictionaries(st.integers(0, 1 << 40), st.integers(1, 1000), min_size=1))
def test_percentiles_rise_to_the_longest(histogram: dict[int, int]) -> None:
    found = [report.percentile(histogram, percent / 100) for percent in range(101)]
    assert found == sorted(found)
    assert found[-1] == max(histogram)


def test_without_gaps_a_percentile_is_0() -> None:
    assert report.percentile({}, 0.5) == 0


@pytest.mark.parametrize(
    ("ran", "asked", "exceeded"),
    [(2.795e9, 2.8e9, False), (2.7e9, 2.8e9, True), (3.1e9, 2.8e9, True), (2.7e9, None, False), (None, 2.8e9, False)],
)
def test_a_frequency_other_than_the_requested_one_is_a_problem(
    ran: float | None, asked: float | None, exceeded: bool
) -> None:
    on = on_cpu([(TICK, 1_000)])
    on.ran, on.fixed_hz = Frequency("APERF and MPERF of its CPUs", ran), asked
    assert [each.budget for each in report.judge(measured({1: on}), NONE)] == ["frequency"] * exceeded
    assert cpu_shape(measured({1: on}), 1)["ran"] == {
        "hz": ran,
        "asked_hz": asked,
        "source": "APERF and MPERF of its CPUs",
    }


def test_the_source_of_the_smis_is_reported() -> None:
    made = measured()
    made.smi_source = "PMU msr/smi/"
    assert shape_of(made)["smi_source"] == "PMU msr/smi/"
