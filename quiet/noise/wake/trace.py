"""Trace wake-ups, and keep only the events around the worst wake-ups of each CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.noise import clock, decode, events, names, tracefs
from quiet.noise.call_nesting import NOTE, TraceEvent
from quiet.noise.clock import Clock
from quiet.noise.events import EventType, Symbol, Values
from quiet.noise.wake.anatomy import IDLE_NOTE, NOT_IDLE, WAKING_NOTE, Namer, Waking
from quiet.noise.wake.events_around import BEFORE_NS
from quiet.noise.wake.sleeper import WakeUp

BUFFER_KB, SHARED_KB, LEAST_KB = 4_096, 8_192, 256
DRAIN_S = 0.5
RECENT_NS = 2_000_000_000  # keep pages that are younger: they may contain one of the worst wake-ups to come
AFTER_NS = 100_000
_EXIT = 0xFFFFFFFF  # PWR_EVENT_EXIT, include/trace/events/power.h


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _idle(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    state = _number(values[0])
    return TraceEvent(time, NOTE, IDLE_NOTE, "", pid, NOT_IDLE if state == _EXIT else state)


def _waking(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    return TraceEvent(time, NOTE, WAKING_NOTE, "", pid, other=_number(values[0]))


TRACED = (
    *events.ON_THE_CPU,
    EventType("power", "cpu_idle", ("state",), _idle),
    EventType("sched", "sched_waking", ("pid",), _waking),
)


def waking_of(pids: Sequence[int]) -> EventType:
    """The event type for wake-ups of these threads by any CPU, because a thread's timer may expire on another CPU."""
    return EventType("sched", "sched_waking", ("pid",), _waking, " || ".join(f"pid == {pid}" for pid in pids))


@dataclass(frozen=True, slots=True)
class WakeTrace:
    """The trace around the worst wake-ups: events by CPU, in order; all wakings; functions that name
    causes and tasks.
    """

    events: Mapping[int, list[TraceEvent]]
    wakings: list[Waking]
    namers: Mapping[int, Namer]
    comm: Callable[[int], str]
    limits: list[str]


class WakeTracer:
    """Traces wake-ups.

    `with WakeTracer(...) as trace: trace.on(); trace.drain(worst), periodically; trace.off(); trace.finish(worst)`.
    """

    def __init__(self, host: Host, pids: Mapping[int, int], online: CpuSet, period_ns: int) -> None:
        """`pids`: the thread of each CPU."""
        self._host, self._pids, self._online, self._period_ns = host, pids, online, period_ns
        self._made = contextlib.ExitStack()
        self._first = clock.moment()

    def __enter__(self) -> WakeTracer:
        """Create the trace instances. Raises NoTraceError if the kernel cannot trace or does not permit it."""
        try:
            self._open()
        except BaseException:
            self._made.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def _open(self) -> None:
        host, cpus = self._host, frozenset(self._pids)
        kinds = [*TRACED, *events.vectors(host.names(f"{tracefs.mount(host)}/events/irq_vectors"))]
        small = max(LEAST_KB, SHARED_KB // len(self._online))
        waking = [waking_of(sorted(self._pids.values()))]
        instances = [
            tracefs.Instance(host, cpus, kinds, BUFFER_KB, "wake-cpus"),
            tracefs.Instance(host, self._online, decode.SENDING, small, "wake-senders"),
            tracefs.Instance(host, self._online, waking, small, "wake-wakings"),
        ]
        self._mine, self._senders, self._wakings = (self._made.enter_context(each) for each in instances)
        self._all = (self._wakings, self._senders, self._mine)
        self._symbol = decode.Symbols(host, self._mine.mount)
        self.clock = self._mine.clock

    def on(self) -> None:
        """Start tracing."""
        for each in self._all:
            each.on()

    def drain(self, worst: Sequence[WakeUp]) -> None:
        """Empty the kernel's buffers, and keep the events around these wake-ups and recent events."""
        for each in self._all:
            each.drain()
        self._keep(worst, recent=True)

    def _keep(self, worst: Sequence[WakeUp], recent: bool) -> None:
        rate = Clock(self._first, clock.moment())
        windows = [window(each, rate, self._period_ns) for each in worst]
        young = rate.last.ticks - rate.ticks(RECENT_NS)
        convert = rate.converter(self.clock)

        def wanted(begin: int, end: int) -> bool:
            first, last = convert(begin), convert(end)
            return (recent and last >= young) or any(first <= until and last >= since for since, until in windows)

        for each in self._all:
            each.keep(wanted)

    def off(self) -> None:
        """Stop tracing."""
        for each in reversed(self._all):
            each.off()

    def finish(self, worst: Sequence[WakeUp]) -> WakeTrace:
        """The trace around these wake-ups; call off() first."""
        for each in self._all:
            each.drain()
        self._keep(worst, recent=False)
        rate = Clock(self._first, clock.moment())
        convert, cpus = rate.converter(self.clock), frozenset(self._pids)
        comm = decode.comms(self._host, self._mine.mount)
        traced = {cpu: decode.events(self._mine, cpu, self._symbol, convert, rate.ticks) for cpu in sorted(cpus)}
        for pid in {event.pid for each in traced.values() for event in each}:
            comm(pid)  # look up the name now: the task may have ended by the time of the report
        wakings = [
            Waking(convert(stamp), cpu, _number(values[0]))
            for cpu in sorted(self._online)
            for stamp, _kind, _pid, values in self._wakings.records(cpu)
        ]
        sent = decode.sent(self._senders, cpus, convert, decode.titles(comm), self._symbol)
        reach = rate.ticks(names.SENT_BEFORE_NS)
        limits = [
            f"CPU {cpu}: {lost:,} events did not fit into the trace: the causes of some wake-ups are missing"
            for cpu in sorted(cpus)
            if (lost := self._mine.lost(cpu))
        ]
        if any(decode.foreign(each, self._pids[cpu]) for cpu, each in traced.items()):
            limits.append(f"no causes: {decode.FOREIGN}")
        namers = {cpu: names.namer(names.Senders(sent, cpu, reach), comm) for cpu in cpus}
        return WakeTrace(traced, wakings, namers, comm, limits)


def window(each: WakeUp, rate: Clock, period_ns: int) -> tuple[int, int]:
    """The part of the trace to keep around a wake-up, as start and end in ticks; it begins before the CPU went idle."""
    before = max(1.25 * BEFORE_NS, 1.5 * period_ns)
    return each.ticks - rate.ticks(each.latency + before), each.ticks + rate.ticks(AFTER_NS)
