"""One wake-up taken apart: four phases that follow each other, and what had the CPU in each.

    timer   from the time that was asked for until the timer's interrupt begins
    wake    from there until the kernel wakes the thread
    switch  from there until the scheduler switches to the thread
    return  from there until the thread reads the clock in user space

The phases add up to the latency. Times are ticks, events are those of one CPU (call_nesting.TraceEvent).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from quiet.noise.attribute import IDLE, IRQS_OFF, OTHER_CPU, SCHEDULER, USER_RETURN, Cause
from quiet.noise.call_nesting import IRQ, NOTE, SOFTIRQ, SWITCH, THREAD, VECTOR, WORK, Frame, Share, TraceEvent, build
from quiet.noise.call_nesting import shares as shares_of
from quiet.noise.names import label

TIMER_PHASE, WAKE_PHASE, SWITCH_PHASE, RETURN_PHASE = PHASES = ("timer", "wake", "switch", "return")
IDLE_NOTE, WAKING_NOTE = "cpu_idle", "waking"  # kinds of TraceEvent with the action NOTE
NOT_IDLE = -1  # key of IDLE_NOTE: the CPU leaves its idle state; else the number of the state that it enters


class Waking(NamedTuple):
    """The kernel woke a thread: when, on which CPU it did so, and the thread."""

    time: int
    cpu: int
    pid: int


class Part(NamedTuple):
    """What had the CPU in a phase, and for how long."""

    phase: str
    cause: Cause
    ticks: int


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A wake-up in parts, the longest first. `phases` has the length of each phase, in the order of PHASES."""

    phases: tuple[int, int, int, int]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread that sleeps: its CPU and number, and how the kernel names that CPU's idle states, and tasks."""

    cpu: int
    pid: int
    idle_states: Callable[[int], str]
    comm: Callable[[int], str]


Namer = Callable[[Share], Cause]


def dissect(
    events: Sequence[TraceEvent], wakings: Iterable[Waking], thread: Thread, due: int, at: int, name: Namer, slop: int
) -> Anatomy | None:
    """Take the wake-up apart that was due at `due` and ran at `at`. None where the trace does not have the thread.

    `events`: of the thread's CPU in order; `wakings`: of any CPU; `slop`: by how much the two clocks may differ.
    """
    if not any(thread.pid in (event.pid, event.other) for event in events):
        return None
    frames = _frames(events, thread, at)
    run = [e.time for e in events if e.action == SWITCH and e.other == thread.pid and due - slop <= e.time <= at]
    switched = max(run, default=due)
    until = switched if run else at
    seen = [each for each in wakings if each.pid == thread.pid and due - slop <= each.time <= until]
    waking = max(seen, default=None)
    away = ""
    if waking is None:
        began = woken = due
    elif waking.cpu != thread.cpu:
        began, woken, away = waking.time, waking.time, str(waking.cpu)
    else:
        woken = waking.time
        began = _interrupt(frames, woken)
    marks = [due]
    for mark in (began, woken, switched, at):
        marks.append(min(max(mark, marks[-1]), at))
    whole: dict[tuple[str, Cause], int] = {}
    idles = _idles(events, at, thread)
    for phase, (begin, end) in zip(PHASES, pairwise(marks), strict=True):
        there = [(Cause(OTHER_CPU, away), end - begin)] if away and phase == TIMER_PHASE else None
        for cause, took in there or _spent(phase, begin, end, frames, idles, name, thread):
            if took > 0:
                whole[phase, cause] = whole.get((phase, cause), 0) + took
    parts = [Part(phase, cause, took) for (phase, cause), took in whole.items()]
    lengths = [end - begin for begin, end in pairwise(marks)]
    return Anatomy((lengths[0], lengths[1], lengths[2], lengths[3]), tuple(sorted(parts, key=lambda part: -part.ticks)))


def _frames(events: Sequence[TraceEvent], thread: Thread, at: int) -> list[Frame]:
    """The frames of the CPU. Each event has the task that it happened in: the first one shows who ran before it."""
    first = events[0]
    there = TraceEvent(first.time, SWITCH, THREAD, thread.comm(first.pid), first.pid, other=first.pid)
    ends = max(at, events[-1].time)
    return build([there, *events], first.time, ends, frozenset({0, thread.pid}))


def _interrupt(frames: Sequence[Frame], time: int) -> int:
    """The begin of the innermost interrupt (or softirq, where none is there) around a time; the time itself if none."""
    begins: dict[bool, int] = {}
    level: Sequence[Frame] = frames
    while frame := next((each for each in level if each.begin <= time <= each.end), None):
        if frame.kind in (VECTOR, IRQ, SOFTIRQ):
            begins[frame.kind == SOFTIRQ] = frame.begin
        level = frame.inner
    return begins.get(False, begins.get(True, time))


class _Idle(NamedTuple):
    begin: int
    end: int
    cause: Cause


def _idles(events: Sequence[TraceEvent], at: int, thread: Thread) -> list[_Idle]:
    """When the CPU was in which idle state."""
    found: list[_Idle] = []
    notes = [event for event in events if event.action == NOTE and event.kind == IDLE_NOTE]
    if notes and notes[0].key == NOT_IDLE:
        found.append(_Idle(events[0].time, notes[0].time, Cause(IDLE, "of an unknown depth")))
    for note, following in zip(notes, [*notes[1:], None], strict=True):
        if note.key != NOT_IDLE:
            end = following.time if following else max(at, note.time)
            found.append(_Idle(note.time, end, Cause(IDLE, thread.idle_states(note.key))))
    return found


def _spent(
    phase: str,
    begin: int,
    end: int,
    frames: Sequence[Frame],
    idles: Sequence[_Idle],
    name: Namer,
    thread: Thread,
) -> Iterator[tuple[Cause, int]]:
    """What had the CPU from `begin` to `end`: traced frames, then idle states, then what the phase itself is."""
    at = begin
    for frame in frames:
        if cut := clipped(frame, begin, end):
            yield from _free(phase, at, cut.begin, idles)
            for share in shares_of(cut):
                cause = name(share)
                # The timer was due, its interrupt did not come, and a task went on: it had them off.
                waits = phase == TIMER_PHASE and share.kind in (THREAD, WORK)
                yield Cause(IRQS_OFF, label(cause)) if waits else cause, share.net
            at = cut.end
    yield from _free(phase, at, end, idles)


def _free(phase: str, begin: int, end: int, idles: Sequence[_Idle]) -> Iterator[tuple[Cause, int]]:
    """The same for a time in which no frame is: the CPU was idle, or in the kernel on the thread's own behalf."""
    rest = end - begin
    for idle in idles:
        asleep = min(idle.end, end) - max(idle.begin, begin)
        if asleep > 0:
            yield idle.cause, asleep
            rest -= asleep
    own = {TIMER_PHASE: Cause(IRQS_OFF, "the idle task or the thread itself"), RETURN_PHASE: Cause(USER_RETURN, "")}
    yield own.get(phase, Cause(SCHEDULER, "")), rest


def clipped(frame: Frame, begin: int, end: int) -> Frame | None:
    """The part of a frame, and of those in it, from `begin` to `end`; None where there is none."""
    if frame.begin >= end or frame.end <= begin:
        return None
    inner = [cut for each in frame.inner if (cut := clipped(each, begin, end))]
    start, stop = max(frame.begin, begin), min(frame.end, end)
    return Frame(frame.kind, frame.name, start, stop, frame.pid, frame.key, inner, frame.again)
