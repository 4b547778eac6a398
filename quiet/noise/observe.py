"""Observe, from another process, the interruptions of CPUs while a command runs there.

    observer = Observer(Host(), cpus, CommandTasks(Host(), pid=child))
    observer.start()
    ...                      # the command runs; every half second: observer.tick()
    observer.finish()        # before the command is reaped, so that its last counts can be read

With kernel tracing, each interruption has a name and a length; without it, there are only counts, and `limits` gives
the reason.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine import virtualization
from quiet.machine.facts import Facts
from quiet.noise import decode, frequency, tracefs
from quiet.noise.attribute import FIRMWARE, HOST, NOT_SMI, OUTSIDE, Cause
from quiet.noise.budgets import Nanoseconds
from quiet.noise.call_nesting import THREAD
from quiet.noise.command_tasks import CommandTasks
from quiet.noise.frequency import FrequencyCounter
from quiet.noise.interruptions import OBSERVER, TRACE, InterruptionCause, Interruptions, Tally
from quiet.noise.kernel_parameters import absent_parameters, boot_parameters
from quiet.noise.measure_and_judge import slowed
from quiet.noise.names import label
from quiet.noise.observe_counts import CountsObserver
from quiet.noise.remedies.remedy import BOOT, KNOB, NONE, Remedy
from quiet.noise.remedies.table import remedy
from quiet.noise.smi import SmiCounter

if TYPE_CHECKING:
    from quiet.noise.observe_trace import TraceObserver

TICK_S = 0.5  # how often tick() should be called
_REST = 400  # reading the counts takes at most 1/400 of the time
_OWN = Remedy(THREAD, "", NONE, "", "quiet's own observation; without it, the command has no such interruption")
_CHAINS_S = 1.0  # timing chains takes 20 ms or more per CPU, so it is skipped for shorter commands


def pauses_name(pauses: float, smis: int | None) -> str:
    """The name of the HOST cause of all untraced pauses, from the number of SMIs in the same period (None: unknown)."""
    if smis is None or 0 < smis < pauses:
        return OUTSIDE
    return FIRMWARE if smis else NOT_SMI


class Observer:
    """Observes the interruptions of one command on some CPUs; call close() at the end.

    If the host does not support or permit a method, no error is raised, and the result has the reason in `limits`.
    """

    def __init__(
        self,
        host: Host,
        cpus: CpuSet,
        tasks: CommandTasks,
        applied: frozenset[str] = frozenset(),
        trace: bool = True,
    ) -> None:
        """`applied`: knobs that are applied to these CPUs; `trace`: use kernel tracing if possible."""
        self._host, self._cpus, self._tasks, self._applied = host, cpus, tasks, applied
        self._facts = Facts(host)
        self._limits: list[str] = []
        self._naming = ""
        self._counts = CountsObserver(host, cpus, tasks)
        virtual = bool(virtualization.hypervisor(self._facts))
        self._tracer: TraceObserver | None = None
        if trace:
            from quiet.noise.observe_trace import TraceObserver  # slow to load; a plain run does not trace

            self._tracer = TraceObserver(host, cpus, tasks, virtual)
        self._frequency = FrequencyCounter(host, cpus, tasks.pid)
        self._smis: SmiCounter | None = None
        self._next = 0.0

    def start(self) -> None:
        """Start observing; start the command right after this."""
        self._throttled = virtualization.throttled(self._host, self._cpus)
        try:
            if self._tracer:
                self._tracer.start()
            else:
                self._limits.append("kernel tracing was not requested")
        except tracefs.NoTraceError as error:
            self._without_trace(f"no kernel tracing, so causes are found by counting: {error}")
            self._naming = error.naming
        self._frequency.start()
        self._smis = SmiCounter(self._host, self._cpus, core=False)
        self._smis_before = self._smis.read()
        self._counts.start()
        self._began = time.monotonic()

    def tick(self) -> None:
        """Empty the kernel's trace buffers; without tracing, read the counts, for at most 1/_REST of the time."""
        began = time.monotonic()
        if self._tracer:
            try:
                self._tracer.tick()
            except OSError as error:
                self._without_trace(f"the trace could no longer be read: {error.strerror}")
            if self._tasks.cgroup:
                self._tasks.look()
        elif began >= self._next:
            self._counts.tick()
            self._next = began + _REST * (time.monotonic() - began)

    def finish(self, cpu_ns: float | None = None) -> Interruptions:
        """Call stop() and return result()."""
        self.stop(cpu_ns)
        return self.result()

    def stop(self, cpu_ns: float | None = None) -> None:
        """Stop observing. `cpu_ns`: the CPU time of the command and its ended children in ns; None: read it here."""
        self._seconds = time.monotonic() - self._began
        self._cpu_ns = cpu_ns if cpu_ns is not None else self._tasks.cpu_ns()
        self._frequency.stop()
        self._seen = self._counts.finish(self._cpu_ns)
        if self._tracer:
            try:
                traced = self._tracer.finish()
                if self._tracer.foreign:
                    self._limits.append(f"no kernel tracing, so causes are found by counting: {decode.FOREIGN}")
                else:
                    self._seen = traced
            except OSError as error:
                self._without_trace(f"the trace could no longer be read: {error.strerror}")
        self._name_smis()
        self._now_throttled = virtualization.throttled(self._host, self._cpus)
        self._measured = self._frequency.result(frozenset(self._seen.cpus_used))
        if self._measured.mean_hz is None and self._seconds >= _CHAINS_S:
            self._measured = frequency.by_chains(self._seen.cpus_used) or self._measured
        self._counts.close()

    def close(self) -> None:
        """Stop observing without a result; may also be called after finish()."""
        self._frequency.stop()
        self._counts.close()
        if self._smis:
            self._smis.close()
        if self._tracer:
            self._tracer.close()

    def _name_smis(self) -> None:
        """Name unexplained pauses by the number of SMIs in the same period, if the processor counts SMIs."""
        if not self._smis:
            return
        after = self._smis.read()
        counts = [after[cpu] - count for cpu, count in self._smis_before.items() if cpu in after]
        self._smis.close()
        if tally := self._seen.tallies.pop(Cause(HOST, OUTSIDE), None):
            smis = sum(counts) if counts else None
            name = pauses_name(tally.count, smis)
            self._seen.tallies[Cause(HOST, name)] = tally
            if name == OUTSIDE and smis:
                self._seen.limits.append(f"{tally.count:,.0f} pauses are untraced, {smis} of them SMIs of the firmware")

    def _without_trace(self, why: str) -> None:
        self._limits.append(why)
        if self._tracer:
            self._tracer.close()
        self._tracer = None

    def result(
        self,
        isolated: CpuSet | None = None,
        absent: Mapping[str, str] | None = None,
        in_place: frozenset[str] = frozenset(),
    ) -> Interruptions:
        """The observed interruptions, each cause with its remedy.

        `isolated`: the CPUs that remedies are for, and to which the knobs `in_place` are applied (None: the observed
        CPUs); `absent`: knobs that this host lacks, with the reasons.
        """
        isolated = self._cpus if isolated is None else isolated
        seen, facts = self._seen, self._facts
        together = cpulist.format(isolated | facts.nohz_full)
        lacking = absent_parameters(facts) | dict(absent or {})
        rows = [
            self._cause(cause, tally, together, lacking, in_place if tally.cpu in isolated else frozenset())
            for cause, tally in seen.tallies.items()
        ]
        rows = [row for row in rows if row.count or (row.total_ns and seen.method == TRACE)]
        rows = sorted(rows, key=lambda row: (-(row.total_ns or 0), -row.count))
        known = [row.total_ns for row in rows if row.total_ns is not None]
        total = Nanoseconds(sum(known)) if known or not rows else None
        used = frozenset(seen.cpus_used)
        stolen = self._counts.stolen_ns(used)
        return Interruptions(
            method=seen.method,
            seconds=round(self._seconds, 6),
            cpus_used=tuple(sorted(used)),
            count=sum(row.count for row in rows),
            total_ns=total,
            max_ns=None if seen.max_ns is None else Nanoseconds(seen.max_ns),
            causes=tuple(rows),
            frequency=self._measured,
            throttled=slowed(self._throttled, self._now_throttled),
            steal_ns=None if stolen is None else Nanoseconds(stolen),
            migrations=seen.migrations,
            limits=(*self._limits, *seen.limits),
        )

    def _cause(
        self, cause: Cause, tally: Tally, together: str, lacking: Mapping[str, str], in_place: frozenset[str]
    ) -> InterruptionCause:
        in_place |= self._applied | boot_parameters(self._facts, tally.cpu)
        own = cause.kind == THREAD and cause.by == str(os.getpid())
        item = _OWN if own else remedy(cause, tally.cpu, in_place, together, lacking, self._naming)
        return InterruptionCause(
            cause=f"{OBSERVER} ({cause.by})" if own else label(cause),
            kind=cause.kind,
            count=round(tally.count),
            total_ns=None if tally.total_ns is None else Nanoseconds(tally.total_ns),
            max_ns=None if tally.max_ns is None else Nanoseconds(tally.max_ns),
            remedy=item.sentence,
            knob=item.what if item.how == KNOB else None,
            boot=item.what if item.how == BOOT else None,
        )
