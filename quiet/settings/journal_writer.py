"""Write the journal of applied settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from quiet import __version__, cpulist
from quiet.errors import Incomplete, QuietError, Refused
from quiet.host.lock import FOLDER
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings import journal_file, journal_lines
from quiet.settings.applied_state import TargetState
from quiet.settings.journal import boot_id
from quiet.settings.journal_file import FILE
from quiet.settings.journal_lines import Item

_EMPTY = journal_lines.Tail(0, 0, True, 0)
_CHUNK = 1 << 20
_MODE = 0o644  # every user may read it, regardless of the umask
_SEALED = 64  # bytes of a line excluding its values


class StoppedHalfWay(Incomplete):
    """A value or the journal could no longer be written, and some settings have been changed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"stopped halfway: {reason}; run `quiet restore` to restore the changed settings")
        self.reason = reason


class Journal:
    """Writes the journal; use it inside host.lock.locked().

    An existing journal is continued in its format; `begin` starts another one. `lenient`: after a failed write, all
    further lines are omitted, and `failure` gives the reason.
    """

    def __init__(self, reader: Reader, lenient: bool = False) -> None:
        self._reader = reader
        self._lenient, self.failure = lenient, ""
        self._fd, self._tail = -1, _EMPTY
        try:
            with reader.place(FILE, follow=False) as place:
                self._fd = os.open(place, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._go_on()
        except FileNotFoundError:
            pass
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Close the journal's file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def begin(self, reader: Reader, profile: str, source: str, cpus: CpuPartition, passing: bool) -> None:
        """Start a new journal atomically. It replaces the journal of an earlier boot."""
        import time

        sets = {
            "isolated": cpulist.format(cpus.isolated),
            "housekeeping": cpulist.format(cpus.housekeeping),
            "offline": cpulist.format(cpus.offline),
        }
        head = {"version": __version__, "boot_id": boot_id(reader), "time": time.time(), "passing": passing}
        self.close()
        with reader.place(FILE, follow=False) as place:
            new = f"{place}.new"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)  # left by a process that was killed at this point
            self._fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
            try:
                os.fchmod(self._fd, _MODE)
                self._tail = _EMPTY
                about = {"format": journal_lines.FORMAT, "profile": profile, "source": source, "cpus": sets}
                self._add({"op": "begin", **about, **head})
                os.rename(new, place)
            except OSError:
                os.unlink(new)
                raise

    def reserve(self, entries: Sequence[TargetState], writes: Sequence[tuple[str, str]], known: Iterable[str]) -> None:
        """Reserve the space for an apply of these entries and writes, and for its restore.

        Raises Refused if there is too little space.
        """
        size = _room(entries, writes, known)
        try:
            journal_file.allocate(self._fd, self._tail.end, size)
        except OSError as error:
            folder, kib = self._reader.named(FOLDER), -(-size // 1024)
            raise Refused(
                f"{folder}: {error.strerror}: the journal needs {kib} KiB; nothing was changed; free up space there"
            ) from None

    def stay(self) -> None:
        """Record that the settings that were applied for one command stay applied."""
        self._add({"op": "stay"})

    def before(self, entries: Iterable[TargetState]) -> None:
        """Record targets with their original values, one per line, so that damage to a line affects only one target."""
        rows = ([e.knob, e.target, e.kind, e.before, e.identity, e.passing] for e in entries)
        self._add(*({"op": "before", "entries": [row]} for row in rows))

    def intent(self, target: str, value: str) -> None:
        """Record the value that is about to be written."""
        self._add({"op": "intent", "target": target, "value": value})

    def done(self, target: str, value: str | None) -> None:
        """Record the value that was read back."""
        self._add({"op": "done", "target": target, "value": value})

    def refused(self, target: str, reason: str) -> None:
        """Record that the kernel rejected a value."""
        self._add({"op": "refused", "target": target, "reason": reason})

    def settled(self, values: Mapping[str, str | None]) -> None:
        """End an apply: record the current values of all recorded targets."""
        self._add({"op": "settled", "values": values})

    def restore(self, conflicts: Iterable[str], foreign: Iterable[str]) -> None:
        """Record the start of a restore, with the targets that another program changed: written ones (`conflicts`) and
        others (`foreign`).
        """
        self._add({"op": "restore", "conflicts": sorted(conflicts), "foreign": sorted(foreign)})

    def back(self, restored: Iterable[str]) -> None:
        """End an incomplete restore: record the targets that have their original values again."""
        self._add({"op": "back", "targets": sorted(restored)})

    def remove(self) -> None:
        """Remove the journal, because nothing is applied. Raises OSError if it cannot be removed."""
        with self._reader.place(FILE, follow=False) as place:
            os.unlink(place)

    def _go_on(self) -> None:
        if os.fstat(self._fd).st_mode & 0o777 != _MODE:
            os.fchmod(self._fd, _MODE)
        data = b""
        while part := os.read(self._fd, _CHUNK):
            data += part
        self._tail = journal_lines.tail(data)
        if self._tail.end < len(data):
            os.ftruncate(self._fd, self._tail.end)  # a writer was killed in the middle of a line
            os.lseek(self._fd, 0, os.SEEK_END)

    def _add(self, *items: Item) -> None:
        if self.failure or not items:
            return
        number, sealed = self._tail.lines, self._tail.sealed
        lines = [
            journal_lines.line(item, number + n) if sealed else journal_lines.old_line(item)
            for n, item in enumerate(items, 1)
        ]
        try:
            self._write(lines)
        except OSError as error:
            self._fail(error)

    def _write(self, lines: Sequence[bytes]) -> None:
        end, number, sealed, count_at = self._tail
        data, written = b"".join(lines), 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
            raise
        number += len(lines)
        count_at = count_at if end else len(lines[0]) + journal_lines.COUNT_AT
        if sealed:
            os.pwrite(self._fd, journal_lines.count(number), count_at)
        self._tail = journal_lines.Tail(end + written, number, sealed, count_at)

    def _fail(self, error: OSError) -> None:
        if not self._lenient:
            raise error
        self.failure = error.strerror or str(error)


@contextlib.contextmanager
def opened(host: Reader) -> Iterator[Journal]:
    """Yield a journal for writing values.

    Raises Refused if it cannot be opened, StoppedHalfWay if a write fails later.
    """
    try:
        log = Journal(host)
    except OSError as error:
        raise Refused(f"{error.filename or FILE}: {error.strerror}; nothing was changed") from None
    try:
        yield log
    except OSError as error:
        raise StoppedHalfWay(error.strerror or str(error)) from None
    finally:
        log.close()


@contextlib.contextmanager
def unchanged(log: Journal, started: bool) -> Iterator[None]:
    """If the block fails before the first change, remove the journal that it has `started`. OSError becomes Refused."""
    try:
        yield
    except (OSError, QuietError) as error:
        if started:
            with contextlib.suppress(OSError):
                log.remove()
        if isinstance(error, QuietError):
            raise
        raise Refused(f"{error.filename or FILE}: {error.strerror or error}; nothing was changed") from None


def _room(entries: Sequence[TargetState], writes: Sequence[tuple[str, str]], known: Iterable[str]) -> int:
    """An upper bound for the bytes of all lines still to be written."""
    size = 4096 + sum(4 * len(target) + _SEALED for target in known)  # settled, restore and back list all targets
    for e in entries:
        size += 2 * _SEALED + 4 * len(e.target) + 2 * len(e.before or "") + len(e.knob) + len(e.identity or "")
    for target, value in writes:  # room for two writes and a refusal
        size += 4 * (_SEALED + len(target) + len(value)) + len(target) + 256
    return size
