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
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quiet import __version__, cpulist
from quiet.host.lock import FOLDER
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition

if TYPE_CHECKING:
    from quiet.settings.applied_state import AppliedState, TargetState

_FILE = f"{FOLDER}/journal.jsonl"


def boot_id(reader: Reader) -> str:
    """The id of this boot, "" where the kernel has none."""
    return reader.text("/proc/sys/kernel/random/boot_id") or ""


def load(reader: Reader) -> AppliedState | None:
    """The record of what is applied now; None when nothing is, or when the host has rebooted since."""
    text = reader.text(_FILE)
    if not text:
        return None
    from quiet.settings import applied_state  # where nothing is applied, none of it is needed

    record = applied_state.read(text.split("\n"))
    if record is None or (record.boot_id and record.boot_id != boot_id(reader)):
        return None
    return record


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

    def begin(self, reader: Reader, profile: str, source: str, cpus: CpuPartition, passing: bool) -> None:
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

    def before(self, entries: Iterable[TargetState]) -> None:
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
