"""Turn the kernel's events on several CPUs into the interruptions of a command's tasks.

An interruption is an interrupt, softirq or NMI that occurred while a task of the command ran, or another task that
preempted a task of the command, until the preempted task continued. An event on an idle CPU interrupts no task.

If the tick does not stop, it also reveals pauses of the whole machine: on a CPU that one task of the command has
occupied since the previous tick, the next tick is late by the time that the hypervisor or the firmware used the CPU.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from quiet.noise.attribute import Cause, Namer
from quiet.noise.call_nesting import BEGIN, HRTIMER, SWITCH, THREAD, CallStack, Frame, TraceEvent, shares
from quiet.noise.clock import Clock
from quiet.noise.interruptions import Observation

FORK = "fork"  # an event in which `pid` starts the task `other`
TICKS = ("tick_nohz_handler", "tick_sched_timer", "tick_nohz_highres_handler")


class _OneCpu:
    """Processes the events of one CPU in order."""

    def __init__(self, members: set[int], own: set[int], begin: int, ticks: bool) -> None:
        self._members, self._ticks = members, ticks
        self.stack = CallStack(begin, own)
        self.latest = begin
        self._displaced = 0  # the task of the command that the current task preempted
        self._tick = 0  # the time of the last tick, if the same task of the command has had the CPU since
        self.arrived: list[tuple[int, int]] = []  # (time, task) of each task of the command that got the CPU
        self.late: list[int] = []  # the times between two such ticks
        self.seen = self.switched = False

    def feed(self, event: TraceEvent) -> None:
        if event.action == FORK:
            return
        self.latest = event.time
        self.stack.feed(event)
        if event.action == SWITCH:
            self._switch(event)
        elif self._ticks and event.action == BEGIN and event.kind == HRTIMER and event.name in TICKS:
            ours = event.pid in self._members
            if ours and self._tick:
                self.late.append(event.time - self._tick)
            self._tick = event.time if ours else 0

    def _switch(self, event: TraceEvent) -> None:
        self._tick, self.switched = 0, True
        if event.pid in self._members:
            self.seen = True
            self._displaced = event.pid if event.key else 0
        elif event.pid == 0:
            self._displaced = 0
        if event.other in self._members:
            self.seen = True
            self.arrived.append((event.time, event.other))
        elif event.other and self._displaced:
            self.stack.open[0].key = self._displaced


class CommandFrames:
    """Process events batch by batch, and add the interruptions to `seen`."""

    def __init__(
        self, seen: Observation, members: set[int], begins: Mapping[int, int], tickless: frozenset[int], outside: Cause
    ) -> None:
        """`members`: the command's tasks, a growing set; `begins`: the start of each CPU's trace, in ticks.

        `tickless`: the nohz_full CPUs, whose tick may stop; `outside`: the cause of pauses of the whole machine.
        """
        self._seen, self._members, self._outside = seen, members, outside
        self._own = {0}  # the command's tasks are added
        self._last_cpu: dict[int, int] = {}
        self._cpus = {cpu: _OneCpu(members, self._own, begin, cpu not in tickless) for cpu, begin in begins.items()}

    @property
    def foreign(self) -> bool:
        """Whether tasks were switched, but none of the command: then the trace has the PIDs of another namespace."""
        each = self._cpus.values()
        return any(on.switched for on in each) and not any(on.seen for on in each)

    def feed(
        self,
        arriving: Mapping[int, Sequence[TraceEvent]],
        namers: Mapping[int, Namer],
        rate: Clock,
        period_ns: float,
        last: bool = False,
    ) -> None:
        """Process the next batch: the events of each CPU in order, and a namer per CPU.

        `rate` converts ticks to nanoseconds; `period_ns`: the tick's period; `last`: no batch follows.
        """
        for fork in sorted(event for each in arriving.values() for event in each if event.action == FORK):
            if fork.pid in self._members:
                self._members.add(fork.other)
        self._own |= self._members
        for cpu, each in arriving.items():
            for event in each:
                self._cpus[cpu].feed(event)
        arrivals = self._arrivals()
        for cpu, on in self._cpus.items():
            for frame in on.stack.close(on.latest) if last else on.stack.done:
                if interrupting := self._interrupting(frame, arrivals):
                    self._enter(interrupting, cpu, namers[cpu], rate)
            on.stack.done.clear()
            for length in on.late:
                if (late := rate.ns(length) - period_ns) > period_ns:
                    self._seen.add(self._outside, cpu, 1, late)
                    self._seen.max_ns = max(self._seen.max_ns or 0, late)
            on.late.clear()

    def _arrivals(self) -> dict[int, list[int]]:
        """The times, in ticks, at which each task of the command got a CPU in this batch; also counts migrations."""
        every = sorted((time, tid, cpu) for cpu, on in self._cpus.items() for time, tid in on.arrived)
        times: dict[int, list[int]] = defaultdict(list)
        for moment, tid, cpu in every:
            times[tid].append(moment)
            if self._last_cpu.get(tid, cpu) != cpu:
                self._seen.migrations = (self._seen.migrations or 0) + 1
            self._last_cpu[tid] = cpu
            self._seen.cpus_used.add(cpu)
        for on in self._cpus.values():
            on.arrived.clear()
        return times

    def _interrupting(self, frame: Frame, arrivals: Mapping[int, Sequence[int]]) -> Frame | None:
        """The part of a frame that kept a task of the command from running; None if it kept none."""
        if frame.kind != THREAD:
            return frame if frame.pid in self._members else None
        again = arrivals.get(frame.key, ())
        at = bisect_right(again, frame.begin)
        if not frame.key or at == len(again) or again[at] >= frame.end:
            return frame if frame.key else None
        return Frame(THREAD, frame.name, frame.begin, again[at], frame.pid)  # the task continued on another CPU

    def _enter(self, frame: Frame, cpu: int, namer: Namer, rate: Clock) -> None:
        took: dict[Cause, tuple[int, int]] = {}
        for share in shares(frame):
            cause = namer(share)
            count, net = took.get(cause, (0, 0))
            took[cause] = (count + share.count, net + share.net)
        for cause, (count, net) in took.items():
            self._seen.add(cause, cpu, count, rate.ns(net))
        self._seen.max_ns = max(self._seen.max_ns or 0, rate.ns(frame.length))
