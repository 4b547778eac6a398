"""Observe the interruptions of the isolated CPUs during a run in the helper, and report them to the front."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator

from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.noise import command_report
from quiet.noise.budgets import Nanoseconds
from quiet.noise.command_report import CommandUsage
from quiet.noise.command_tasks import CommandTasks
from quiet.noise.observe import Observer
from quiet.run.protocol import CommandDone, RunEnded


class RunObserver:
    """Observes one command. If observing fails, the report has a line about it, and the run continues."""

    def __init__(self, host: Host, cpus: CpuSet, pid: int, cgroup: str, applied: frozenset[str], trace: bool) -> None:
        self._error, self._trace = "", trace
        self._observer = Observer(host, cpus, CommandTasks(host, pid, cgroup), applied, trace)
        with self._noted():
            self._observer.start()
        self._began = time.monotonic()

    def tick(self) -> None:
        """Process the events so far; call this every TICK_S seconds."""
        if not self._error:
            with self._noted():
                self._observer.tick()

    def stop(self, done: CommandDone) -> None:
        """Stop observing; call this before the restore, which also interrupts these CPUs."""
        self._wall_s = time.monotonic() - self._began
        with self._noted():
            if not self._error:
                self._observer.stop(done.cpu_ns if done.cpu_ns >= 0 else None)

    def report(self, ended: RunEnded, done: CommandDone) -> RunEnded:
        """The message `ended` with the observed interruptions, or with the reason why observing failed."""
        cpu_s = max(done.cpu_ns, 0) / 1e9
        faults, switches = (done.minor_faults, done.major_faults), (done.voluntary, done.involuntary)
        usage = CommandUsage((), done.code, self._wall_s, cpu_s, *faults, *switches)
        with self._noted():
            if not self._error:
                seen = self._observer.result()
                settings = None if ended.stays else ended.restored
                whole = command_report.make(usage, seen, settings=settings)
                texts = (
                    command_report.summary(dataclasses.replace(whole, settings=None)),
                    *command_report.lines(whole if self._trace else dataclasses.replace(whole, limits=())),
                )
                ended = ended._replace(
                    lines=texts,
                    report=json.dumps(_plain(dataclasses.asdict(whole))) if self._trace else "",
                    interruptions=seen.count,
                    lost_ns=round(seen.total_ns or 0),
                    observed_ns=round(max(self._wall_s, cpu_s) * 1e9),
                    unmeasured=sum(row.count for row in seen.causes if row.total_ns is None),
                )
        self._observer.close()
        return ended._replace(lines=(self._error,)) if self._error else ended

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._error = f"the run could not be observed: {type(error).__name__}: {error}"


def _plain(value: object) -> object:
    """Convert a value for JSON; nanoseconds become whole numbers."""
    if isinstance(value, Nanoseconds):
        return round(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
