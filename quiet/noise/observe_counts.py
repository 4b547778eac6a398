"""Derive the interruptions of a command from the kernel's counts alone.

This needs no privileges, but interrupts have no lengths. /proc/interrupts and /proc/softirqs count per CPU, not per
task, so the command is charged a share of each interval's counts: the share of the interval in which it had the CPU
(/proc/PID/schedstat). A share above NEARLY_ALL counts as all. The run time of another task on these CPUs counts only up
to the time that the command was runnable and waiting.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict

from quiet.cpulist import CpuSet
from quiet.host.perf import MIGRATIONS, SOFTWARE, PerfCounter
from quiet.host.proc import status_field
from quiet.host.reader import Reader
from quiet.noise import clock, counters
from quiet.noise.attribute import Cause
from quiet.noise.call_nesting import COUNTED, THREAD, VECTOR
from quiet.noise.command_tasks import CommandTasks, TaskTimes, migrations, ran, run_times
from quiet.noise.counters import Counters
from quiet.noise.interruptions import COUNTS, Observation
from quiet.noise.names import LOCAL_TIMER, SOFTIRQ_LINE, line_causes

NEARLY_ALL = 0.9


class CountsObserver:
    """Observes a command through the kernel's counts: call start(), tick() at intervals, and finish()."""

    def __init__(self, reader: Reader, cpus: CpuSet, tasks: CommandTasks) -> None:
        self._reader, self._cpus, self._tasks = reader, cpus, tasks
        self._own: dict[int, TaskTimes] = {}  # the last reading of each task of the command
        self._own_ns: dict[int, float] = defaultdict(float)  # per CPU
        self._elsewhere_ns = 0.0  # on CPUs that are not observed
        self._wait_ns = 0
        self._moved: dict[int, int] = {}  # migrations of each task, if no single counter covers all of them
        self._migrations: PerfCounter | None = None
        self._parts: dict[tuple[int, str], float] = defaultdict(float)  # the command's share of the interrupts

    def start(self) -> None:
        """Start counting."""
        if self._tasks.pid:
            with contextlib.suppress(OSError):
                self._migrations = PerfCounter(SOFTWARE, MIGRATIONS, pid=self._tasks.pid)
        self._others = run_times(self._reader)
        self._look()  # sets the baseline
        self._own_ns.clear()
        self._elsewhere_ns = 0.0
        self._wait_ns = 0
        self._first = self._last = counters.read(self._reader, self._cpus, clock.now)
        self._began = self._at = time.monotonic_ns()
        self._cost_ns, self._looks = time.process_time_ns(), 0

    def tick(self) -> None:
        """Add the counts since the last read."""
        self._looks += 1
        own_ns = self._look()
        now = counters.read(self._reader, self._cpus, clock.now)
        at = time.monotonic_ns()
        for cpu in self._cpus:
            if share := own_ns.get(cpu, 0) / max(at - self._at, 1):
                for label, count in _grown(self._last, now, cpu).items():
                    self._parts[cpu, label] += count * (1 if share > NEARLY_ALL else share)
        self._last, self._at = now, at

    def finish(self, cpu_ns: float | None) -> Observation:
        """Stop counting and return the observation.

        `cpu_ns`: the CPU time of the whole command in ns, None if unknown; it covers ended tasks that were missed.
        """
        self._cost_ns = time.process_time_ns() - self._cost_ns
        self.tick()
        seen_ns = sum(self._own_ns.values())
        total_ns = max(cpu_ns - self._elsewhere_ns, 0) if cpu_ns is not None else seen_ns
        if total_ns > seen_ns / NEARLY_ALL and (seen_ns or not self._elsewhere_ns):
            self._spread(total_ns / seen_ns if seen_ns else 0, total_ns)
        done = Observation(COUNTS, cpus_used=set(self._own_ns), migrations=self._all_migrations())
        for cpu in sorted(self._own_ns):
            parts = {label: count for (of, label), count in self._parts.items() if of == cpu}
            self._enter(done, cpu, parts)
        self._enter_tasks(done, total_ns / seen_ns if seen_ns else 1.0)
        return done

    def close(self) -> None:
        """Stop counting."""
        if self._migrations:
            self._migrations.close()
            self._migrations = None

    def _all_migrations(self) -> int | None:
        if self._migrations:
            return round(self._migrations.read())
        return sum(self._moved.values()) if self._moved else None

    def stolen_ns(self, used: CpuSet) -> float | None:
        """The stolen time of these CPUs in ns, from /proc/stat; None if the kernel does not count it."""
        first, last = self._first.stolen, self._last.stolen
        known = [last[cpu] - first[cpu] for cpu in used if cpu in first and cpu in last]
        return sum(known) * 1e9 / os.sysconf("SC_CLK_TCK") if known else None

    def _look(self) -> dict[int, int]:
        """The time that the command ran since the last read, in ns, by CPU."""
        times: dict[int, int] = defaultdict(int)
        for now in self._tasks.look():
            before = self._own.get(now.tid)
            times[now.cpu] += now.run_ns - (before.run_ns if before else 0)
            self._wait_ns += now.wait_ns - (before.wait_ns if before else 0)
            self._own[now.tid] = now
            if not self._migrations and (moved := migrations(self._reader, now.tid)) is not None:
                self._moved[now.tid] = moved
        for cpu, ns in times.items():
            if cpu not in self._cpus:  # the command may move itself to another CPU
                self._elsewhere_ns += ns
            elif ns:
                self._own_ns[cpu] += ns
        return times

    def _spread(self, factor: float, total_ns: float) -> None:
        """Scale the command's CPU times by `factor`, to include tasks that lived only between two reads.

        With `factor` 0, no task was seen, and `total_ns` is divided equally among the CPUs.
        """
        passed = max(self._at - self._began, 1)
        if not factor:
            self._own_ns = defaultdict(float, dict.fromkeys(self._cpus, total_ns / len(self._cpus)))
            factor = 1.0
        for cpu in self._own_ns:
            self._own_ns[cpu] *= factor
            share = self._own_ns[cpu] / passed
            for label, count in _grown(self._first, self._last, cpu).items():
                self._parts[cpu, label] = count * (1 if share > NEARLY_ALL else share)

    def _enter(self, done: Observation, cpu: int, parts: dict[str, float]) -> None:
        period_ns = clock.tick_ns()
        for cause, count in line_causes(parts, self._last.lines):
            if cause == LOCAL_TIMER:
                due = self._own_ns[cpu] / period_ns  # a busy CPU has a tick in each period
                ticks = count if count <= 1.05 * due + 2 else due
                done.add(Cause(VECTOR, "tick"), cpu, ticks, None)
                done.add(Cause(COUNTED, "other timer"), cpu, count - ticks, None)
            else:
                done.add(cause, cpu, count, None)

    def _enter_tasks(self, done: Observation, factor: float) -> None:
        """Add the other tasks that ran on the command's CPUs; `factor` accounts for unobserved time of the command."""
        others = [
            # the rest of this process's time lies outside the time of the command
            task._replace(run_ns=self._cost_ns, slices=self._looks) if task.tid == os.getpid() else task
            for task in ran(self._reader, self._others)
            if task.cpu in self._own_ns and task.tid not in self._tasks.tids
        ]
        left_ns = self._wait_ns * max(factor, 1.0)
        bound = {task.tid for task in others if self._stays(task)}
        # all time of a task is charged to the CPU that it used last, although an unbound task may have run elsewhere,
        # so the tasks that are bound to this CPU come first
        for group in ([t for t in others if t.tid in bound], [t for t in others if t.tid not in bound]):
            group_ns = sum(task.run_ns for task in group)
            part = min(left_ns / group_ns, 1.0) if group_ns else 0.0
            left_ns -= part * group_ns
            for task in group:
                cause = Cause(THREAD, task.comm, str(task.tid))
                done.add(cause, task.cpu, task.slices * part, task.run_ns * part)
                done.tallies[cause].max_ns = None  # the value is a sum

    def _stays(self, task: TaskTimes) -> bool:
        """Whether a task may run only on the CPU that it used last."""
        allowed = status_field(self._reader.text(f"/proc/{task.tid}/status"), "Cpus_allowed_list")
        return allowed == str(task.cpu)


def _grown(before: Counters, after: Counters, cpu: int) -> dict[str, int]:
    """The increase of each count on a CPU, without counts that did not increase: interrupts by label, softirqs as
    "softirq NAME".
    """
    pairs = ((label, count - before.interrupts[cpu].get(label, 0)) for label, count in after.interrupts[cpu].items())
    soft = ((SOFTIRQ_LINE + name, n - before.softirqs[cpu].get(name, 0)) for name, n in after.softirqs[cpu].items())
    return {label: count for label, count in (*pairs, *soft) if count > 0}
