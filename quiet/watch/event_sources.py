"""Combine the sources of notifications, which are files, devices, network interfaces and processes; handle signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.watch.inotify import CREATE, DELETE, MODIFY, Inotify
from quiet.watch.netlink import Links, Processes, Uevent, Uevents
from quiet.watch.watched_files import JOURNAL, rechecked_on

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOST_TASKS = 512  # tasks checked individually; the next full check covers the others
# prefixes of the names of programs that also tune the host
RIVALS = ("irqbalance", "tuned", "tlp", "auto-cpufreq", "power-profiles-", "powertop", "thermald")


@dataclass(slots=True)
class Pending:
    """The notifications since the last check. `knobs`: the knobs to check, None for all."""

    knobs: set[str] | None = field(default_factory=set)
    tids: set[int] = field(default_factory=set)
    by: str = ""  # the source of the first notification
    first: float = 0.0  # time.monotonic() of the first notification
    tids_first: float = 0.0  # time.monotonic() of the first new thread
    renew: bool = False  # files have appeared or disappeared, so the watched files must be listed again

    @property
    def ready(self) -> bool:
        """Whether knobs must be checked. New threads count only after judge_tasks."""
        return self.knobs is None or bool(self.knobs)

    def add(self, knobs: Iterable[str] | None, by: str, now: float) -> None:
        """Add a notification about these knobs (None: all). `by`: its source; `now`: time.monotonic()."""
        if not self.ready:
            self.first = now
        self.by = self.by or by
        self.knobs = None if knobs is None or self.knobs is None else self.knobs | set(knobs)

    def uevents(self, events: Iterable[Uevent], now: float) -> None:
        """Add notifications of devices.

        A CPU affects every knob, and any other device affects the knobs of interrupts and interfaces. The action
        "change" affects none.
        """
        for event in events:
            if event.action == "change":
                continue
            by = f"{event.action} {event.path.rpartition('/')[2]}"
            self.renew = True
            self.add(None if event.subsystem == "cpu" else rechecked_on("device"), by, now)

    def processes(self, tids: Iterable[int], now: float) -> None:
        """Add threads that started, executed another program or changed their name; judge_tasks checks them when the
        burst of notifications is over.
        """
        new = set(tids)
        if new and not self.tids:
            self.tids_first = now
        self.tids |= new

    def interfaces(self, now: float) -> None:
        """Add a notification that a network interface changed."""
        self.renew = True
        self.add(rechecked_on("device"), "a network interface", now)

    def lost(self, source: Processes | Uevents | Inotify, now: float) -> None:
        """Add every knob that lost notifications may affect, after the queue of this source has overflowed."""
        if source.lost:
            source.lost = False
            knobs = rechecked_on("task") if isinstance(source, Processes) else None
            self.renew |= knobs is None
            self.add(knobs, "an overflow of notifications", now)

    def judge_tasks(self, facts: Facts, away: CpuSet) -> None:
        """Detect new threads that may run on the CPUs `away` (isolated or offline), and rivals among new threads."""
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
            self.add(wanted, "a new process", self.tids_first)  # no delay: the burst of notifications is over


class Sources:
    """All sources of notifications, as a context manager. In a recorded tree, files are the only source.

    `missing`: the unavailable sources, each with the reason.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.missing: list[str] = []
        self._files: Inotify | None = None
        self._devices: Uevents | None = None
        self._links: Links | None = None
        self._processes: Processes | None = None

    def __enter__(self) -> Sources:
        try:
            self._files = Inotify(self._host)
            self._files.add(JOURNAL, MODIFY | CREATE | DELETE)
        except OSError as error:
            self.missing.append(f"files ({error.strerror})")
        if self._host.live:
            for name, make in (("_devices", Uevents), ("_links", Links), ("_processes", Processes)):
                try:
                    setattr(self, name, make())
                except OSError as error:
                    self.missing.append(f"{name[1:]} ({error.strerror})")
        return self

    def __exit__(self, *_: object) -> None:
        for source in (self._files, self._devices, self._links, self._processes):
            if source is not None:
                source.close()

    def watch(self, files: Iterable[str], mask: int = MODIFY) -> None:
        """Watch these files too."""
        if self._files is not None:
            for path in files:
                self._files.add(path, mask)

    def summary(self) -> str:
        """The sources in use and the missing sources, as text."""
        parts = [f"{len(self._files)} files"] if self._files is not None else []
        named = (("devices", self._devices), ("network links", self._links), ("processes", self._processes))
        parts += [name for name, source in named if source is not None]
        if self._files is not None and self._files.left_out:
            parts.append(f"{self._files.left_out} files polled only")
        if self.missing:
            parts.append(f"no notifications of {', '.join(self.missing)}: polled only")
        return ", ".join(parts)

    def register(self, poll: select.poll, resting: bool) -> None:
        """Register the sources that wake the watcher.

        `resting`: exclude notifications of processes, which stay in their socket.
        """
        for source in (self._files, self._devices, self._links):
            if source is not None:
                poll.register(source.fileno(), select.POLLIN)
        if self._processes is not None:
            if resting:
                with contextlib.suppress(KeyError):
                    poll.unregister(self._processes.fileno())
            else:
                poll.register(self._processes.fileno(), select.POLLIN)

    def read(self, pending: Pending, knobs: Mapping[str, set[str]], now: float) -> bool:
        """Read the notifications into `pending`. Returns True if the journal may have changed.

        `knobs`: the knobs to check, by watched file.
        """
        journal_changed = False
        for path, name in self._files.read() if self._files is not None else ():
            if path == JOURNAL:
                journal_changed = True
            elif path in knobs:
                written = f"{path}/{name}" if name else path
                pending.add(knobs[path], f"a write to {written}", now)
        if self._files is not None and self._files.lost:
            journal_changed = True  # perhaps
            pending.lost(self._files, now)
        if self._devices is not None:
            pending.uevents(self._devices.read(), now)
            pending.lost(self._devices, now)
        if self._links is not None and self._links.read():
            pending.interfaces(now)
        if self._processes is not None:
            pending.processes(self._processes.read(), now)
            pending.lost(self._processes, now)
        return journal_changed


class StopSignals:
    """A context manager for the signals that end the watch. `signal`: the name of the received signal, "" if none."""

    def __init__(self) -> None:
        self.signal = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake)
        os.close(self._in)
        os.close(self._out)

    def fileno(self) -> int:
        return self._out

    def _take(self, number: int, _frame: object) -> None:
        self.signal = signal.Signals(number).name
