"""Split a wake-up into four consecutive phases, and name the work that had the CPU in each phase.

    timer   from the requested time until the timer's interrupt begins
    wake    until the kernel wakes the thread
    switch  until the scheduler switches to the thread
    return  until the thread reads the clock in user space

The phases add up to the latency. Times are in ticks; the events are from one CPU (call_nesting.TraceEvent).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from quiet.noise.attribute import IDLE, IRQS_OFF, OTHER_CPU, SCHEDULER, USER_RETURN, Cause, not_accounted
from quiet.noise.call_nesting import (
    HRTIMER,
    IRQ,
    NOTE,
    SOFTIRQ,
    SWITCH,
    THREAD,
    VECTOR,
    WORK,
    Frame,
    Share,
    TraceEvent,
    build,
)
from quiet.noise.call_nesting import shares as shares_of
from quiet.noise.names import label

TIMER_PHASE, WAKE_PHASE, SWITCH_PHASE, RETURN_PHASE = PHASES = ("timer", "wake", "switch", "return")
IDLE_NOTE, WAKING_NOTE = "cpu_idle", "waking"  # kinds of TraceEvent with the action NOTE
IDLE_TASK = "the idle task"
UNKNOWN_DEPTH = Cause(IDLE, "of unknown depth")
OWN_TIMER = (HRTIMER, "hrtimer_wakeup")  # the function of a sleeping thread's timer
NOT_IDLE = -1  # key of IDLE_NOTE: the CPU leaves its idle state; else the number of the state that it enters


class Waking(NamedTuple):
    """A wake-up of a thread by the kernel: its time in ticks, the CPU that woke the thread, and the thread."""

    time: int
    cpu: int
    pid: int


class Part(NamedTuple):
    """The work that occupied the CPU during a phase, and its duration in ticks."""

    phase: str
    cause: Cause
    ticks: int


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A wake-up in parts, longest first. `phases`: the length of each phase in ticks, in the order of PHASES."""

    phases: tuple[int, int, int, int]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """The sleeping thread: its CPU and PID, and functions that name this CPU's idle states and tasks."""

    cpu: int
    pid: int
    idle_states: Callable[[int], str]
    comm: Callable[[int], str]


