"""Count the interruptions of some CPUs at an interval, and report, record and export them.

The monitor runs on other CPUs, and uses at most 0.05 % of one: if its checks are expensive, the interval grows.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import QuietError
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.noise.attribute import Cause
from quiet.noise.call_nesting import IRQ, SOFTIRQ
from quiet.watch import events
from quiet.watch.event_sources import StopSignals
from quiet.watch.events import WatchEvent, WatchInterruption
from quiet.watch.history import HistoryWriter
from quiet.watch.interrupt_counts import STOLEN, TICK, InterruptCounts, Interruption, called
from quiet.watch.rate_limit import COUNTS_SHARE, spent
from quiet.watch.textfile import Textfile, WatchState

HOUR_S = 3600.0  # interval of reports about expected interruptions; maximum interval for a continuing cause
FRESH_S = 60.0  # maximum interval between two writes of the metrics
_VERBS = {IRQ: "fired", SOFTIRQ: "ran"}


@dataclass(slots=True)
class _Pending:
    """The counts of a cause by CPU since its last report, and the time when the next report is due."""

    counts: dict[int, int] = field(default_factory=dict)
    since: float = 0.0
    due: float = 0.0
    wait: float = 0.0

    def add(self, cpu: int, count: int) -> None:
        self.counts[cpu] = self.counts.get(cpu, 0) + count


class Monitor:
    """Monitors CPUs: call start(), look() whenever the time `at` (time.monotonic()) is reached, and end().

    Creating a Monitor raises QuietError if interruptions cannot be counted.
    """

    def __init__(
        self,
        reader: Reader,
        interval_s: float,
        report: Callable[[WatchEvent], None],
        history: HistoryWriter | None = None,
        textfile: Textfile | None = None,
    ) -> None:
        self.interval_s, self.total = interval_s, 0
        self.at = float("inf")
        self._report, self._history, self._textfile = report, history, textfile
        self._tickless = Facts(reader).nohz_full
        self._counts = InterruptCounts(reader)
        self._cpus: CpuSet = frozenset()
        self._causes: dict[Cause, _Pending] = {}
        self._expected = _Pending()
        self._failed: set[str] = set()  # the subjects of reported problems
        self._looked = self._written = 0.0

    def start(self, cpus: CpuSet) -> None:
        """Watch these CPUs from now on, instead of the previous ones."""
        if self._cpus:
            self.look()
        began = spent()
        self._counts.look(cpus)
        self._cpus = cpus
        self._looked = self.at = time.monotonic()
        self._rest(began, self._looked)
        self._expected.since, self._expected.due = self._looked, self.at
        if self._history:
            self._history.start(cpus)

    def describe(self) -> str:
        """A short description of the monitored CPUs and the location of the history."""
        words = f"interruptions of {_on(self._cpus)} every {self.interval_s:g} s"
        words += f" (not counted here: {', '.join(self._counts.missing)})" if self._counts.missing else ""
        return words + (f", history in {self._history.folder}" if self._history else ", no history")

    def look(self, applied: WatchState | None = None) -> None:
        """Count the interruptions since the last check. `applied`: the applied state for the metrics, if known."""
        began = spent()
        try:
            items = self._counts.look(self._cpus)
        except OSError as error:
            items = []
            self._note("counters", f"could not count interruptions: {error.strerror}")
        else:
            self._over("counters", "interruptions are counted again")
        now = time.monotonic()
        unexpected, expected = self._sorted(items)
        self.total += sum(item.times for item in unexpected)
        self._keep(unexpected, expected)
        self._enter(unexpected, now)
        self._looked = now
        for cpu, _, count in expected:
            self._expected.add(cpu, count)
        self._report_due(now)
        if self._textfile and (items or now - self._written >= FRESH_S):
            self._textfile.add(items)
            self._export(True, applied)
            self._written = now
        self._rest(began, now)

    def _rest(self, began: float, now: float) -> None:
        """Set the time of the next check, from the CPU time that the last check took."""
        self.at = max(self.at + self.interval_s, now + (spent() - began) / COUNTS_SHARE)
        if self.at <= now:  # the machine was suspended
            self.at = now + self.interval_s

    def end(self, applied: WatchState | None = None) -> None:
        """Check once more, and report the remaining interruptions."""
        try:
            self.look(applied)
            self._report_due(float("inf"))
        finally:  # even if the process that reads the reports has exited
            if self._history:
                self._history.close()
            if self._textfile:
                self._export(False, applied)
            self._counts.close()

    def _sorted(self, items: list[Interruption]) -> tuple[list[Interruption], list[Interruption]]:
        """Separate the unexpected interruptions from those by the tick, which are expected on CPUs with a tick."""
        usual = [item.cause in TICK and item.cpu not in self._tickless for item in items]
        return (
            [item for item, tick in zip(items, usual, strict=True) if not tick],
            [item for item, tick in zip(items, usual, strict=True) if tick],
        )

    def _keep(self, unexpected: list[Interruption], expected: list[Interruption]) -> None:
        if self._history is None:
            return
        try:
            self._history.add(unexpected, expected)
        except OSError as error:
            self._note("history", f"history: {self._history.folder}: {error.strerror}; writing is retried")
        else:
            self._over("history", "history: writing works again")

    def _export(self, watching: bool, applied: WatchState | None) -> None:
        assert self._textfile is not None
        try:
            self._textfile.write(watching, spent(), applied)
        except QuietError as error:
            self._note("textfile", str(error))
        else:
            self._over("textfile", f"--textfile {self._textfile.path}: writing works again")

    def _note(self, what: str, text: str) -> None:
        """Report a problem once, until it has ended."""
        if what not in self._failed:
            self._failed.add(what)
            self._report(WatchEvent(events.NOTE, text=text))

    def _over(self, what: str, text: str) -> None:
        if what in self._failed:
            self._failed.remove(what)
            self._report(WatchEvent(events.NOTE, text=text))

    def _enter(self, items: list[Interruption], now: float) -> None:
        for cpu, cause, count in items:
            pending = self._causes.setdefault(cause, _Pending(due=now))
            if not pending.counts:
                pending.since = self._looked
            pending.add(cpu, count)

    def _report_due(self, now: float) -> None:
        """Report the causes that are due.

        A cause that continues is reported after one interval, two, four, and so on up to an hour.
        """
        for cause, pending in list(self._causes.items()):
            if now < pending.due:
                continue
            if not pending.counts:
                del self._causes[cause]  # the cause did not continue
                continue
            self._report(_event(cause, pending, self._looked))
            pending.counts = {}
            pending.wait = min(2 * pending.wait or self.interval_s, HOUR_S)
            # a little early: checks are an interval apart, but not to the millisecond
            pending.due = now + pending.wait - self.interval_s / 2
        if now >= self._expected.due and self._expected.counts:
            self._report(_expected(self._expected, self._looked))
            self._expected = _Pending(since=self._looked, due=now + HOUR_S)


def _event(cause: Cause, pending: _Pending, now: float) -> WatchEvent:
    name, total = called(cause), sum(pending.counts.values())
    times = "once" if total == 1 else f"{total} times"
    verb, seconds = _VERBS.get(cause.kind, "occurred"), now - pending.since
    text = f"{name} {verb} {times} on {_on(pending.counts)} in {seconds:.0f} s"
    if cause == STOLEN:
        text = f"host took {10 * total} ms of {_on(pending.counts)} in {seconds:.0f} s"
    counts = dict(sorted(pending.counts.items()))
    detail = WatchInterruption(name, cause.kind, counts, round(seconds, 3))
    return WatchEvent(events.INTERRUPTED, text=text, interruption=detail)


def _expected(pending: _Pending, now: float) -> WatchEvent:
    total, seconds = sum(pending.counts.values()), now - pending.since
    text = f"the tick and its softirqs ran {total} times in {seconds:.0f} s on {_on(pending.counts)}"
    text += ", as expected without nohz_full"
    return WatchEvent(events.NOTE, text=text)


def _on(cpus: Iterable[int]) -> str:
    listed = cpulist.format(cpus)
    return f"CPU {listed}" if listed.isdecimal() else f"CPUs {listed}"


def watch_alone(monitor: Monitor, cpus: CpuSet, seconds: float | None, report: Callable[[WatchEvent], None]) -> None:
    """Count interruptions without a profile, until a signal arrives, or for `seconds` (None: no limit)."""
    with StopSignals() as signals:
        monitor.start(cpus)
        began, cpu_began, looks = time.monotonic(), spent(), 0
        until = began + seconds if seconds is not None else None
        here = cpulist.format(os.sched_getaffinity(0))
        report(WatchEvent(events.WATCHING, text=f"{monitor.describe()}, from CPUs {here}"))
        poll = select.poll()
        poll.register(signals.fileno(), select.POLLIN)
        try:
            while not signals.signal and (until is None or time.monotonic() < until):
                wait = min(monitor.at, until if until is not None else monitor.at) - time.monotonic()
                poll.poll(min(max(0, int(1000 * wait) + 1), 1 << 30))
                if not signals.signal and time.monotonic() >= monitor.at:
                    monitor.look()
                    looks += 1
        finally:
            monitor.end()
        passed, cpu_s = time.monotonic() - began, spent() - cpu_began
    report(events.ended(signals.signal or "the time is up", passed, cpu_s, looks, interruptions=monitor.total))
