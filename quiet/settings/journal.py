"""The journal: original and written values, on disk before anything changes.

Write-ahead JSON lines in /run/quiet, each fsync'd, readable by every user. /run ends with the state it describes; the
boot's id is inside for the hosts where it does not. Operations, in the order in which they may appear:

    begin    boot_id, version, profile, source, cpus, time
    before   targets with their original values (None: absent), their knob, kind and identity
    intent   a value is about to be written      done     it was written, and this was read back
    refused  the kernel declined, and why        settled  all recorded targets' values once everything was written
    stay     what `quiet run` applied for its command stays applied
    restore  a restore has begun; these targets were changed by another program
    back     it has ended, and some targets are not restored; these are
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quiet import __version__, cpulist
from quiet.cpulist import CpuSet
from quiet.host.lock import FOLDER
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts

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
    from quiet.settings import applied_state  # slow to load, and not needed when nothing is applied

    record = applied_state.read(text.split("\n"))
    if record is None or (record.boot_id and record.boot_id != boot_id(reader)):
        return None
    return record


def isolated_cpus(reader: Reader | None = None) -> CpuSet:
    """The isolated CPUs of the host: of the applied profile, else those isolated at boot, else none."""
    reader = reader or Reader()
    record = load(reader)
    return record.cpus.isolated if record else Facts(reader).boot_isolated


class Journal:
    """The writing side; use it under `locked`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._fd = reader.open(_FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        end = os.fstat(self._fd).st_size
        if end and os.pread(self._fd, 1, end - 1) != b"\n":
            os.write(self._fd, b"\n")  # a writer was killed in the middle of a line

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def begin(self, reader: Reader, profile: str, source: str, cpus: CpuPartition, passing: bool) -> None:
        """Start a journal. The journal of an earlier boot is discarded."""
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
        """What was applied for one command stays applied after it."""
        self._add({"op": "stay"})

    def before(self, entries: Iterable[TargetState]) -> None:
        """Record targets with their original values."""
        rows = [[e.knob, e.target, e.kind, e.before, e.identity, e.passing] for e in entries]
        if rows:
            self._add({"op": "before", "entries": rows})

    def intent(self, target: str, value: str) -> None:
        """Record what is about to be written."""
        self._add({"op": "intent", "target": target, "value": value})

    def done(self, target: str, value: str | None) -> None:
        """Record what was read back."""
        self._add({"op": "done", "target": target, "value": value})

    def refused(self, target: str, reason: str) -> None:
        """Record that the kernel declined."""
        self._add({"op": "refused", "target": target, "reason": reason})

    def settled(self, values: Mapping[str, str | None]) -> None:
        """Close an apply: all recorded targets as they are now."""
        self._add({"op": "settled", "values": values})

    def restore(self, conflicts: Iterable[str], foreign: Iterable[str]) -> None:
        """Open a restore, with the targets that another program changed: those that we wrote, and the others."""
        self._add({"op": "restore", "conflicts": sorted(conflicts), "foreign": sorted(foreign)})

    def back(self, restored: Iterable[str]) -> None:
        """Close an incomplete restore: these targets have their original values."""
        self._add({"op": "back", "targets": sorted(restored)})

    def remove(self) -> None:
        """End: nothing is applied."""
        with self._reader.place(_FILE, follow=False) as place:
            os.unlink(place)

    def _add(self, item: Mapping[str, object]) -> None:
        import json

        data = json.dumps(item, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)
