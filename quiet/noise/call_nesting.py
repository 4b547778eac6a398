"""Turn the trace events of one CPU into frames: intervals in which code ran, nested like the calls.

Times are in ticks of the detector's clock. A frame's `net` time excludes the frames in it. Some frames only carry
others: a timer interrupt runs timer functions, a kworker runs work items, a call-function interrupt runs the requested
functions. Such a frame's net time is added to the first frame that it carries, under that frame's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

VECTOR, IRQ, SOFTIRQ, NMI = "vector", "irq", "softirq", "nmi"
PULLED = "pulled timer"  # kind of a cause: a TIMER that was queued on another CPU
COUNTED = "counted"  # an interrupt that the kernel counted and did not trace
HRTIMER, TIMER, WORK, CALL, THREAD, FAULT = "hrtimer", "timer", "work", "call", "thread", "fault"
# The net time of frames of these kinds belongs to their first inner frame of a listed kind. A function that a task
# calls on its own CPU is no CALL frame (CallStack._local).
CARRIED = {
    VECTOR: (HRTIMER, CALL),
    IRQ: (HRTIMER, CALL),
    SOFTIRQ: (HRTIMER, TIMER),
    THREAD: (WORK,),
    CALL: (CALL,),  # a function may contain an event that names its purpose (tlb_flush)
}
BEGIN, END, POINT, SWITCH = "begin", "end", "point", "switch"
NOTE = "note"  # additional information, not code that ran
PULL = "pull"  # the open softirq begins to run the timers of another CPU
OWN_TIMERS = -1
IDLE_TASK = 0  # its PID


class TraceEvent(NamedTuple):
    """One event: at `time`, `action` on a frame of `kind` with this `name`; `pid` is the current task.

    SWITCH: the CPU switches from `pid` to the task `other`, called `name`. `key` distinguishes frames of one kind; for
    POINT, it is the frame's length in ticks; for PULL, the number of the other CPU.
    """

    time: int
    action: str
    kind: str
    name: str
    pid: int
    key: int = 0
    other: int = 0


@dataclass(slots=True)
class Frame:
    """Code that ran on the CPU from `begin` to `end`, in ticks."""

    kind: str
    name: str
    begin: int
    end: int = 0
    pid: int = 0
    key: int = 0
    inner: list[Frame] = field(default_factory=list)
    again: bool = False  # a remainder: the frame began before the trace or interval, or before another task ran
    pulled: int = OWN_TIMERS  # for a timer, or a softirq that runs timers: the CPU on which the timers were queued

    @property
    def length(self) -> int:
        """The ticks from `begin` to `end`."""
        return self.end - self.begin

    @property
    def net(self) -> int:
        """The ticks from `begin` to `end`, without the inner frames."""
        return self.length - sum(each.length for each in self.inner)


class CallStack:
    """The open frames of one CPU, and the finished outermost frames (`done`), which the caller may remove.

    `own`: the tasks that do not count as interruptions: the detector or the observed tasks, and idle (0).
    """

    def __init__(self, begin: int, own: AbstractSet[int]) -> None:
        self.begin, self.own = begin, own
        self.open: list[Frame] = []
        self.done: list[Frame] = []
        self._works: dict[int, Frame] = {}  # per task, the work item that it has begun and not finished
        self._first = True  # no frame has ended yet

    def feed(self, event: TraceEvent) -> None:
        """Process the next event."""
        if event.action == BEGIN and event.kind == CALL and self._local(event):
            self._first = False
        elif event.action == BEGIN:
            frame = Frame(event.kind, event.name, event.time, pid=event.pid, key=event.key)
            if event.kind == TIMER and self.open and self.open[-1].kind == SOFTIRQ:
                frame.pulled = self.open[-1].pulled
            if event.kind == WORK:
                self._works[event.pid] = frame
            self.open.append(frame)
        elif event.action == END:
            if event.kind == WORK:
                self._works.pop(event.pid, None)
            self._end(event)
        elif event.action == PULL:
            if self.open and self.open[-1].kind == SOFTIRQ:
                self.open[-1].pulled = event.key
        elif event.action == SWITCH:
            self._switch(event)
        elif event.action == POINT and (
            event.kind != FAULT or event.pid in self.own
        ):  # a page fault of another task is part of that task's frame
            length = event.key  # the event comes at the frame's end and contains its length
            frame = Frame(event.kind, event.name, event.time - length, event.time, event.pid)
            self._add(frame)

    def _local(self, event: TraceEvent) -> bool:
        """Whether a task calls the function on its own CPU, as part of a call to many CPUs.

        The idle task runs functions that other CPUs requested, without an interrupt, so its calls are not local.
        """
        return event.pid != IDLE_TASK and not any(frame.kind in (VECTOR, IRQ) for frame in self.open)

    def close(self, end: int) -> list[Frame]:
        """Close the open frames at the time `end`. Returns the finished outermost frames."""
        while self.open:
            self._pop(end)
        return self.done

    def _add(self, frame: Frame) -> None:
        self._first = False
        (self.open[-1].inner if self.open else self.done).append(frame)

    def _pop(self, time: int) -> None:
        frame = self.open.pop()
        frame.end = time
        self._add(frame)

    def _end(self, event: TraceEvent) -> None:
        """Close the frame that ends, and its open inner frames.

        The first frame to end may have started before the trace; its `begin` is then the start of the trace.
        """
        for depth in range(len(self.open) - 1, -1, -1):
            frame = self.open[depth]
            if frame.kind == event.kind and frame.key == event.key:
                while len(self.open) > depth:
                    self._pop(event.time)
                return
            if frame.kind == THREAD:
                break  # another task's frames cannot end here
        if not self.open and self._first:
            self._add(Frame(event.kind, event.name, self.begin, event.time, event.pid, event.key, again=True))

    def _switch(self, event: TraceEvent) -> None:
        while self.open:
            self._pop(event.time)
        if event.other not in self.own:
            self.open.append(Frame(THREAD, event.name, event.time, pid=event.other))
            if work := self._works.get(event.other):
                self.open.append(Frame(WORK, work.name, event.time, pid=event.other, key=work.key, again=True))


def build(events: Iterable[TraceEvent], begin: int, end: int, own: frozenset[int]) -> list[Frame]:
    """Build the outermost frames of one CPU, in order, from its events in order.

    `own`: see CallStack. `begin` and `end`: the limits of the trace, in ticks.
    """
    stack = CallStack(begin, own)
    for event in events:
        stack.feed(event)
    return stack.close(end)


@dataclass(slots=True)
class Share:
    """The time of one frame under the name of its cause. `count`: 0 for a remainder (Frame.again), else 1."""

    kind: str
    name: str
    begin: int
    net: int
    count: int
    pid: int
    pulled: int = OWN_TIMERS  # see Frame


def shares(frame: Frame) -> list[Share]:
    """The shares of a frame and its inner frames as a flat list, the frame's own share first.

    A frame that carries others (CARRIED) has no share: its own time is added to the share of the first frame that it
    carries, which comes first.
    """
    first: Share | None = None
    out: list[Share] = []
    for each in frame.inner:
        parts = shares(each)
        if each.kind in CARRIED.get(frame.kind, ()) and first is None:
            first = parts[0]
        out += parts
    if first is not None:
        first.net += frame.net
        return [first, *(share for share in out if share is not first)]
    count = 0 if frame.again else 1
    return [Share(frame.kind, frame.name, frame.begin, frame.net, count, frame.pid, frame.pulled), *out]


def outer_and_inner(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yield the frames and their inner frames, except remainders (Frame.again)."""
    for frame in frames:
        if not frame.again:
            yield frame
        yield from outer_and_inner(frame.inner)
