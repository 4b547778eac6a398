"""Pending notifications: which knobs to check again, and which source reported them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.machine.facts import Facts
from quiet.watch.netlink import Processes, Uevent, Uevents
from quiet.watch.watched_files import rechecked_on

_MOST_TASKS = 512  # checked one by one; the next check of everything finds the others
RIVALS = ("irqbalance", "tuned", "tlp", "auto-cpufreq", "power-profiles-", "powertop", "thermald")


@dataclass(slots=True)
class Pending:
    """Gathered until the next check. `knobs` None: all of them."""

    knobs: set[str] | None = field(default_factory=set)
    tids: set[int] = field(default_factory=set)
    by: str = ""
    first: float = 0.0  # time.monotonic() of the first notification
    tids_first: float = 0.0  # the same for threads
    renew: bool = False  # files have come or gone: the watched files have to be listed again

    @property
    def ready(self) -> bool:
        """Whether there is something to check; threads are judged first."""
        return self.knobs is None or bool(self.knobs)

    def add(self, knobs: Iterable[str] | None, by: str, now: float) -> None:
        """A notification that concerns these knobs (None: all)."""
        if not self.ready:
            self.first = now
        self.by = self.by or by
        self.knobs = None if knobs is None or self.knobs is None else self.knobs | set(knobs)

    def uevents(self, events: Iterable[Uevent], now: float) -> None:
        """Devices: a CPU concerns every knob, others their interrupts; an action "change" concerns none."""
        for event in events:
            if event.action == "change":
                continue
            by = f"{event.action} {event.path.rpartition('/')[2]}"
            self.renew = True
            self.add(None if event.subsystem == "cpu" else rechecked_on("device"), by, now)

    def processes(self, tids: Iterable[int], now: float) -> None:
        """Threads that began or became another program; they are judged when notifications have settled."""
        new = set(tids)
        if new and not self.tids:
            self.tids_first = now
        self.tids |= new

    def interfaces(self, now: float) -> None:
        """A network interface went up or down."""
        self.renew = True
        self.add(rechecked_on("device"), "a network interface", now)

    def lost(self, source: Processes | Uevents, now: float) -> None:
        """The socket overflowed: every knob that it may have been about is checked."""
        if source.lost:
            source.lost = False
            knobs = rechecked_on("task") if isinstance(source, Processes) else None
            self.add(knobs, "more news than could be read", now)

    def judge_tasks(self, facts: Facts, away: CpuSet) -> None:
        """Check the new threads: which may run on the isolated CPUs, and which are rivals."""
        wanted: set[str] = set()
        masks: dict[str, bool] = {}
        for tid in sorted(self.tids)[:_MOST_TASKS]:
            task = facts.task(tid)
            if task is None or task.bound:
                continue
            if task.cpus not in masks:
                masks[task.cpus] = bool(cpulist.parse(task.cpus) & away)
            if masks[task.cpus]:
                wanted |= rechecked_on("task")
            if task.comm.startswith(RIVALS):
                wanted |= rechecked_on("service")
        self.tids = set()
        if wanted:
            self.add(wanted, "a new process", self.tids_first)  # they have settled already
