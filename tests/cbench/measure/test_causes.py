"""Interruptions of a trial: the trace's names, the counters' where there is none, and neither twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench._cbench import ffi, lib
from cbench.machine import counters
from cbench.measure import protocol
from cbench.measure.cause_counts import CauseCount, cause_counts
from cbench.measure.causes import Causes, merged
from cbench.measure.series import TrialSeries
from cbench.model import FAULT, INTERRUPT, MIGRATION, MULTIPLEXED, TASK, CausesSource, Trial, TrialCause
from cbench.model import SWITCH as SWITCHED
from cbench.run.table import cause_rows
from cbench.stats.summary import summarise
from cbench.stats.verdict import verdict
from quiet.host.host import Host
from quiet.noise import clock
from quiet.noise.attribute import Cause as TracedCause
from quiet.noise.call_nesting import BEGIN, CALL, END, HRTIMER, IRQ, POINT, SWITCH, THREAD, VECTOR, WORK, TraceEvent
from quiet.noise.call_nesting import FAULT as FAULTED
from quiet.noise.decode import foreign
from quiet.noise.follow import Follower, Seen, label, look
from quiet.noise.names import Senders, namer
from tests.cbench.running import cbench, measured
from tests.trees import plant

OWN = 77
TIMER = "LOC (Local timer interrupts)"
TICK = TrialCause(INTERRUPT, "local timer: tick_nohz_handler", ns=900)
FOO = TrialCause(TASK, "task foo (123)", ns=5_000)
INVOLUNTARY = TrialCause(SWITCHED, "0 voluntary, 1 involuntary")
FAULTS = TrialCause(FAULT, "page fault", ns=0)
NAMES = namer(Senders([], 0, 1000), lambda pid: {5: "kworker/0:1"}.get(pid, ""))


def to(time: int, task: int, name: str = "") -> TraceEvent:
    return TraceEvent(time, SWITCH, THREAD, name, 0, other=task)


def tick(time: int, length: int = 10) -> list[TraceEvent]:
    """A local timer interrupt with its handler."""
    return [
        TraceEvent(time, BEGIN, VECTOR, "local_timer", OWN, 236),
        TraceEvent(time + 2, BEGIN, HRTIMER, "tick_nohz_handler", OWN, 9),
        TraceEvent(time + length - 2, END, HRTIMER, "", OWN, 9),
        TraceEvent(time + length, END, VECTOR, "", OWN, 236),
    ]


def interrupted(count: int = 1, name: str = TIMER) -> Trial:
    return Trial(130, 1, (TrialCause(INTERRUPT, name, count),), interrupts={name: count})


def texts(events: list[TraceEvent], *intervals: tuple[int, int]) -> list[list[tuple[str, int]]]:
    seen = look(events, OWN, intervals, NAMES)
    assert None not in seen
    return [[(part.label, part.ticks) for part in each.parts] for each in seen if each]


def test_each_interval_gets_exactly_the_events_that_ran_in_it() -> None:
    events = [to(0, OWN), *tick(50), *tick(150), to(310, 123, "foo"), to(340, OWN)]
    assert texts(events, (40, 100), (100, 140), (140, 200), (300, 400)) == [
        [("local timer: tick_nohz_handler", 10)],
        [],
        [("local timer: tick_nohz_handler", 10)],
        [("task foo (123)", 30)],
    ]


def test_times_are_net_and_the_longest_comes_first() -> None:
    events = [to(0, OWN), to(10, 123, "foo"), *tick(20), to(60, OWN)]
    assert texts(events, (5, 100)) == [[("task foo (123)", 40), ("local timer: tick_nohz_handler", 10)]]


def test_a_task_that_carries_a_work_gives_it_its_time_and_an_interrupts_function_in_it_has_its_own() -> None:
    work, call = (TraceEvent(20, BEGIN, WORK, "vmstat_update", 5, 1), TraceEvent(30, BEGIN, CALL, "ipi_mb", 5, 2))
    ends = [TraceEvent(40, END, CALL, "", 5, 2), TraceEvent(50, END, WORK, "", 5, 1)]
    vector = [TraceEvent(30, BEGIN, VECTOR, "call_function", 5, 3), TraceEvent(40, END, VECTOR, "", 5, 3)]
    first, last = [to(0, OWN), to(10, 5, "kworker/0:1"), work], [ends[1], to(60, OWN)]
    assert texts([*first, vector[0], call, ends[0], vector[1], *last], (5, 100)) == [
        [("kworker/0:1 vmstat_update", 40), ("IPI: membarrier", 10)]
    ]
    assert texts([*first, *last], (5, 100)) == [[("kworker/0:1 vmstat_update", 50)]]


def test_a_function_that_a_work_calls_itself_is_part_of_it() -> None:
    events = [TraceEvent(20, BEGIN, WORK, "vmstat_update", 5, 1), TraceEvent(30, BEGIN, CALL, "ipi_mb", 5, 2)]
    ends = [TraceEvent(40, END, CALL, "", 5, 2), TraceEvent(50, END, WORK, "", 5, 1)]
    assert texts([to(0, OWN), to(10, 5, "kworker/0:1"), *events, *ends, to(60, OWN)], (5, 100)) == [
        [("kworker/0:1 vmstat_update", 50)]
    ]


def test_the_measured_task_and_idle_are_not_an_interruption() -> None:
    assert texts([to(0, OWN), to(10, 0), to(60, OWN)], (5, 100)) == [[]]


def test_an_event_that_crosses_an_intervals_end_counts_only_for_the_part_inside() -> None:
    assert texts([to(0, OWN), to(90, 123, "foo"), to(120, OWN)], (0, 100), (100, 200)) == [
        [("task foo (123)", 10)],
        [("task foo (123)", 20)],
    ]


def test_events_without_a_length_are_found_too() -> None:
    fault = TraceEvent(50, POINT, FAULTED, "page fault", OWN)
    flush = TraceEvent(70, POINT, CALL, "TLB shootdown", OWN)
    assert texts([to(0, OWN), fault, flush], (10, 100)) == [[("page fault", 0), ("IPI: TLB shootdown", 0)]]


def test_interrupts_are_counted_within_and_around_an_interval() -> None:
    device = [TraceEvent(110, BEGIN, IRQ, "27 virtio1-requests", OWN, 27), TraceEvent(115, END, IRQ, "", OWN, 27)]
    one, two = look([to(0, OWN), *tick(20), *device, *tick(150)], OWN, [(40, 100), (140, 200)], NAMES)
    assert one
    assert two
    assert (one.within, one.around) == ({}, {"LOC": 1, "27": 1})
    assert (two.within, two.around) == ({"LOC": 1}, {"27": 1, "LOC": 1})


def test_when_events_were_lost_the_intervals_after_the_last_one_are_unknown() -> None:
    seen = look([to(0, OWN), *tick(50)], OWN, [(10, 55), (58, 90)], NAMES, whole=False)
    assert seen[0] is not None
    assert seen[1] is None
    assert look([], OWN, [(1, 2)], NAMES, whole=False) == [None]


def test_a_trace_that_never_shows_the_measured_task_numbers_it_differently() -> None:
    assert foreign([to(0, 123, "python"), to(50, 0)], OWN)
    assert not foreign([to(0, OWN), to(50, 0)], OWN)
    assert not foreign([], OWN)


def test_a_page_fault_is_not_called_the_detectors() -> None:
    assert label(TracedCause(FAULTED, "page fault")) == "page fault"


def test_a_tasks_name_cannot_write_to_the_terminal() -> None:
    assert label(TracedCause(THREAD, "a\nb\x1b[31mc", "9")) == "task a?b?[31mc (9)"


def test_the_traces_name_takes_the_place_of_the_counted_line() -> None:
    trial = merged(interrupted(), (TICK,), Seen(within={"LOC": 1}, around={"LOC": 1}))
    assert trial.causes == (TICK,)
    assert trial.interrupts == {TIMER: 1}


def test_the_task_that_came_takes_the_place_of_the_context_switch() -> None:
    trial = Trial(300, 1, (INVOLUNTARY,), 1)
    assert merged(trial, (FOO,), Seen()).causes == (FOO,)


def test_a_context_switch_that_the_trace_does_not_explain_stays() -> None:
    trial = Trial(300, 1, (TrialCause(SWITCHED, "1 voluntary, 0 involuntary"),), 1)
    assert [cause.text for cause in merged(trial, (TICK,), Seen()).causes] == [
        "local timer: tick_nohz_handler",
        "context switch (1 voluntary, 0 involuntary)",
    ]


def test_an_interrupt_that_came_before_the_timed_region_pollutes_nothing() -> None:
    trial = merged(interrupted(), (), Seen(around={"LOC": 1}))
    assert not trial.polluted
    assert not trial.interrupts


def test_an_interrupt_that_the_trace_does_not_have_at_all_stays_as_it_was_counted() -> None:
    for seen in (Seen(), Seen(around={"LOC": 1})):
        trial = merged(interrupted(2), (), seen)
        assert [cause.text for cause in trial.causes] == [f"interrupt {TIMER}"]
        assert trial.interrupts == {TIMER: 2}


def test_a_line_that_is_counted_in_addition_goes_with_its_interrupt() -> None:
    flush = interrupted(1, "TLB (TLB shootdowns)")
    assert not merged(flush, (), Seen(around={"CAL": 1})).polluted
    sent = TrialCause(INTERRUPT, "IPI: TLB shootdown from CPU 0, sh (9)", ns=400)
    assert merged(flush, (sent,), Seen(within={"CAL": 1})).causes == (sent,)
    assert merged(flush, (), Seen()).causes == (TrialCause(INTERRUPT, "TLB (TLB shootdowns)"),)


def test_an_ipi_of_arm_is_known_by_its_description() -> None:
    trial = interrupted(1, "IPI0 (Rescheduling interrupts)")
    assert not merged(trial, (), Seen(around={"Rescheduling interrupts": 1})).polluted


def test_a_trial_that_only_the_trace_knows_of_is_polluted_too() -> None:
    trial = merged(Trial(130, 1), (TICK,), Seen(within={"LOC": 1}))
    assert trial.polluted
    assert trial.causes == (TICK,)


def test_a_page_fault_has_the_counters_words_and_is_reported_once() -> None:
    counted = TrialCause(FAULT, "1 minor, 0 major")
    trial = Trial(130, 1, (counted,), page_faults=1)
    assert merged(trial, (FAULTS,), Seen()).causes == (counted,)
    assert counted.text == "page fault (1 minor, 0 major)"
    assert [cause.text for cause in merged(Trial(130, 1), (FAULTS,), Seen()).causes] == ["page fault"]


def test_a_cause_that_invalidates_a_trial_is_kept() -> None:
    trial = Trial(90, 1, (TrialCause(MIGRATION, "CPU 1 to CPU 2"), TrialCause(MULTIPLEXED)), migrated=True, valid=False)
    assert merged(trial, (TICK,), Seen()).causes == (TICK, *trial.causes)


def test_the_verdict_has_the_traces_names() -> None:
    trials = [Trial(100, 1)] * 7
    trials += [merged(interrupted(), (TICK,), Seen(within={"LOC": 1}))] * 2
    trials += [merged(Trial(300, 1, (INVOLUNTARY,), 1), (FOO,), Seen())]
    said = verdict(trials, summarise([trial.value for trial in trials], 1), "cycles")
    assert said == (
        "repeats to the cycle: 7 of 10 trials on the floor 100\n3 differ, "
        "2 interrupted (local timer: tick_nohz_handler 2), 1 with a context switch (task foo (123) 1)"
    )


def test_causes_are_grouped_by_name_with_their_times() -> None:
    traced = [merged(Trial(130, 1), (TrialCause(INTERRUPT, "local timer", ns=ns),), Seen()) for ns in (300, 500)]
    assert cause_counts([*traced, interrupted(), Trial(100, 1)]) == (
        CauseCount("local timer", 2, 800, 500),
        CauseCount(f"interrupt {TIMER}", 1, None, None),
    )


def test_the_table_has_the_commonest_causes_of_all_columns_and_how_many_more() -> None:
    left = [CauseCount(f"task {number} ({number})", 20 - number, None, None) for number in range(10)]
    right = [CauseCount("task 9 (9)", 50, None, None), CauseCount("task 8 (8)", 1, None, None)]
    rows = cause_rows([left, right])
    assert rows[0] == ("task 9 (9)", [11, 50])
    assert len(rows) == 9
    assert rows[-1] == ("and 2 more", [25, 1])


def test_trials_reach_the_parent_as_they_were() -> None:
    trial = Trial(130, 1, (TrialCause(INTERRUPT, "LOC", 3),), 1, 2, {"LOC": 1}, True, False, 2**63, 2**63 + 5)
    reading, writing = os.pipe()
    protocol.send(writing, [trial])
    with os.fdopen(reading, "rb") as pipe:
        assert protocol.receive(pipe.read) == [trial]


def test_a_trials_begin_and_end_enclose_it_on_the_detectors_clock() -> None:
    _, handle = counters.open_counter(counters.ticks_name(), 0)
    allowed = os.sched_getaffinity(0)
    cpu = min(allowed)
    series = TrialSeries(handle, cpu, ffi.addressof(lib, "cb_hash_run"), ffi.NULL, 10_000, 0)
    before = clock.now()
    os.sched_setaffinity(0, {cpu})
    trials = series.run(50)
    os.sched_setaffinity(0, allowed)
    moments = [before, *(moment for trial in trials for moment in (trial.begin, trial.end)), clock.now()]
    assert len(trials) == 50
    assert moments == sorted(moments)
    assert all(trial.value <= trial.end - trial.begin for trial in trials)
    assert min(trial.end - trial.begin - trial.value for trial in trials) < 2_000
    series.close()
    lib.cb_counter_destroy(handle)


def test_without_tracing_the_reason_is_reported_and_nothing_is_named(tmp_path: Path) -> None:
    with Follower(Host(str(plant(tmp_path, {"proc/": "", "sys/": ""}))), frozenset({0})) as follower:
        assert not follower.available
        assert follower.why == "this kernel has no tracing"
        causes = Causes(follower, 0, OWN)
        causes.begin()
        assert causes.name([interrupted()]) == [interrupted()]
        causes.resume()
        causes.end()
        assert causes.source() == CausesSource("counters", "this kernel has no tracing", 1)


def test_a_trace_that_cannot_be_set_up_is_removed_with_the_leftovers_of_others(tmp_path: Path) -> None:
    tree = {"proc/1/stat": "1 (init) S" + " 0" * 18 + " 7 0", "sys/devices/system/cpu/online": "0"}
    names = ("quiet-noise.1.7.cpus", "quiet-noise.1.6.cpus", "quiet-noise.4194303.1.trials", "somebodys")
    tree |= {f"sys/kernel/tracing/instances/{name}/": "" for name in names}
    host = Host(str(plant(tmp_path, tree)))
    with Follower(host, frozenset({0})) as follower:
        assert not follower.available
        assert "tracing cannot be set up" in follower.why
        assert host.names("/sys/kernel/tracing/instances") == ["quiet-noise.1.7.cpus", "somebodys"]


@pytest.mark.slow
def test_the_report_states_the_source_of_the_causes() -> None:
    (result,) = measured("hash", trace=False)["results"]
    assert result["causes_from"] == {"source": "counters", "note": "--no-trace", "from_counters": 5}
    (result,) = measured("hash")["results"]
    assert result["causes_from"]["source"] in ("kernel tracing", "counters")
    assert result["causes_from"]["note"]
    output = cbench("run", "hash", "--quick", "--trials", "5", "--warmup", "0", "--no-trace").stdout
    assert "causes from counters (--no-trace)" in output
