"""Stay, wait for news, look, tell, and repair where that is asked for."""

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
from quiet.watch import drift, events, inotify, repair, watched_files
from quiet.watch.event_sources import Sources
from quiet.watch.events import WatchEvent
from quiet.watch.pending import News
from quiet.watch.rate_limit import SETTLE_S, RateLimit, spent
from quiet.watch.stop_signals import Ending
from quiet.watch.watched_files import CPUS

_WAITING = "another quiet is at work, or was killed in the middle; its end is waited for"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What was asked for: times in seconds, `seconds` None for ever."""

    repair: bool = False
    rescan_s: float = 60.0
    seconds: float | None = None


class Watcher:
    """Watches one host with one applied profile. Raises Refused when none is applied."""

    def __init__(self, host: Host, wanted: WatchOptions, tell: Callable[[WatchEvent], None]) -> None:
        self._host, self._wanted, self._tell = host, wanted, tell
        record = _applied(host)
        self._record: AppliedState | None = record
        self._cpus = record.cpus
        self._profile: Profile = load(record.source)
        self._files: dict[str, set[str]] = {}
        self._targets: list[tuple[str, str]] | None = None  # what the profile is about, found when first needed
        self._pace = RateLimit(wanted.rescan_s)
        self._news = News()
        self._ledger = drift.Ledger()
        self._looks = 0
        self._halted = _at_work(record)
        self._reload_at: float | None = None  # the journal has changed, and may still be changing

    def run(self) -> int:
        """Watch until a signal, the end of the time, or a restore; 1 when drift was seen that was not repaired."""
        isolated, housekeeping = (cpulist.format(cpus) for cpus in (self._cpus.isolated, self._cpus.housekeeping))
        if self._host.live:
            with contextlib.suppress(OSError):
                self._host.set_affinity(0, housekeeping)
        with contextlib.ExitStack() as stack:
            sources = stack.enter_context(Sources(self._host))
            ending = stack.enter_context(Ending())
            self._sources = sources
            if self._halted:
                self._tell(WatchEvent(events.NOTE, text=_WAITING))
            else:
                self._look(None, "the first look", renew=True)
            began, cpu_began = time.monotonic(), spent()
            watched = f"{self._profile.name} on CPUs {isolated}, from CPUs {housekeeping}"
            self._tell(
                WatchEvent(events.WATCHING, text=f"{watched}: {sources.summary()}", more={"missing": sources.missing})
            )
            why = self._loop(ending, began)
            seconds, cpu_s = time.monotonic() - began, spent() - cpu_began
        self._end(why, seconds, cpu_s)
        return 1 if self._ledger.seen > self._ledger.repaired else 0

    def _loop(self, ending: Ending, began: float) -> str:
        until = began + self._wanted.seconds if self._wanted.seconds is not None else None
        poll = select.poll()
        poll.register(ending.fileno(), select.POLLIN)
        while True:
            now = time.monotonic()
            if ending.signal:
                return ending.signal
            if until is not None and now >= until:
                return "the time is over"
            if why := self._due(now):
                return why
            self._sources.register(poll, resting=bool(self._news.tids))
            poll.poll(self._timeout(time.monotonic(), until))
            self._hear()

    def _hear(self) -> bool:
        """Gather the news; True when another quiet is at work."""
        now = time.monotonic()
        journal_too = self._sources.read(self._news, self._files, now)
        if journal_too and self._reload_at is None:
            self._reload_at = now + SETTLE_S
        return journal_too

    def _due(self, now: float) -> str:
        """Do what it is time for; says why to end, when there is a reason."""
        if self._reload_at is not None and now >= self._reload_at:
            self._reload()
        if self._record is None:
            return "the profile was restored"
        if self._halted:
            return ""
        news = self._news
        if news.tids and now >= self._pace.tasks_at(news.tids_first):
            began = spent()
            news.judge_tasks(Facts(self._host), self._record.cpus.away)
            self._pace.judged(began, now)
        if news.ready and now >= self._pace.news_at(news.first):
            self._news = News(tids=news.tids, tids_first=news.tids_first)
            if news.knobs is None:
                self._look({CPUS}, news.by)  # quick, and often what it is about
            elif news.renew:
                self._pace.hurry()
            self._look(news.knobs, news.by, renew=news.renew)
        elif now >= self._pace.whole_at():
            self._look(None, "a look at everything", renew=True)
        if self._ledger.open and self._wanted.repair and now >= self._pace.repair_at():
            self._repair()
        return ""

    def _timeout(self, now: float, until: float | None) -> int:
        """Milliseconds until something is due."""
        moments = [moment for moment in (until, self._reload_at) if moment is not None]
        if not self._halted:
            moments.append(self._pace.whole_at())
            if self._news.tids:
                moments.append(self._pace.tasks_at(self._news.tids_first))
            if self._news.ready:
                moments.append(self._pace.news_at(self._news.first))
            if self._ledger.open and self._wanted.repair:
                moments.append(self._pace.repair_at())
        return min(max(0, int(1000 * (min(moments) - now)) + 1), 1 << 30) if moments else -1

    def _look(self, names: set[str] | None, by: str, renew: bool = False) -> None:
        assert self._record is not None
        began = spent()
        facts = Facts(self._host)
        try:
            changes = drift.look(self._host, self._profile, self._record, facts, names)
        except QuietError as error:
            self._tell(WatchEvent(events.NOTE, text=f"could not look: {error}"))
        else:
            if self._hear() and any(change.target not in self._ledger.open for change in changes):
                self._news.add(names, by, time.monotonic())  # it may be another quiet's work, half done
                return
            new, gone = self._ledger.update(changes, names)
            for change in new:
                self._tell(WatchEvent(events.DRIFT, change, by))
            for change in gone:
                self._tell(WatchEvent(events.MENDED, change, by))
        if renew:
            self._aim(facts)
        self._looks += 1
        self._pace.looked(began, time.monotonic(), names is None)

    def _aim(self, facts: Facts) -> None:
        assert self._record is not None
        if self._targets is None:
            self._targets = list(watched_files.wanted(self._profile, self._record, facts))
        self._files = watched_files.files(self._host, (*self._targets, *watched_files.interrupts(self._profile, facts)))
        self._sources.aim(self._files)
        folders = watched_files.folders()
        self._sources.aim(folders, inotify.CREATE | inotify.DELETE)
        self._files |= folders

    def _repair(self) -> None:
        opened = dict(self._ledger.open)
        reasons: dict[str, str] | None = None
        try:
            reasons = repair.again(self._host, self._profile, opened.values())
        except QuietError as error:
            self._tell(WatchEvent(events.NOTE, text=f"could not repair: {error}"))
        self._reload()
        self._pace.repaired(time.monotonic())
        if reasons is None or self._record is None:
            return
        self._sources.read(News(), {}, 0.0)  # what we have written ourselves
        began, facts = spent(), Facts(self._host)
        left = drift.look(self._host, self._profile, self._record, facts, None)
        still = {change.target for change in left}
        for target, change in opened.items():
            if target in still or target in reasons:
                self._tell(
                    WatchEvent(events.REFUSED, change, text=reasons.get(target, "it is not as wanted afterwards"))
                )
            else:
                self._tell(WatchEvent(events.REPAIRED, change))
                self._ledger.repaired += 1
        new, _ = self._ledger.update(left, None)
        for change in new:
            self._tell(WatchEvent(events.DRIFT, change, "the look after a repair"))
        self._aim(facts)
        self._pace.looked(began, time.monotonic(), True)

    def _reload(self) -> None:
        """The journal has changed: another apply, a restore, or our own repair."""
        self._reload_at = None
        before, self._record = self._record, journal.load(self._host)
        record = self._record
        if record is None:
            return
        halted = _at_work(record)
        self._targets = None
        if before is None or (before.time, before.source) != (record.time, record.source):
            self._profile = load(record.source)
        if self._halted and not halted:
            self._news.add(None, "the end of another quiet", time.monotonic())
            self._news.renew = True
        if halted and not self._halted:
            self._tell(WatchEvent(events.NOTE, text=_WAITING))
        self._halted = halted

    def _end(self, why: str, seconds: float, cpu_s: float) -> None:
        ledger = self._ledger
        share = 100 * cpu_s / seconds if seconds else 0.0
        more: dict[str, object] = {
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu_s, 4),
            "cpu_percent": round(share, 4),
            "looks": self._looks,
            "drifts": ledger.seen,
            "repaired": ledger.repaired,
            "open": len(ledger.open),
        }
        said = f"{why} after {seconds:.0f} s: {ledger.seen} drifts, {ledger.repaired} repaired, {len(ledger.open)} open"
        self._tell(WatchEvent(events.ENDED, text=f"{said}; {cpu_s:.2f} s of CPU time ({share:.3f} %)", more=more))


def _at_work(record: AppliedState) -> bool:
    """Whether another quiet applies or restores just now, or was killed in the middle: its end is waited for."""
    return record.restoring or not record.complete


def _applied(host: Host) -> AppliedState:
    record = journal.load(host)
    if record is None:
        raise Refused("nothing is applied, so nothing can drift; `quiet apply` first")
    return record
