"""What came in: which knobs to look at again, and who said so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.machine.facts import Facts
from quiet.watch import watched_files
from quiet.watch.netlink import Processes, Uevent, Uevents

_MOST_TASKS = 512  # looked at one by one; more are found by the next look at everything
RIVALS = ("irqbalance", "tuned", "tlp", "auto-cpufreq", "power-profiles-", "powertop", "thermald")


@dataclass(slots=True)
class News:
    """Gathered until the next look. `knobs` None: all of them."""

    knobs: set[str] | None = field(default_factory=set)
    tids: set[int] = field(default_factory=set)
    by: str = ""
    first: float = 0.0  # when it began to come, time.monotonic()
    tids_first: float = 0.0  # the same for threads
    renew: bool = False  # files have come or gone: they are watched anew

    @property
    def ready(self) -> bool:
        """Whether there is something to look at; threads are judged first."""
        return self.knobs is None or bool(self.knobs)

    def add(self, knobs: Iterable[str] | None, by: str, now: float) -> None:
        """Something happened that these knobs (None: all) have to do with."""
        if not self.ready:
            self.first = now
        self.by = self.by or by
        self.knobs = None if knobs is None or self.knobs is None else self.knobs | set(knobs)

    def uevents(self, events: Iterable[Uevent], now: float) -> None:
        """Devices: CPUs change everything, the others their interrupts; plain values that change say nothing."""
        for event in events:
            if event.action == "change":
                continue
            by = f"{event.action} {event.path.rpartition('/')[2]}"
            self.renew = True
            self.add(None if event.subsystem == "cpu" else watched_files.devices(), by, now)

    def processes(self, tids: Iterable[int], now: float) -> None:
        """Threads that began or became another program; they are looked at when news have settled."""
        fresh = set(tids)
        if fresh and not self.tids:
            self.tids_first = now
        self.tids |= fresh

    def interfaces(self, now: float) -> None:
        """A network interface went up or down."""
        self.renew = True
        self.add(watched_files.devices(), "a network interface", now)

    def lost(self, source: Processes | Uevents, now: float) -> None:
        """More came than the socket could hold: what it was about is looked at as a whole."""
        if source.lost:
            source.lost = False
            self.add(
                watched_files.tasks() if isinstance(source, Processes) else None, "more news than could be read", now
            )

    def judge_tasks(self, facts: Facts, away: CpuSet) -> None:
        """Look at the new threads: who may run on the isolated CPUs, and who is a rival."""
        wanted: set[str] = set()
        masks: dict[str, bool] = {}
        for tid in sorted(self.tids)[:_MOST_TASKS]:
            task = facts.task(tid)
            if task is None or task.bound:
                continue
            if task.cpus not in masks:
                masks[task.cpus] = bool(cpulist.parse(task.cpus) & away)
            if masks[task.cpus]:
                wanted |= watched_files.tasks()
            if task.comm.startswith(RIVALS):
                wanted |= watched_files.services()
        self.tids = set()
        if wanted:
            self.add(wanted, "a new process", self.tids_first)  # they have settled already
