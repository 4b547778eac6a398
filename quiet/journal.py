"""The journal: what was found and what was written, on disk before anything changes.

Write-ahead JSON lines in /run/quiet, each fsync'd, readable for everybody. /run dies with the state it describes; the
boot's id is inside for the hosts where it does not. Operations, in the order in which they may appear:

    begin    boot_id, version, profile, source, cpus, time
    before   the targets with their values as found (None: absent), their knob, kind and identity
    intent   a value is about to be written      done     it was, and this was read back
    refused  the kernel declined, and why        settled  all recorded targets' values once everything was written
    stay     what `quiet run` had applied for its command is to stay
    restore  a restore has begun; these targets somebody else had changed
    back     it has ended without having put back everything; these targets are as found
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from quiet import __version__, cpulist
from quiet.choose import Choice
from quiet.errors import Refused, UsageError
from quiet.host import Reader

FOLDER = "/run/quiet"
_FILE = f"{FOLDER}/journal.jsonl"
_LOCK = f"{FOLDER}/lock"
_POLL_S = 0.05


@dataclass(slots=True)
class Entry:
    """One recorded target: as found, and what we did to it."""

    knob: str
    target: str
    kind: str
    before: str | None
    identity: str | None
    passing: bool  # recorded only because another change touches it
    wanted: str | None = None  # what we last meant to write
    after: str | None = None  # what was there then
    finished: bool = False  # read back after the last write


@dataclass(slots=True)
class Record:
    """A journal as read: the applied profile and every recorded target in order."""

    profile: str
    source: str
    cpus: Choice
    boot_id: str
    time: float
    passing: bool  # applied by `quiet run` for one command, not to stay
    entries: dict[str, Entry] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    settled: dict[str, str | None] = field(default_factory=dict)
    complete: bool = False  # every write of the apply was tried
    restoring: bool = False
    conflicts: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)  # put back by a restore that could not put back all

    def rename(self, names: Mapping[str, str]) -> None:
        """Call targets by other names; where two become one, what was found first is what was found."""
        entries, settled = self.entries, self.settled
        self.entries, self.settled = {}, {}
        for old, entry in entries.items():
            entry.target = names.get(old, old)
            if self.entries.setdefault(entry.target, entry) is entry and old in settled:
                self.settled[entry.target] = settled[old]
        for known in (self.conflicts, self.foreign, self.back):
            renamed = {names.get(target, target) for target in known}
            known.clear()
            known.update(renamed)

    def accepted(self) -> dict[str, str]:
        """The values that the kernel made of our writes, by target, where they are not what was asked for."""
        found = ((e.target, e.after, e.wanted) for e in self.entries.values() if e.finished)
        return {target: after for target, after, wanted in found if after is not None and after != wanted}


def boot_id(reader: Reader) -> str:
    """The id of this boot, "" where the kernel has none."""
    return reader.text("/proc/sys/kernel/random/boot_id") or ""


def load(reader: Reader) -> Record | None:
    """The record of what is applied now; None when nothing is, or when the host has rebooted since."""
    text = reader.text(_FILE)
    if not text:
        return None
    import json

    record: Record | None = None
    for line in text.split("\n"):
        try:
            item = json.loads(line)
            if item["op"] == "begin":
                record = _begin(item)
            elif record is not None:
                _take(record, item)
        except (ValueError, KeyError, TypeError, AssertionError, UsageError):
            continue  # a line that a writer was killed in
    if record is None or (record.boot_id and record.boot_id != boot_id(reader)):
        return None
    return record


def _begin(item: Mapping[str, object]) -> Record:
    cpus = item["cpus"]
    assert isinstance(cpus, dict)
    isolated, housekeeping, offline = (cpulist.parse(cpus[name]) for name in ("isolated", "housekeeping", "offline"))
    choice = Choice(isolated, housekeeping, offline, f"as applied with profile {item['profile']}")
    return Record(
        profile=str(item["profile"]),
        source=str(item["source"]),
        cpus=choice,
        boot_id=str(item["boot_id"]),
        time=float(str(item["time"])),
        passing=bool(item["passing"]),
    )


def _take(record: Record, item: Mapping[str, Any]) -> None:
    op = item["op"]
    if op == "before":
        for fields in item["entries"]:
            entry = Entry(*fields)
            record.entries.setdefault(entry.target, entry)  # what was found first is what was found
        record.complete = False
    elif op == "settled":
        record.settled = dict(item["values"])
        record.complete = True
    elif op == "back":
        record.back = set(item["targets"])
    elif op == "stay":
        record.passing = False
    elif op == "restore":
        record.restoring = True
        record.conflicts = set(item["conflicts"])
        record.foreign = set(item["foreign"])
    else:
        target = str(item["target"])
        entry = record.entries[target]
        value = item.get("value")
        if op == "intent":
            entry.wanted, entry.finished = str(value), False
            record.complete = False
            record.refused.pop(target, None)
        elif op == "done":
            entry.after, entry.finished = (None if value is None else str(value)), True
        elif op == "refused":
            record.refused[target] = str(item["reason"])
            entry.wanted, entry.finished = None, False


class Journal:
    """The writing side; use it under `locked`."""

    def __init__(self, reader: Reader) -> None:
        self._path = reader.root + _FILE
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        end = os.fstat(self._fd).st_size
        if end and os.pread(self._fd, 1, end - 1) != b"\n":
            os.write(self._fd, b"\n")  # whoever was killed in the middle of a line

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def begin(self, reader: Reader, profile: str, source: str, cpus: Choice, passing: bool) -> None:
        """Start a journal. What an earlier boot left is thrown away."""
        import time

        os.ftruncate(self._fd, 0)
        sets = {
            "isolated": cpulist.format(cpus.isolated),
            "housekeeping": cpulist.format(cpus.housekeeping),
            "offline": cpulist.format(cpus.offline),
        }
        head = {"version": __version__, "boot_id": boot_id(reader), "time": time.time(), "passing": passing}
        self._add({"op": "begin", "profile": profile, "source": source, "cpus": sets, **head})

    def stay(self) -> None:
        """What was applied for one command is to stay after it."""
        self._add({"op": "stay"})

    def before(self, entries: Iterable[Entry]) -> None:
        """Record targets as found."""
        rows = [[e.knob, e.target, e.kind, e.before, e.identity, e.passing] for e in entries]
        if rows:
            self._add({"op": "before", "entries": rows})

    def intent(self, target: str, value: str) -> None:
        """Say what is about to be written."""
        self._add({"op": "intent", "target": target, "value": value})

    def done(self, target: str, value: str | None) -> None:
        """Say what was read back."""
        self._add({"op": "done", "target": target, "value": value})

    def refused(self, target: str, reason: str) -> None:
        """Say that the kernel declined."""
        self._add({"op": "refused", "target": target, "reason": reason})

    def settled(self, values: Mapping[str, str | None]) -> None:
        """Close an apply: all recorded targets as they are now."""
        self._add({"op": "settled", "values": values})

    def restore(self, conflicts: Iterable[str], foreign: Iterable[str]) -> None:
        """Open a restore, with the targets that somebody else had changed: what we had written, and what not."""
        self._add({"op": "restore", "conflicts": sorted(conflicts), "foreign": sorted(foreign)})

    def back(self, restored: Iterable[str]) -> None:
        """Close a restore that could not put back everything: these targets are as they were found."""
        self._add({"op": "back", "targets": sorted(restored)})

    def remove(self) -> None:
        """End: nothing is applied any more."""
        os.unlink(self._path)

    def _add(self, item: Mapping[str, object]) -> None:
        import json

        data = json.dumps(item, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)


@contextmanager
def locked(reader: Reader, patience: float = 0) -> Iterator[None]:
    """Hold the host's lock: one apply or restore at a time, waiting `patience` seconds for it.

    Raises Refused when it stays taken, or is not permitted.
    """
    import fcntl
    import time

    folder = reader.root + FOLDER
    try:
        os.makedirs(folder, 0o755, exist_ok=True)
        fd = os.open(reader.root + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise Refused(
            "changing the host needs root; run it with sudo (plan, status and verify do not need it)"
        ) from None
    except OSError as error:
        raise Refused(f"the journal's folder {folder} cannot be used: {error.strerror}; nothing was changed") from None
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if patience <= 0:
                    raise Refused(
                        "another quiet is changing this host right now; wait until it has ended, then try again"
                    ) from None
                time.sleep(_POLL_S)
                patience -= _POLL_S
            else:
                break
        yield
    finally:
        os.close(fd)
