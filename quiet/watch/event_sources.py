"""All that tells of changes, as one thing: files, devices, network interfaces, processes."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Iterable, Mapping

from quiet.host.host import Host
from quiet.watch.inotify import CREATE, DELETE, MODIFY, Inotify
from quiet.watch.netlink import Links, Processes, Uevents
from quiet.watch.pending import News
from quiet.watch.watched_files import JOURNAL


class Sources:
    """Opened by `with`. On a recorded tree only its files tell."""

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

    def aim(self, files: Iterable[str], mask: int = MODIFY) -> None:
        """Watch these files too."""
        if self._files is not None:
            for path in files:
                self._files.add(path, mask)

    def summary(self) -> str:
        """What tells, and what does not."""
        parts = [f"{len(self._files)} files"] if self._files is not None else []
        named = (("devices", self._devices), ("network links", self._links), ("processes", self._processes))
        parts += [name for name, source in named if source is not None]
        if self._files is not None and self._files.left_out:
            parts.append(f"{self._files.left_out} files only by looking")
        if self.missing:
            parts.append(f"not told of {', '.join(self.missing)}: these only by looking")
        return ", ".join(parts)

    def register(self, poll: select.poll, resting: bool) -> None:
        """Have these wake us; `resting`: new processes wait, their socket keeps them."""
        for source in (self._files, self._devices, self._links):
            if source is not None:
                poll.register(source.fileno(), select.POLLIN)
        if self._processes is not None:
            if resting:
                with contextlib.suppress(KeyError):
                    poll.unregister(self._processes.fileno())
            else:
                poll.register(self._processes.fileno(), select.POLLIN)

    def read(self, news: News, knobs: Mapping[str, set[str]], now: float) -> bool:
        """Gather what has come; True when it is about the journal."""
        journal = False
        for path, name in self._files.read() if self._files is not None else ():
            if path == JOURNAL:
                journal = True
            elif path in knobs:
                what = f"{path}/{name}" if name else path
                news.add(knobs[path], f"a write to {what}", now)
        if self._devices is not None:
            news.uevents(self._devices.read(), now)
            news.lost(self._devices, now)
        if self._links is not None and self._links.read():
            news.interfaces(now)
        if self._processes is not None:
            news.processes(self._processes.read(), now)
            news.lost(self._processes, now)
        return journal
