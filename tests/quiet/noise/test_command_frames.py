"""Interruptions of a command: events of its CPUs in, causes and their times out. A tick of the clock is a
nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quiet.noise import names
from quiet.noise.attribute import HOST, HYPERVISOR, Cause
from quiet.noise.call_nesting import BEGIN, END, HRTIMER, SOFTIRQ, SWITCH, THREAD, VECTOR, TraceEvent
from quiet.noise.command_frames import FORK, CommandFrames
from quiet.noise.interruptions import TRACE, Observation, Tally
from tests.quiet.noise.making import CLOCK

OURS, CHILD, OTHER = 100, 101, 200
PERIOD_NS = 4_000_000.0
LOST = Cause(HOST, HYPERVISOR)


def switch(time: int, pid: int, other: int, *, runnable: bool = False) -> TraceEvent:
    return TraceEvent(time, SWITCH, THREAD, f"task{other}", pid, int(runnable), other)


def softirq(time: int, length: int, pid: int) -> list[TraceEvent]:
    return [TraceEvent(time, BEGIN, SOFTIRQ, "RCU", pid), TraceEvent(time + length, END, SOFTIRQ, "RCU", pid)]


def tick(time: int, pid: int) -> list[TraceEvent]:
    inside = [TraceEvent(time + 1, BEGIN, HRTIMER, "tick_nohz_handler", pid)]
    inside += [TraceEvent(time + 9, END, HRTIMER, "", pid)]
    begin, end = (TraceEvent(t, action, VECTOR, "local_timer", pid) for t, action in ((time, BEGIN), (time + 10, END)))
    return [begin, *inside, end]


def seen(
    *batches: Mapping[int, Sequence[TraceEvent]],
    members: set[int] | None = None,
    tickless: frozenset[int] = frozenset(),
) -> Observation:
    observation = Observation(TRACE, migrations=0)
    frames = CommandFrames(observation, members or {OURS}, {0: 0, 1: 0}, tickless, LOST)
    namer = names.namer(names.Senders((), 0, 0), lambda pid: f"task{pid}")
    for number, batch in enumerate(batches):
        frames.feed(batch, {0: namer, 1: namer}, CLOCK, PERIOD_NS, last=number == len(batches) - 1)
    return observation


def rows(observation: Observation) -> dict[str, tuple[float, float | None]]:
    def row(tally: Tally) -> tuple[float, float | None]:
        return tally.count, tally.total_ns

    return {names.label(cause): row(tally) for cause, tally in observation.tallies.items()}


def test_an_interrupt_counts_while_the_command_runs_and_not_on_an_idle_cpu() -> None:
    events = [switch(10, 0, OURS), *softirq(20, 5, OURS), switch(40, OURS, 0), *softirq(50, 5, 0)]
    assert rows(seen({0: events})) == {"softirq RCU": (1, 5)}


def test_a_task_counts_where_it_displaced_the_command() -> None:
    events = [switch(10, 0, OURS), switch(20, OURS, OTHER, runnable=True), switch(50, OTHER, OURS)]
    assert rows(seen({0: events})) == {"task task200 (200)": (1, 30)}


def test_a_task_that_runs_while_the_command_sleeps_is_not_an_interruption() -> None:
    events = [switch(10, 0, OURS), switch(20, OURS, OTHER), *softirq(30, 5, OTHER), switch(50, OTHER, OURS)]
    assert rows(seen({0: events})) == {}


def test_a_displaced_task_that_continues_elsewhere_loses_no_more_time() -> None:
    first = [switch(10, 0, OURS), switch(20, OURS, OTHER, runnable=True), switch(90, OTHER, 0)]
    second = [switch(30, 0, OURS)]
    done = seen({0: first, 1: second})
    assert rows(done) == {"task task200 (200)": (1, 10)}
    assert done.migrations == 1
    assert done.cpus_used == {0, 1}


def test_time_that_an_interrupt_took_from_another_task_is_not_the_commands() -> None:
    events = [switch(10, 0, OURS), switch(20, OURS, OTHER, runnable=True), *softirq(30, 5, OTHER)]
    events += [switch(50, OTHER, OURS)]
    assert rows(seen({0: events})) == {"task task200 (200)": (1, 25), "softirq RCU": (1, 5)}


def test_the_commands_children_and_threads_are_its_own() -> None:
    first = [switch(10, 0, OURS), TraceEvent(15, FORK, THREAD, "", OURS, other=CHILD)]
    first += [switch(20, OURS, CHILD, runnable=True), *softirq(30, 5, CHILD)]
    later = [switch(50, CHILD, OURS, runnable=True)]
    assert rows(seen({0: first}, {0: later})) == {"softirq RCU": (1, 5)}


def test_several_batches_give_the_result_of_one() -> None:
    events = [switch(10, 0, OURS), *tick(15, OURS), switch(30, OURS, OTHER, runnable=True), *softirq(40, 5, OTHER)]
    events += [switch(60, OTHER, OURS), *tick(70, OURS)]
    whole = rows(seen({0: events}))
    for cut in range(1, len(events)):
        assert rows(seen({0: events[:cut]}, {0: events[cut:]})) == whole
    assert whole["local timer: tick_nohz_handler"] == (2, 20)


def test_a_late_tick_shows_that_the_machine_was_paused() -> None:
    events = [switch(10, 0, OURS), *tick(1_000, OURS), *tick(4_001_000, OURS), *tick(500_001_000, OURS)]
    assert rows(seen({0: events}))["host took the CPU"] == (1, 492_000_000)


def test_a_late_tick_shows_nothing_where_the_tick_may_stop() -> None:
    events = [switch(10, 0, OURS), *tick(1_000, OURS), *tick(500_001_000, OURS)]
    assert "host took the CPU" not in rows(seen({0: events}, tickless=frozenset({0})))


def test_a_late_tick_shows_nothing_where_the_cpu_was_idle_between() -> None:
    events = [switch(10, 0, OURS), *tick(1_000, OURS), switch(2_000, OURS, 0), switch(400_000_000, 0, OURS)]
    assert "host took the CPU" not in rows(seen({0: [*events, *tick(500_001_000, OURS)]}))
