"""The sources of notifications as one: files, devices, network interfaces, processes; and the signals that end it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from quiet.host.host import Host
from quiet.watch.inotify import CREATE, DELETE, MODIFY, Inotify
from quiet.watch.netlink import Links, Processes, Uevents
from quiet.watch.pending import Pending
from quiet.watch.watched_files import JOURNAL

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Sources:
    """Opened by `with`. A recorded tree has only its files."""

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
        """The sources that are used, and those that are missing."""
        parts = [f"{len(self._files)} files"] if self._files is not None else []
        named = (("devices", self._devices), ("network links", self._links), ("processes", self._processes))
        parts += [name for name, source in named if source is not None]
        if self._files is not None and self._files.left_out:
            parts.append(f"{self._files.left_out} files only by looking")
        if self.missing:
            parts.append(f"not told of {', '.join(self.missing)}: these only by looking")
        return ", ".join(parts)

    def register(self, poll: select.poll, resting: bool) -> None:
        """Have these wake the watcher; `resting`: not for new processes, their socket keeps the messages."""
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
        """Read the notifications; True when one is about the journal."""
        journal_changed = False
        for path, name in self._files.read() if self._files is not None else ():
            if path == JOURNAL:
                journal_changed = True
            elif path in knobs:
                written = f"{path}/{name}" if name else path
                pending.add(knobs[path], f"a write to {written}", now)
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
    """Signals that end the watching; `signal` is the name of the one that came, else ""."""

    def __init__(self) -> None:
        self.signal = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
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
