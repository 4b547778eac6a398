"""Observe the interruptions of a command by tracing its CPUs: few events, read incrementally, without a detector."""

from __future__ import annotations

import contextlib
import time

from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.noise import clock, decode, events, names, tracefs
from quiet.noise.attribute import not_accounted
from quiet.noise.call_nesting import SWITCH, THREAD, TraceEvent
from quiet.noise.clock import Clock
from quiet.noise.command_frames import FORK, CommandFrames
from quiet.noise.command_tasks import CommandTasks
from quiet.noise.events import EventType, Symbol, Values
from quiet.noise.interruptions import TRACE, Observation

_PREEMPTED = 0x100  # TASK_REPORT_MAX in prev_state: still runnable (include/trace/events/sched.h)
# sched_switch is replaced by a type with one more field; the command's own page faults are frequent and do not count;
# tick_stop reports no code that ran
_LEFT_OUT = {"sched_switch", "page_fault_user", "tick_stop"}
BUFFERS_KB = 65_536  # for all CPUs together
MOST_KB, LEAST_KB = 8_192, 512  # for one CPU
BACKLOG = 8 << 20  # maximum number of unprocessed bytes; more are processed while the command still runs
_RATE_S = 0.02


def _switch(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    """Convert a context switch. `key` is 1 if the previous task was still runnable."""
    other, name, state = values
    runnable = isinstance(state, int) and (state == 0 or bool(state & _PREEMPTED))
    number = other if isinstance(other, int) else 0
    return TraceEvent(time, SWITCH, THREAD, name if isinstance(name, str) else "", pid, int(runnable), number)


def _fork(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    return TraceEvent(time, FORK, THREAD, "", pid, other=values[0] if isinstance(values[0], int) else 0)


OBSERVED = (
    EventType("sched", "sched_switch", ("next_pid", "next_comm", "prev_state"), _switch),
    EventType("sched", "sched_process_fork", ("child_pid",), _fork),
    *(kind for kind in events.ON_THE_CPU if kind.name not in _LEFT_OUT),
)


class TraceObserver:
    """Observes a command by tracing: call start(), tick() at intervals, and finish(), which removes the traces."""

    def __init__(self, host: Host, cpus: CpuSet, tasks: CommandTasks, virtual: bool) -> None:
        self._host, self._cpus, self._tasks = host, cpus, tasks
        self._outside = not_accounted(virtual)
        self._made = contextlib.ExitStack()
        self._seen = Observation(TRACE, migrations=0)
        self._early_sent: list[names.Sent] = []
        self.foreign = False  # known after finish()

    def start(self) -> None:
        """Start tracing. Raises NoTraceError if the kernel cannot trace or does not permit it."""
        tracefs.remove_left_over(self._host)
        tracefs.check(self._host)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        facts = Facts(self._host)
        vectors = events.vectors(self._host.names(f"{tracefs.mount(self._host)}/events/irq_vectors"))
        size = max(LEAST_KB, min(MOST_KB, BUFFERS_KB // len(self._cpus)))
        small = max(64, MOST_KB // len(facts.online))
        instance = tracefs.Instance(self._host, self._cpus, [*OBSERVED, *vectors], size, "run-cpus")
        self._mine = self._made.enter_context(instance)
        instance = tracefs.Instance(self._host, facts.online, decode.SENDING, small, "run-senders")
        self._theirs = self._made.enter_context(instance)
        self._symbol = decode.Symbols(self._host, self._mine.mount)
        self._symbol(1)  # read the kernel's list now, not while the command runs
        self._comm = decode.comms(self._host, self._mine.mount)
        self._first = clock.moment()
        time.sleep(_RATE_S)  # so that the clock's rate is known from the start
        begins = dict.fromkeys(sorted(self._cpus), clock.now())
        self._frames = CommandFrames(self._seen, self._tasks.tids, begins, facts.nohz_full, self._outside)
        for trace in (self._theirs, self._mine):
            trace.on()

    def tick(self) -> None:
        """Empty the kernel's buffers. Raises OSError if another program has removed the trace."""
        for trace in (self._mine, self._theirs):
            trace.drain()
        if self._mine.waiting > BACKLOG:
            self._work()

    def finish(self) -> Observation:
        """Stop tracing and return the interruptions with their causes. Raises OSError like tick()."""
        try:
            for trace in (self._mine, self._theirs):
                trace.off()
            self._work(last=True)
            self._judge()
        finally:
            self.close()
        return self._seen

    def close(self) -> None:
        """Remove the trace instances."""
        self._made.close()

    def _work(self, last: bool = False) -> None:
        rate = Clock(self._first, clock.moment())
        convert = rate.converter(self._mine.clock)
        arriving = {cpu: decode.events(self._mine, cpu, self._symbol, convert, rate.ticks) for cpu in self._cpus}
        sent = decode.sent(self._theirs, self._cpus, convert, decode.titles(self._comm), self._symbol)
        reach = rate.ticks(names.SENT_BEFORE_NS)
        sent += self._early_sent
        namers = {cpu: names.namer(names.Senders(sent, cpu, reach), self._comm) for cpu in self._cpus}
        self._frames.feed(arriving, namers, rate, clock.tick_ns(), last)
        newest = max((each.time for each in sent), default=0)
        self._early_sent = [each for each in sent if each.time >= newest - reach]

    def _judge(self) -> None:
        self.foreign = self._frames.foreign
        if lost := sum(self._mine.lost(cpu) for cpu in self._cpus):
            self._seen.limits.append(f"{lost:,} events did not fit into the trace: their causes are missing")
        if lost := sum(self._theirs.lost(cpu) for cpu in self._theirs.cpus):
            self._seen.limits.append(f"{lost:,} IPI send events did not fit into the trace: some senders are unknown")
