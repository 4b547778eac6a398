"""The applied state: the lines of a journal, replayed in order."""

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
    """One recorded target: its original value, and what was written to it."""

    knob: str
    target: str
    kind: str
    before: str | None
    identity: str | None
    passing: bool  # recorded only because another change touches it
    wanted: str | None = None  # the last value to be written
    after: str | None = None  # the value read back after that write
    finished: bool = False  # read back after the last write


@dataclass(slots=True)
class AppliedState:
    """A journal as read: the applied profile and every recorded target in order."""

    profile: str
    source: str
    cpus: CpuPartition
    boot_id: str
    time: float
    passing: bool  # applied for one command
    entries: dict[str, TargetState] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    settled: dict[str, str | None] = field(default_factory=dict)
    complete: bool = False  # every write of the apply was tried
    restoring: bool = False
    conflicts: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    restored: set[str] = field(default_factory=set)  # by an incomplete restore

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename targets; where two become one, the value that was recorded first is the original one."""
        entries, settled = self.entries, self.settled
        self.entries, self.settled = {}, {}
        for old, entry in entries.items():
            entry.target = names.get(old, old)
            if self.entries.setdefault(entry.target, entry) is entry and old in settled:
                self.settled[entry.target] = settled[old]
        for known in (self.conflicts, self.foreign, self.restored):
            renamed = {names.get(target, target) for target in known}
            known.clear()
            known.update(renamed)

    def accepted(self) -> dict[str, str]:
        """The values that the kernel made of our writes, by target, where they differ from the requested ones."""
        finished = ((e.target, e.after, e.wanted) for e in self.entries.values() if e.finished)
        return {target: after for target, after, wanted in finished if after is not None and after != wanted}


def read(lines: Iterable[str]) -> AppliedState | None:
    """The state that the lines describe; None without a `begin` among them."""
    record: AppliedState | None = None
    for line in lines:
        try:
            item = json.loads(line)
            if item["op"] == "begin":
                record = _begin(item)
            elif record is not None:
                _replay(record, item)
        except (ValueError, KeyError, TypeError, AssertionError, UsageError):
            continue  # a line that a writer was killed in
    return record


def _begin(item: Mapping[str, object]) -> AppliedState:
    cpus = item["cpus"]
    assert isinstance(cpus, dict)
    isolated, housekeeping, offline = (cpulist.parse(cpus[name]) for name in ("isolated", "housekeeping", "offline"))
    partition = CpuPartition(isolated, housekeeping, offline, f"as applied with profile {item['profile']}")
    return AppliedState(
        profile=str(item["profile"]),
        source=str(item["source"]),
        cpus=partition,
        boot_id=str(item["boot_id"]),
        time=float(str(item["time"])),
        passing=bool(item["passing"]),
    )


def _replay(record: AppliedState, item: Mapping[str, Any]) -> None:
    op = item["op"]
    if op == "before":
        for fields in item["entries"]:
            entry = TargetState(*fields)
            record.entries.setdefault(entry.target, entry)  # recorded first: the original value
        record.complete = False
    elif op == "settled":
        record.settled = dict(item["values"])
        record.complete = True
    elif op == "back":
        record.restored = set(item["targets"])
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
