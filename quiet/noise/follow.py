"""Report the code that ran on a CPU in given intervals while another process measures, from the kernel's trace.

    with Follower(Host(), cpus) as follower:      # not on one of these CPUs
        follower.begin(2)
        ...                                       # the task 123 measures something on CPU 2
        seen = follower.take(2, 123, [(begin, end), ...])

All times are ticks of the detector's clock (clock.py). Without tracing, `why` gives the reason and no error is raised.
"""

from __future__ import annotations

import contextlib
import signal
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.noise import clock, decode, names, tracefs
from quiet.noise.attribute import Cause, Namer
from quiet.noise.call_nesting import FAULT, IRQ, NMI, VECTOR, Frame, TraceEvent, build, outer_and_inner, shares
from quiet.noise.clock import Clock
from quiet.noise.counters import line_of
from quiet.noise.measure import open_traces

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CauseShare:
    """One cause in one interval: its name, and its time in the interval in ticks, without nested causes."""

    cause: Cause
    label: str
    ticks: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The code that ran in one interval, from the trace.

    `parts`: the causes, longest first. `within`: the number of interrupts that began in the interval, by their label in
    /proc/interrupts; `around`: the number that began between the end of the previous interval and the beginning of the
    next one.
    """

    parts: tuple[CauseShare, ...] = ()
    within: Mapping[str, int] = field(default_factory=dict)
    around: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of take(): the trace of each interval, None if unknown. `lost`: the number of lost events."""

    seen: list[Seen | None]
    lost: int = 0


