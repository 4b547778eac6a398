"""Wait for notifications, check for drift, report it, and repair it if requested."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

from quiet import cpulist
from quiet.errors import QuietError, Refused
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.settings import journal
from quiet.settings.applied_state import AppliedState
from quiet.settings.profile import Profile, load
from quiet.watch import drift, events, inotify, watched_files
from quiet.watch.event_sources import Pending, Sources, StopSignals
from quiet.watch.events import WatchEvent
from quiet.watch.monitor import Monitor
from quiet.watch.rate_limit import SETTLE_S, RateLimit, spent
from quiet.watch.textfile import WatchState
from quiet.watch.watched_files import CPUS

_WAITING = (
    "an apply or a restore is in progress, or was killed; checks wait until it is complete (after a kill: run "
    "`quiet restore`)"
)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options of `quiet watch`. Times are in seconds.

    `rescan_s`: the minimum interval of full checks; `seconds`: the time limit, None: no limit.
    """

    repair: bool = False
    rescan_s: float = 60.0
    seconds: float | None = None


class Watcher:
    """Watches a host with an applied profile.

    Raises Refused if no profile is applied, UsageError if the profile can no longer be loaded. `monitor`
    counts interruptions of the profile's isolated CPUs; without a monitor, `limit` gives the reason.
    """

    def __init__(self, host: Host, options: WatchOptions, report: Callable[[WatchEvent], None]) -> None:
        self._host, self._options, self._report = host, options, report
        self.monitor: Monitor | None = None
        self.limit = ""
        state = journal.load(host)
        if state is None:
            raise Refused(
                "nothing is applied, so nothing can drift; run `quiet apply` first, or count interruptions with "
                "--cpus LIST"
            )
        self._state: AppliedState | None = state
        self._cpus = state.cpus
        self._profile: Profile = load(state.source)
        self._files: dict[str, set[str]] = {}
        self._targets: list[tuple[str, str]] | None = None  # the profile's targets, listed on first use
        self._rate = RateLimit(options.rescan_s)
        self._pending = Pending()
        self._ledger = drift.Ledger()
        self._checks = 0
        self._halted = _at_work(state)
        self._reload_at: float | None = None  # the time to read the changed journal, which may still be changing

    def run(self) -> int:
        """Watch until a signal, a timeout or a restore. Returns 1 if drift was detected and not repaired."""
        isolated, housekeeping = (cpulist.format(cpus) for cpus in (self._cpus.isolated, self._cpus.housekeeping))
        self._pin(housekeeping)
        with Sources(self._host) as sources, StopSignals() as signals:
            self._sources = sources
            if self._halted:
                self._report(WatchEvent(events.NOTE, text=_WAITING))
            else:
                self._check(None, "the first check", renew=True)
            began, cpu_began = time.monotonic(), spent()
            if self.monitor:
                self.monitor.start(self._cpus.isolated)
            watched = f"{self._profile.name} on CPUs {isolated}, from CPUs {housekeeping}: {sources.summary()}"
            counted = self.monitor.describe() if self.monitor else self.limit
            watched += f"; {counted}" if counted else ""
            self._report(WatchEvent(events.WATCHING, text=watched, missing=tuple(sources.missing)))
            try:
                why = self._loop(signals, began)
            finally:
                if self.monitor:
                    self.monitor.end(self._applied())
            seconds, cpu_s = time.monotonic() - began, spent() - cpu_began
        ledger, interruptions = self._ledger, self.monitor.total if self.monitor else None
        drifts = ledger.seen, ledger.repaired, len(ledger.open)
        self._report(events.ended(why, seconds, cpu_s, self._checks, drifts, interruptions))
        return 1 if ledger.seen > ledger.repaired else 0

    def _pin(self, housekeeping: str) -> None:
        if self._host.live:
            with contextlib.suppress(OSError):
                self._host.set_affinity(0, housekeeping)

    def _applied(self) -> WatchState:
        return WatchState(self._profile.name if self._state else "", len(self._ledger.open))

    def _loop(self, signals: StopSignals, began: float) -> str:
        until = began + self._options.seconds if self._options.seconds is not None else None
        poll = select.poll()
        poll.register(signals.fileno(), select.POLLIN)
        while True:
            now = time.monotonic()
            if signals.signal:
                return signals.signal
            if until is not None and now >= until:
                return "the time is up"
            if why := self._due(now):
                return why
            self._sources.register(poll, resting=bool(self._pending.tids))
            poll.poll(self._timeout(time.monotonic(), until))
            self._gather()

    def _gather(self) -> bool:
        """Read the notifications. Returns True if another apply or restore may have changed the journal."""
        now = time.monotonic()
        journal_changed = self._sources.read(self._pending, self._files, now)
        if journal_changed and self._reload_at is None:
            self._reload_at = now + SETTLE_S
        return journal_changed

    def _due(self, now: float) -> str:
        """Perform the work that is due. Returns the reason to end, or ""."""
        if self._reload_at is not None and now >= self._reload_at:
            self._reload()
        if self._state is None:
            return "the profile was restored"
        if self.monitor and now >= self.monitor.at:
            self.monitor.look(self._applied())
        if self._halted:
            return ""
        pending = self._pending
        if pending.tids and now >= self._rate.tasks_at(pending.tids_first):
            began = spent()
            pending.judge_tasks(Facts(self._host), self._state.cpus.away)
            self._rate.judged(began, now)
        if pending.ready and now >= self._rate.pending_at(pending.first):
            self._pending = Pending(tids=pending.tids, tids_first=pending.tids_first)
            if pending.knobs is None:
                self._check({CPUS}, pending.by)  # a quick check that often detects the drift
            elif pending.renew:
                self._rate.hurry(pending.by)
            self._check(pending.knobs, pending.by, renew=pending.renew)
        elif now >= self._rate.whole_at():
            self._check(None, self._rate.reason, renew=True)
        if self._ledger.open and self._options.repair and now >= self._rate.repair_at:
            self._repair()
        return ""

    def _timeout(self, now: float, until: float | None) -> int:
        """Milliseconds until the next work is due; -1 if none is."""
        looking = self.monitor.at if self.monitor else None
        moments = [moment for moment in (until, self._reload_at, looking) if moment is not None]
        if not self._halted:
            moments.append(self._rate.whole_at())
            if self._pending.tids:
                moments.append(self._rate.tasks_at(self._pending.tids_first))
            if self._pending.ready:
                moments.append(self._rate.pending_at(self._pending.first))
            if self._ledger.open and self._options.repair:
                moments.append(self._rate.repair_at)
        return min(max(0, int(1000 * (min(moments) - now)) + 1), 1 << 30) if moments else -1

    def _check(self, names: set[str] | None, by: str, renew: bool = False) -> None:
        assert self._state is not None
        began = spent()
        facts = Facts(self._host)
        try:
            changes = drift.check(self._host, self._profile, self._state, facts, names)
        except QuietError as error:
            self._report(WatchEvent(events.NOTE, text=f"could not check: {error}"))
        else:
            if self._gather() and any(change.target not in self._ledger.open for change in changes):
                self._pending.add(names, by, time.monotonic())  # perhaps unfinished work of another quiet process
                self._pending.renew |= renew
                self._rate.checked(began, time.monotonic(), False)
                return
            new, over = self._ledger.update(changes, names)
            for change in new:
                self._report(WatchEvent(events.DRIFT, change, by))
            for change in over:
                self._report(WatchEvent(events.MENDED, change, by))
        if renew:
            self._watch_files(facts)
        self._checks += 1
        self._rate.checked(began, time.monotonic(), names is None)

    def _watch_files(self, facts: Facts) -> None:
        assert self._state is not None
        if self._targets is None:
            self._targets = list(watched_files.targets(self._profile, self._state, facts))
        self._files = watched_files.files(self._host, (*self._targets, *watched_files.interrupts(self._profile, facts)))
        self._sources.watch(self._files)
        folders = watched_files.folders()
        self._sources.watch(folders, inotify.CREATE | inotify.DELETE)
        self._files |= folders

    def _repair(self) -> None:
        drifts = dict(self._ledger.open)
        reasons: dict[str, str] | None = None
        try:
            reasons = drift.repair(self._host, self._profile, drifts.values())
        except QuietError as error:
            self._report(WatchEvent(events.NOTE, text=f"could not repair: {error}"))
        self._reload()
        self._rate.repaired(time.monotonic())
        if reasons is None or self._state is None:
            return
        self._sources.read(Pending(), {}, 0.0)  # discard the notifications of our own writes
        began, facts = spent(), Facts(self._host)
        try:
            left = drift.check(self._host, self._profile, self._state, facts, None)
        except QuietError as error:
            self._report(WatchEvent(events.NOTE, text=f"could not check: {error}"))
            return
        still = {change.target for change in left}
        for target, change in drifts.items():
            if target in still or target in reasons:
                self._report(
                    WatchEvent(
                        events.REFUSED, change, text=reasons.get(target, "the setting did not keep the wanted value")
                    )
                )
            else:
                self._report(WatchEvent(events.REPAIRED, change))
                self._ledger.repaired += 1
        new, _ = self._ledger.update(left, None)
        for change in new:
            self._report(WatchEvent(events.DRIFT, change, "the check after a repair"))
        self._watch_files(facts)
        self._rate.checked(began, time.monotonic(), True)

    def _reload(self) -> None:
        """Reload the journal, which another apply, a restore, or our own repair has changed."""
        self._reload_at = None
        before, self._state = self._state, journal.load(self._host)
        state = self._state
        if state is None:
            return
        halted = _at_work(state)
        self._targets = None
        if before is None or (before.time, before.source) != (state.time, state.source):
            try:
                self._profile = load(state.source)
            except QuietError as error:  # its file was changed or deleted after the apply
                if before is None or before.source != state.source:
                    raise
                self._report(WatchEvent(events.NOTE, text=f"still watching the earlier profile: {error}"))
        if state.cpus != self._cpus:
            self._cpus = state.cpus
            self._pin(cpulist.format(state.cpus.housekeeping))
            if self.monitor:
                self.monitor.start(state.cpus.isolated)
        if self._halted and not halted:
            self._pending.add(None, "the end of an apply or a restore", time.monotonic())
            self._pending.renew = True
        if halted and not self._halted:
            self._report(WatchEvent(events.NOTE, text=_WAITING))
        self._halted = halted


def _at_work(state: AppliedState) -> bool:
    """Whether another quiet process is applying or restoring, or was killed while doing so.

    Checks wait until this has ended.
    """
    return state.restoring or not state.complete
