"""Events become nested frames, and each frame's time belongs to the right one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise.call_nesting import (
    BEGIN,
    CALL,
    END,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    NOTE,
    POINT,
    PULL,
    SOFTIRQ,
    SWITCH,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    Frame,
    TraceEvent,
    build,
    shares,
)

IDLE, DETECTOR, WORKER, OTHER = 0, 10, 20, 30
OWN = frozenset({IDLE, DETECTOR})
PAIRED = (VECTOR, IRQ, SOFTIRQ, HRTIMER, TIMER, CALL)


def begin(time: int, kind: str, name: str = "", key: int = 0, pid: int = DETECTOR) -> TraceEvent:
    return TraceEvent(time, BEGIN, kind, name, pid, key)


def end(time: int, kind: str, key: int = 0, pid: int = DETECTOR) -> TraceEvent:
    return TraceEvent(time, END, kind, "", pid, key)


def switch(time: int, to: int, name: str = "") -> TraceEvent:
    return TraceEvent(time, SWITCH, THREAD, name, DETECTOR, other=to)


def built(*events: TraceEvent, first: int = 0, last: int = 1000) -> list[Frame]:
    return build(events, first, last, OWN)


def spans(frames: list[Frame]) -> list[object]:
    return [(each.kind, each.name, each.begin, each.end, *spans(each.inner)) for each in frames]


def test_an_interrupt_with_its_timer_and_its_softirq() -> None:
    frames = built(
        begin(10, VECTOR, "local_timer", 236),
        begin(12, HRTIMER, "tick_nohz_handler", 0xF00),
        end(20, HRTIMER, 0xF00),
        begin(21, SOFTIRQ, "RCU", 9),
        end(25, SOFTIRQ, 9),
        end(30, VECTOR, 236),
    )
    tick, rcu = (HRTIMER, "tick_nohz_handler", 12, 20), (SOFTIRQ, "RCU", 21, 25)
    assert spans(frames) == [(VECTOR, "local_timer", 10, 30, tick, rcu)]
    assert [each.net for each in (frames[0], *frames[0].inner)] == [8, 8, 4]


def test_two_of_one_kind_are_distinguished_by_their_keys() -> None:
    frames = built(begin(10, IRQ, "27 a", 27), begin(12, IRQ, "28 b", 28), end(14, IRQ, 28), end(20, IRQ, 27))
    assert spans(frames) == [(IRQ, "27 a", 10, 20, (IRQ, "28 b", 12, 14))]


def test_an_event_from_before_the_trace_begins_with_it_and_is_not_counted_again() -> None:
    frames = built(end(15, VECTOR, 236), begin(20, VECTOR, "reschedule", 253), end(30, VECTOR, 253), first=5)
    assert spans(frames) == [(VECTOR, "", 5, 15), (VECTOR, "reschedule", 20, 30)]
    assert [each.again for each in frames] == [True, False]


def test_an_event_open_at_the_end_of_the_trace_ends_with_it() -> None:
    assert spans(built(begin(900, IRQ, "27 a", 27), begin(950, SOFTIRQ, "HI", 0))) == [
        (IRQ, "27 a", 900, 1000, (SOFTIRQ, "HI", 950, 1000))
    ]


def test_a_later_end_without_a_beginning_is_ignored() -> None:
    assert spans(built(begin(10, IRQ, "27 a", 27), end(20, IRQ, 27), end(30, VECTOR, 1))) == [(IRQ, "27 a", 10, 20)]


def test_an_open_nested_frame_ends_with_the_enclosing_one() -> None:
    frames = built(begin(10, VECTOR, "call_function", 251), begin(12, CALL, "do_it", 1), end(20, VECTOR, 251))
    assert spans(frames) == [(VECTOR, "call_function", 10, 20, (CALL, "do_it", 12, 20))]


def test_another_task_is_a_frame_but_the_own_task_and_idle_are_not() -> None:
    frames = built(switch(10, OTHER, "bash"), switch(20, IDLE, "swapper/1"), switch(30, DETECTOR, "quiet"))
    assert spans(frames) == [(THREAD, "bash", 10, 20)]
    assert frames[0].pid == OTHER


def test_an_interrupt_of_another_task_lies_in_its_frame() -> None:
    frames = built(switch(10, OTHER, "bash"), begin(12, IRQ, "27 a", 27), end(14, IRQ, 27), switch(20, DETECTOR))
    assert spans(frames) == [(THREAD, "bash", 10, 20, (IRQ, "27 a", 12, 14))]


def test_a_work_interrupted_by_another_task_continues_with_its_worker() -> None:
    frames = built(
        switch(10, WORKER, "kworker/1:1"),
        begin(11, WORK, "vmstat_update", 0xA, WORKER),
        switch(15, OTHER, "bash"),
        switch(20, WORKER, "kworker/1:1"),
        end(27, WORK, 0xA, WORKER),
        switch(30, DETECTOR),
    )
    assert spans(frames) == [
        (THREAD, "kworker/1:1", 10, 15, (WORK, "vmstat_update", 11, 15)),
        (THREAD, "bash", 15, 20),
        (THREAD, "kworker/1:1", 20, 30, (WORK, "vmstat_update", 20, 27)),
    ]
    works = [part for frame in frames for part in shares(frame) if part.kind == WORK]
    assert [(part.count, part.net) for part in works] == [(1, 5), (0, 10)]


def test_a_work_that_has_ended_does_not_continue() -> None:
    frames = built(
        switch(10, WORKER, "kworker/1:1"),
        begin(11, WORK, "vmstat_update", 0xA, WORKER),
        end(12, WORK, 0xA, WORKER),
        switch(15, DETECTOR),
        switch(20, WORKER, "kworker/1:1"),
        switch(25, DETECTOR),
    )
    assert spans(frames)[1] == (THREAD, "kworker/1:1", 20, 25)


def test_an_instant_event_has_its_stated_length() -> None:
    frames = built(
        TraceEvent(50, POINT, NMI, "perf_event_nmi_handler", DETECTOR, key=20), TraceEvent(70, POINT, FAULT, "", 10)
    )
    assert spans(frames) == [(NMI, "perf_event_nmi_handler", 30, 50), (FAULT, "", 70, 70)]


def test_a_page_fault_counts_only_where_it_is_not_another_tasks() -> None:
    frames = built(
        TraceEvent(5, POINT, FAULT, "page fault", DETECTOR),
        switch(10, OTHER, "bash"),
        TraceEvent(12, POINT, FAULT, "page fault", OTHER),
        switch(20, DETECTOR),
        TraceEvent(25, POINT, FAULT, "page fault", DETECTOR),
    )
    assert spans(frames) == [
        (FAULT, "page fault", 5, 5),
        (THREAD, "bash", 10, 20),
        (FAULT, "page fault", 25, 25),
    ]


def test_a_pull_belongs_to_the_softirq_that_is_open_and_to_no_other_frame() -> None:
    pull = TraceEvent(150, PULL, SOFTIRQ, "", DETECTOR, 3)
    (softirq,) = built(begin(100, SOFTIRQ), pull, begin(200, TIMER), end(300, TIMER), end(400, SOFTIRQ))
    assert (softirq.pulled, [each.pulled for each in softirq.inner]) == (3, [3])
    (vector,) = built(begin(100, VECTOR), pull, begin(200, TIMER), end(300, TIMER), end(400, VECTOR))
    assert (vector.pulled, [each.pulled for each in vector.inner]) == (-1, [-1])
    assert built(pull) == []


def test_a_note_is_not_a_frame_and_ends_none() -> None:
    frames = built(
        TraceEvent(5, NOTE, "tick kept", "RCU needs it", DETECTOR),
        begin(10, IRQ, "27 a", 27),
        TraceEvent(12, NOTE, "tick kept", "RCU needs it", DETECTOR),
        end(20, IRQ, 27),
    )
    assert spans(frames) == [(IRQ, "27 a", 10, 20)]


def rows_of(frame: Frame) -> list[tuple[str, str, int, int]]:
    return [(part.kind, part.name, part.net, part.count) for part in shares(frame)]


def test_a_frame_that_carries_a_timer_is_named_after_it() -> None:
    (frame,) = built(
        begin(10, VECTOR, "local_timer"), begin(12, HRTIMER, "tick", 1), end(20, HRTIMER, 1), end(30, VECTOR)
    )
    assert rows_of(frame) == [(HRTIMER, "tick", 20, 1)]


def test_a_frame_that_carries_two_is_named_after_the_first() -> None:
    (frame,) = built(
        begin(10, VECTOR, "local_timer"),
        begin(12, HRTIMER, "first", 1),
        end(20, HRTIMER, 1),
        begin(21, HRTIMER, "second", 2),
        end(25, HRTIMER, 2),
        end(30, VECTOR),
    )
    assert rows_of(frame) == [(HRTIMER, "first", 16, 1), (HRTIMER, "second", 4, 1)]


def test_a_softirq_at_an_interrupts_end_keeps_its_own_time() -> None:
    (frame,) = built(
        begin(10, IRQ, "27 eth0", 27), begin(15, SOFTIRQ, "NET_RX", 3), end(25, SOFTIRQ, 3), end(30, IRQ, 27)
    )
    assert rows_of(frame) == [(IRQ, "27 eth0", 10, 1), (SOFTIRQ, "NET_RX", 10, 1)]


def test_a_call_that_is_identified_while_it_runs_is_named() -> None:
    (frame,) = built(
        begin(10, VECTOR, "call_function"),
        begin(12, CALL, "flush_tlb_func", 1),
        TraceEvent(15, POINT, CALL, "TLB shootdown", DETECTOR),
        end(20, CALL, 1),
        end(30, VECTOR),
    )
    assert sum(net for _, _, net, _ in rows_of(frame)) == 20
    assert {kind for kind, _, _, _ in rows_of(frame)} == {CALL}
    assert sum(count for _, _, _, count in rows_of(frame)) == 1


def test_a_function_that_a_task_calls_on_its_own_cpu_is_no_interruption() -> None:
    assert built(begin(10, CALL, "flush_tlb_func"), end(20, CALL)) == []
    (task,) = built(
        switch(10, OTHER, "bash"), begin(12, CALL, "flush_tlb_func", pid=OTHER), end(14, CALL), switch(20, 10)
    )
    assert (task.kind, task.inner) == (THREAD, [])


def test_idle_runs_functions_that_other_cpus_sent_without_an_interrupt() -> None:
    assert spans(built(begin(10, CALL, "sched_ttwu_pending", pid=IDLE), end(20, CALL, pid=IDLE))) == [
        (CALL, "sched_ttwu_pending", 10, 20)
    ]


@pytest.mark.parametrize("kind", [WORK, HRTIMER, TIMER, THREAD])
def test_a_frame_that_calls_a_function_on_its_own_cpu_keeps_its_own_time(kind: str) -> None:
    outer = Frame(kind, "its own", 10, 100, inner=[Frame(CALL, "remote_function", 20, 25)])
    assert rows_of(outer) == [(kind, "its own", 85, 1), (CALL, "remote_function", 5, 1)]


def test_a_worker_whose_work_calls_a_function_is_called_by_the_work() -> None:
    work = Frame(WORK, "vmstat_update", 20, 80, inner=[Frame(CALL, "remote_function", 30, 40)])
    assert rows_of(Frame(THREAD, "kworker/1:1", 10, 100, inner=[work])) == [
        (WORK, "vmstat_update", 80, 1),
        (CALL, "remote_function", 10, 1),
    ]


class Node(NamedTuple):
    """A frame to be: its kind, and what is in it, with a distance before each and one after the last."""

    kind: str
    inner: list[tuple[int, Node]]
    last: int


GAP = st.integers(0, 50)
NODES = st.recursive(
    st.builds(Node, st.sampled_from(PAIRED), st.just([]), GAP),
    lambda inner: st.builds(Node, st.sampled_from(PAIRED), st.lists(st.tuples(GAP, inner), max_size=3), GAP),
    max_leaves=12,
)


def told_by(node: Node, time: int, key: Iterator[int]) -> tuple[list[TraceEvent], Frame]:
    """The events of a frame that begins at a time, and the frame itself."""
    number = next(key)
    frame = Frame(node.kind, f"f{number}", time, pid=DETECTOR, key=number)
    events = [begin(time, node.kind, f"f{number}", number)]
    for distance, each in node.inner:
        inner_events, inner = told_by(each, time + distance, key)
        events += inner_events
        frame.inner.append(inner)
        time = inner.end
    frame.end = time + node.last
    return [*events, end(frame.end, node.kind, number)], frame


@pytest.mark.slow
@given(st.lists(st.tuples(GAP, NODES), max_size=4))
def test_nested_intervals_are_reconstructed(nodes: list[tuple[int, Node]]) -> None:
    time, events, wanted, key = 0, list[TraceEvent](), list[Frame](), iter(range(10_000))
    for distance, node in nodes:
        more, frame = told_by(node, time + distance, key)
        events += more
        wanted.append(frame)
        time = frame.end
    assert build(events, 0, time, OWN) == [part for frame in wanted for part in without_own_calls(frame)]


def without_own_calls(frame: Frame, sent: bool = False) -> list[Frame]:
    """The frame without functions that no interrupt came for; `sent`: it is part of an interrupt."""
    sent = sent or frame.kind in (VECTOR, IRQ)
    frame.inner = [part for each in frame.inner for part in without_own_calls(each, sent)]
    return frame.inner if frame.kind == CALL and not sent else [frame]


@pytest.mark.slow
@given(NODES)
def test_the_shares_of_a_frame_add_up_to_its_time(node: Node) -> None:
    _, frame = told_by(node, 0, iter(range(10_000)))
    assert sum(part.net for part in shares(frame)) == frame.length
    assert all(part.net >= 0 for part in shares(frame))


EVENTS = st.lists(
    st.builds(
        TraceEvent,
        st.integers(0, 5),
        st.sampled_from([BEGIN, END, SWITCH, NOTE]),
        st.sampled_from([*PAIRED, WORK]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([DETECTOR, WORKER, OTHER]),
        st.integers(0, 2),
        st.sampled_from([IDLE, DETECTOR, WORKER, OTHER]),
    ),
    max_size=30,
)


@given(EVENTS)
def test_frames_are_ordered_and_properly_nested_for_any_events(events: list[TraceEvent]) -> None:
    time, later = 0, []
    for each in events:
        time += each.time
        later.append(each._replace(time=time))

    def check(frames: list[Frame], first: int, last: int) -> None:
        for frame in frames:
            assert first <= frame.begin <= frame.end <= last
            check(frame.inner, frame.begin, frame.end)
            assert sum(part.net for part in shares(frame)) == frame.length
            first = frame.end

    check(build(later, 0, time, OWN), 0, time)