class Follower:
    """A context manager that traces CPUs and removes its traces at the end, even after a signal or an error."""

    def __init__(self, host: Host, cpus: CpuSet) -> None:
        """`cpus`: the CPUs for which begin() and take() will be called."""
        self._host, self._cpus = host, cpus
        self._made = contextlib.ExitStack()
        self._traces: tuple[tracefs.Instance, tracefs.Instance] | None = None
        self._first = clock.moment()
        self._rate: Clock | None = None
        self.why = "kernel tracing has not begun"
        self.clock = ""

    def __enter__(self) -> Follower:
        try:
            with _undisturbed():
                self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove the traces; signals are delayed until this is done."""
        with _undisturbed():
            self._traces = None
            self._made.close()

    @property
    def available(self) -> bool:
        """Whether tracing is available; if not, `why` gives the reason."""
        return self._traces is not None

    def _start(self) -> None:
        tracefs.remove_left_over(self._host)
        try:
            tracefs.check(self._host)
            online = Facts(self._host).online
            mine, theirs = open_traces(self._host, self._cpus, online, self._made, of="trial-")
        except tracefs.NoTraceError as error:
            self._give_up(str(error))
            return
        self._traces, self.clock, self.why = (mine, theirs), mine.clock, ""
        self._symbol = decode.Symbols(self._host, mine.mount)
        self._symbol(1)  # read the kernel's list of symbols now, not between two trials

    def _give_up(self, why: str) -> None:
        self.close()
        self.why = why

    def begin(self, cpu: int) -> None:
        """Start tracing; discard earlier events of this CPU."""
        with self._losing_the_trace():
            if self._traces:
                mine, theirs = self._traces
                self._off()
                mine.forget(frozenset({cpu}))
                theirs.forget()
            self._on()

    def pause(self) -> None:
        """Stop tracing."""
        with self._losing_the_trace():
            self._off()

    def ns(self, ticks: int) -> float:
        """Convert ticks to nanoseconds, at the clock's rate up to the last take().

        Before any take(), it is the rate up to the first call of ns().
        """
        if self._rate is None:
            self._rate = Clock(self._first, clock.moment())
        return self._rate.ns(ticks)

    def resume(self) -> None:
        """Resume tracing after take() or pause()."""
        with self._losing_the_trace():
            self._on()

    def take(self, cpu: int, own: int, intervals: Sequence[Interval]) -> Taken:
        """Stop tracing, and return the causes on a CPU in each of the intervals, which are in order and do not overlap.

        `own`: the PID of the measured task. Afterwards, tracing is off and the buffer is empty; resume() turns it on.
        """
        taken = Taken([None] * len(intervals))
        with self._losing_the_trace():
            if self._traces:
                self._off()
                taken = self._read(*self._traces, cpu, own, intervals)
        return taken

    def _on(self) -> None:
        for trace in self._traces or ():
            trace.on()

    def _off(self) -> None:
        for trace in self._traces or ():
            trace.off()

    @contextlib.contextmanager
    def _losing_the_trace(self) -> Iterator[None]:
        """End the tracing, but not the measurement, if another program removes the trace."""
        try:
            yield
        except OSError as error:
            self._give_up(f"the trace could no longer be read: {error.strerror}")

    def _read(
        self, mine: tracefs.Instance, theirs: tracefs.Instance, cpu: int, own: int, intervals: Sequence[Interval]
    ) -> Taken:
        self._rate = rate = Clock(self._first, clock.moment())
        convert = rate.converter(mine.clock)
        events = decode.events(mine, cpu, self._symbol, convert, rate.ticks)
        comm = decode.comms(self._host, mine.mount)
        sent = decode.sent(theirs, self._cpus, convert, decode.titles(comm), self._symbol)
        lost = mine.lost(cpu)
        mine.forget(frozenset({cpu}))
        if decode.foreign(events, own):
            self._give_up(decode.FOREIGN)
            return Taken([None] * len(intervals))
        name = names.namer(names.Senders(sent, cpu, rate.ticks(names.SENT_BEFORE_NS)), comm)
        return Taken(look(events, own, intervals, name, whole=not lost), lost)


def look(
    events: Sequence[TraceEvent], own: int, intervals: Sequence[Interval], namer: Namer, whole: bool = True
) -> list[Seen | None]:
    """The code that ran in each interval, from the events of one CPU in order.

    If not `whole` (events were lost), an interval that ends after the last event is unknown (None).
    """
    begin, end = (events[0].time, events[-1].time) if events else (0, 0)
    last = intervals[-1][1] if intervals else 0
    frames = sorted(build(events, begin, max(end, last), frozenset({0, own})), key=lambda frame: frame.begin)
    begins = [frame.begin for frame in frames]
    every = [frame for frame in outer_and_inner(frames) if frame.kind in (VECTOR, IRQ, NMI)]
    interrupts = sorted((frame.begin, _label(frame)) for frame in every)
    out: list[Seen | None] = []
    for number, (start, stop) in enumerate(intervals):
        if not whole and stop > end:
            out.append(None)
            continue
        before = intervals[number - 1][1] if number else min(begin, start)
        after = intervals[number + 1][0] if number + 1 < len(intervals) else max(end, stop)
        # Of the frames that begin earlier, only the last one can extend into the interval.
        first = max(bisect_left(begins, start) - 1, 0)
        inside = [
            frame for frame in frames[first : bisect_right(begins, stop)] if frame.end > start or frame.begin >= start
        ]
        around = _counts(interrupts, before, after)
        out.append(
            Seen(_parts(inside, start, stop, namer), _counts(interrupts, start, stop), around)
            if inside or around
            else Seen()
        )
    return out


def _parts(frames: Sequence[Frame], start: int, stop: int, namer: Namer) -> tuple[CauseShare, ...]:
    took: dict[Cause, int] = {}
    for frame in frames:
        for share in shares(_clipped(frame, start, stop)):
            cause = namer(share)
            took[cause] = took.get(cause, 0) + share.net
    ordered = sorted(took.items(), key=lambda item: -item[1])
    return tuple(CauseShare(cause, label(cause), ticks) for cause, ticks in ordered)


def label(cause: Cause) -> str:
    """The text to display for a cause if the interrupted process is not the detector."""
    return "page fault" if cause.kind == FAULT else names.label(cause)


def _clipped(frame: Frame, start: int, stop: int) -> Frame:
    """The part of the frame within an interval, with its inner frames."""
    if start <= frame.begin and frame.end <= stop:
        return frame
    inner = [_clipped(each, start, stop) for each in frame.inner if each.begin <= stop and each.end >= start]
    begin, end = max(frame.begin, start), min(frame.end, stop)
    again = frame.again or frame.begin < start
    return Frame(frame.kind, frame.name, begin, end, frame.pid, frame.key, inner, again, frame.pulled)


def _label(frame: Frame) -> str:
    return "NMI" if frame.kind == NMI else line_of(frame)


def _counts(interrupts: Sequence[tuple[int, str]], start: int, stop: int) -> dict[str, int]:
    within = interrupts[bisect_left(interrupts, (start, "")) : bisect_right(interrupts, (stop, "\uffff"))]
    return dict(Counter(text for _, text in within))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Until the block ends, delay signals that would end the command."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