Namer = Callable[[Share], Cause]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in ticks.

    `slop`: the maximum difference between two clocks; `far`: a longer time without a traced event counts as spent
    outside this kernel; `virtual`: whether that time counts as the hypervisor's.
    """

    slop: int
    far: int
    virtual: bool


def dissect(
    events: Sequence[TraceEvent],
    wakings: Iterable[Waking],
    thread: Thread,
    due: int,
    at: int,
    name: Namer,
    limits: Limits,
) -> Anatomy | None:
    """Split the wake-up of a thread that was due at `due` and ran at `at`, both in ticks, into its parts.

    `events`: the events of the thread's CPU, in order; `wakings`: the wakeup events on all CPUs. Returns None if the
    trace does not contain the thread.
    """
    if not any(thread.pid in (event.pid, event.other) for event in events):
        return None
    whole = list(_with_switches(events, thread.comm))
    frames = build(whole, whole[0].time, max(at, whole[-1].time), frozenset({0, thread.pid}))
    since = due - limits.slop
    run = [e.time for e in whole if e.action == SWITCH and e.other == thread.pid and since <= e.time <= at]
    until = max(run, default=at)
    waking = max((each for each in wakings if each.pid == thread.pid and since <= each.time <= until), default=None)
    began = woken = due
    switched = max(run, default=due)
    away = ""
    if waking:
        woken, switched = waking.time, until
        away = str(waking.cpu) if waking.cpu != thread.cpu else ""
        began = woken if away else _interrupt(frames, woken)
    marks = [due]
    for mark in (began, woken, switched, at):
        marks.append(min(max(mark, marks[-1]), at))
    spent = _Spent(frames, _idles(whole, at, thread), _idled(whole, due), name, limits)
    total: dict[tuple[str, Cause], int] = {}
    for phase, (begin, end) in zip(PHASES, pairwise(marks), strict=True):
        there = [(Cause(OTHER_CPU, away), end - begin)] if away and phase == TIMER_PHASE else None
        for cause, took in there or spent.causes(phase, begin, end):
            if took > 0:
                total[phase, cause] = total.get((phase, cause), 0) + took
    parts = [Part(phase, cause, took) for (phase, cause), took in total.items()]
    lengths = [end - begin for begin, end in pairwise(marks)]
    return Anatomy((lengths[0], lengths[1], lengths[2], lengths[3]), tuple(sorted(parts, key=lambda part: -part.ticks)))


def _with_switches(events: Sequence[TraceEvent], comm: Callable[[int], str]) -> Iterator[TraceEvent]:
    """Yield the events, and add missing context switches: each event names the task in which it occurred.

    A switch is missing before the first event, and on kernels that do not trace the idle task.
    """
    running = -1
    for event in events:
        if event.pid != running:
            yield TraceEvent(event.time, SWITCH, THREAD, comm(event.pid), max(running, 0), other=event.pid)
        yield event
        running = event.other if event.action == SWITCH else event.pid


def _idled(events: Sequence[TraceEvent], time: int) -> bool:
    """Whether the idle task had the CPU at `time`."""
    running = next((event.pid for event in events if event.time >= time), None)
    return running == 0


def _interrupt(frames: Sequence[Frame], time: int) -> int:
    """The beginning of the innermost interrupt at `time`, or of the innermost softirq; `time` if there is neither."""
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
    """The idle states of the CPU until `at`."""
    found: list[_Idle] = []
    notes = [event for event in events if event.action == NOTE and event.kind == IDLE_NOTE]
    if notes and notes[0].key == NOT_IDLE:
        found.append(_Idle(events[0].time, notes[0].time, UNKNOWN_DEPTH))
    ends = [*(note.time for note in notes[1:]), max(at, events[-1].time)]
    for note, end in zip(notes, ends, strict=False):
        if note.key != NOT_IDLE:
            found.append(_Idle(note.time, end, Cause(IDLE, thread.idle_states(note.key))))
    return found


@dataclass(frozen=True, slots=True)
class _Spent:
    """Attributes the CPU's time to traced frames, then to idle states, then to the phase itself."""

    frames: Sequence[Frame]
    idles: Sequence[_Idle]
    idled: bool  # whether the idle task had the CPU when the timer was due
    name: Namer
    limits: Limits

    def causes(self, phase: str, begin: int, end: int) -> Iterator[tuple[Cause, int]]:
        """Yield the causes of a phase with their times in ticks, which add up to its duration."""
        at = begin
        for frame in self.frames:
            if cut := clipped(frame, begin, end):
                yield from self._free(phase, at, cut.begin)
                for share in shares_of(cut):
                    cause = self.name(share)
                    if phase == TIMER_PHASE and share.kind in (THREAD, WORK):
                        # The timer was due, but its interrupt was late while a task ran, so this task had disabled
                        # interrupts.
                        cause = Cause(IRQS_OFF, label(cause))
                    elif phase in (WAKE_PHASE, SWITCH_PHASE) and (share.kind, share.name) == OWN_TIMER:
                        cause = Cause(SCHEDULER, "")
                    yield cause, share.net
                at = cut.end
        yield from self._free(phase, at, end)

    def _free(self, phase: str, begin: int, end: int) -> Iterator[tuple[Cause, int]]:
        rest = end - begin
        for idle in self.idles:
            asleep = min(idle.end, end) - max(idle.begin, begin)
            if asleep > 0:
                yield idle.cause, asleep
                rest -= asleep
        if phase == TIMER_PHASE and self.idled:
            yield Cause(IRQS_OFF, IDLE_TASK) if self.idles else UNKNOWN_DEPTH, rest
        elif phase == TIMER_PHASE:
            yield Cause(IRQS_OFF, label(Cause(THREAD, "quiet-wake"))), rest
        elif rest > self.limits.far:
            yield not_accounted(self.limits.virtual), rest
        else:
            yield Cause(USER_RETURN if phase == RETURN_PHASE else SCHEDULER, ""), rest


def clipped(frame: Frame, begin: int, end: int) -> Frame | None:
    """The part of a frame and its inner frames from `begin` to `end`; None if there is none."""
    if frame.begin >= end or frame.end <= begin:
        return None
    inner = [cut for each in frame.inner if (cut := clipped(each, begin, end))]
    start, stop = max(frame.begin, begin), min(frame.end, end)
    return replace(frame, begin=start, end=stop, inner=inner, again=frame.again or frame.begin < begin)
