"""What is applied: what the lines of a journal say, read in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quiet import cpulist
from quiet.errors import UsageError
from quiet.machine.cpu_selection import CpuPartition


@dataclass(slots=True)
class TargetState:
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
class AppliedState:
    """A journal as read: the applied profile and every recorded target in order."""

    profile: str
    source: str
    cpus: CpuPartition
    boot_id: str
    time: float
    passing: bool  # applied by `quiet run` for one command, not to stay
    entries: dict[str, TargetState] = field(default_factory=dict)
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


def read(lines: Iterable[str]) -> AppliedState | None:
    """The record that the lines make; None when there is no beginning among them."""
    record: AppliedState | None = None
    for line in lines:
        try:
            item = json.loads(line)
            if item["op"] == "begin":
                record = _begin(item)
            elif record is not None:
                _take(record, item)
        except (ValueError, KeyError, TypeError, AssertionError, UsageError):
            continue  # a line that a writer was killed in
    return record


def _begin(item: Mapping[str, object]) -> AppliedState:
    cpus = item["cpus"]
    assert isinstance(cpus, dict)
    isolated, housekeeping, offline = (cpulist.parse(cpus[name]) for name in ("isolated", "housekeeping", "offline"))
    choice = CpuPartition(isolated, housekeeping, offline, f"as applied with profile {item['profile']}")
    return AppliedState(
        profile=str(item["profile"]),
        source=str(item["source"]),
        cpus=choice,
        boot_id=str(item["boot_id"]),
        time=float(str(item["time"])),
        passing=bool(item["passing"]),
    )


def _take(record: AppliedState, item: Mapping[str, Any]) -> None:
    op = item["op"]
    if op == "before":
        for fields in item["entries"]:
            entry = TargetState(*fields)
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
