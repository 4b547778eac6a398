"""Record interruptions: a line of JSON for each minute with interruptions, in two files of bounded size.

Each line is self-contained:

    {"from": 1764000000, "to": 1764000060, "cpus": "2-3", "counts": {"3": {"irq 131 nvme0q7": 4}}}

"counts" may be empty: these CPUs were watched and not interrupted. A line with "expected" instead of "counts" covers
about an hour of interruptions by the scheduler tick, for CPUs with a tick. A crash can truncate one line; readers skip
it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import Refused
from quiet.host.lock import make_folders
from quiet.host.reader import Reader
from quiet.watch.interrupt_counts import Interruption

NAME, LOCK = "interruptions.jsonl", "interruptions.lock"
OLD = NAME + ".1"
MOST_BYTES = 16 << 20  # maximum size of both files together
MINUTE_S = 60
QUIET_S, EXPECTED_S = 600, 3600  # time covered by a line without interruptions, and by a line of expected ones
_WAITING_BYTES = 1 << 20  # maximum number of bytes kept in memory while the disk is full

CpuCounts = dict[int, dict[str, int]]


class HistoryWriter:
    """Appends to the history in a directory.

    Raises Refused if another process writes the history there, or if the directory cannot be written.

    Times are in seconds since the epoch. `write()` raises OSError if the disk is full; the latest MiB of lines then
    stays in memory.
    """

    def __init__(self, reader: Reader, folder: str, most_bytes: int = MOST_BYTES) -> None:
        self._reader, self.folder, self._most_bytes = reader, folder, most_bytes
        self._fd = self._lock = -1
        self._cpus: CpuSet = frozenset()
        self._counts: CpuCounts = {}
        self._expected: CpuCounts = {}
        self._from = self._to = self._expected_from = 0.0
        self._waiting = bytearray()
        try:
            make_folders(reader, folder.rstrip("/"))
            self._lock = reader.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            self.close()
            raise Refused(f"another `quiet watch` is writing the history in {folder}") from None
        except OSError as error:
            self.close()
            raise Refused(f"no history is kept: {error.filename or folder}: {error.strerror}") from None

    def start(self, cpus: CpuSet, now: float | None = None) -> None:
        """Set the CPUs that are watched from now on. The counts so far become separate lines."""
        now = time.time() if now is None else now
        if self._from:
            self._end_minute()
            self._end_hour()
        self._cpus, self._from, self._to, self._expected_from = cpus, now, now, now

    def add(self, items: list[Interruption], expected: list[Interruption], now: float | None = None) -> None:
        """Add the interruptions since the last call. Raises OSError if they cannot be written for now."""
        now = time.time() if now is None else now
        late = now < self._to  # the clock was set back
        if self._counts:
            over = int(now // MINUTE_S) != int(self._to // MINUTE_S)
        else:  # the time without interruptions gets a separate line
            over = now - self._from > (MINUTE_S if items else QUIET_S)
        if late or over:
            self._end_minute()
        if late:
            self._end_hour()
            self._from = self._expected_from = now
        self._to = now
        _enter(self._counts, items)
        _enter(self._expected, expected)
        if now - self._expected_from >= EXPECTED_S:
            self._end_hour()
        self.write()

    def write(self) -> None:
        """Write the buffered lines. Raises OSError if that is not possible now."""
        if not self._waiting:
            return
        if os.fstat(self._fd).st_nlink == 0:
            self._open()  # the file was deleted
        elif os.fstat(self._fd).st_size >= self._most_bytes // 2:
            with contextlib.suppress(FileNotFoundError):  # an earlier attempt has renamed it
                os.replace(f"{self.folder}/{NAME}", f"{self.folder}/{OLD}")
            self._open()
        if len(self._waiting) > _WAITING_BYTES:
            cut = self._waiting.find(b"\n", len(self._waiting) - _WAITING_BYTES)
            self._waiting[: cut + 1] = b"\n"
        while self._waiting:
            written = os.write(self._fd, self._waiting)
            del self._waiting[:written]

    def close(self) -> None:
        """Write the remaining lines as far as possible, and close the file."""
        if self._from:
            self._end_minute()
            self._end_hour()
            self._from = 0.0
        with contextlib.suppress(OSError):
            self.write()
        for fd in (self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1

    def _open(self) -> None:
        reader, flags = self._reader, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        fd = reader.open(f"{self.folder}/{NAME}", flags, 0o644)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        file = os.fstat(fd)
        if not stat.S_ISREG(file.st_mode) or file.st_nlink > 1:
            raise OSError(errno.EINVAL, "not a regular file with a single link", f"{self.folder}/{NAME}")
        if file.st_uid == os.geteuid():
            os.fchmod(self._fd, 0o644)  # regardless of the umask: every user may read it
        size = file.st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self._waiting[:0] = b"\n"  # start a new line after a line that a crash has truncated

    def _end_minute(self) -> None:
        if self._to > self._from or self._counts:
            self._line("counts", self._counts, self._from)
        self._counts, self._from = {}, self._to

    def _end_hour(self) -> None:
        if self._expected:
            self._line("expected", self._expected, self._expected_from)
        self._expected, self._expected_from = {}, self._to

    def _line(self, name: str, counts: CpuCounts, since: float) -> None:
        import json

        named = {str(cpu): causes for cpu, causes in sorted(counts.items())}
        line = {"from": round(since), "to": round(self._to), "cpus": cpulist.format(self._cpus), name: named}
        self._waiting += json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _enter(counts: CpuCounts, items: list[Interruption]) -> None:
    for cpu, cause, count in items:
        causes = counts.setdefault(cpu, {})
        key = f"{cause.kind} {cause.name}"
        causes[key] = causes.get(key, 0) + count
