"""Reconstruct the applied state from the lines of a journal, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from quiet import __version__, cpulist
from quiet.errors import UsageError
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings import journal_lines
from quiet.settings.journal_lines import Damage, Item
from quiet.targets import registry

_LATEST = 1e11  # latest time, in seconds since the epoch, that can be shown as a date
_WRONG = (ValueError, KeyError, TypeError, AttributeError, OverflowError, UsageError)


@dataclass(slots=True)
class TargetState:
    """One recorded target: its original value, and the value written to it."""

    knob: str
    target: str
    kind: str
    before: str | None
    identity: str | None
    passing: bool  # recorded only because another change affects it
    wanted: str | None = None  # the last value written, or about to be written
    after: str | None = None  # the value read back after that write
    finished: bool = False  # the value was read back after the last write


@dataclass(slots=True)
class AppliedState:
    """The state that a journal describes: the applied profile, and every recorded target in order."""

    profile: str
    source: str
    cpus: CpuPartition
    boot_id: str
    time: float  # of the apply, in seconds since the epoch
    passing: bool  # applied for one command
    entries: dict[str, TargetState] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why the kernel rejected a value, by target
    settled: dict[str, str | None] = field(default_factory=dict)  # the values after all writes, by target
    complete: bool = False  # every write of the apply was attempted
    restoring: bool = False  # a restore has begun
    conflicts: set[str] = field(default_factory=set)  # written targets changed by another program before the restore
    foreign: set[str] = field(default_factory=set)  # other recorded targets changed before the restore
    restored: set[str] = field(default_factory=set)  # targets restored by an incomplete restore
    sealed: bool = True  # the lines have checksums
    damage: list[Damage] = field(default_factory=list)
    lost: dict[str, None] = field(default_factory=dict)  # targets whose original values were in damaged lines

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename targets; if two targets get the same name, the original value is the one that was recorded first."""
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
        """The values that the kernel substituted for our writes, by target, if they differ from the requested ones."""
        finished = ((e.target, e.after, e.wanted) for e in self.entries.values() if e.finished)
        return {target: after for target, after, wanted in finished if after is not None and after != wanted}


def unknown(reason: str) -> AppliedState:
    """The state of a journal that cannot be read; `reason` becomes its damage ("": an empty state without damage)."""
    nothing = CpuPartition(frozenset(), frozenset(), frozenset(), "unknown: the journal is damaged")
    return AppliedState("unknown", "", nothing, "", 0.0, True, damage=[Damage(0, reason)] if reason else [])


def read(data: bytes) -> AppliedState:
    """The state that a journal describes; `damage` names each line that was altered or cannot be parsed.

    A damaged journal counts as incomplete, because it cannot show which settings another program has changed.
    """
    lines = journal_lines.read(data)
    state, damage = unknown(""), list(lines.damage)
    if lines.items and lines.items[0][0] == 1 and lines.items[0][1]["op"] != "begin":
        damage.append(Damage(1, "the journal does not begin with `begin`"))
    for number, item in lines.items:
        try:
            if item["op"] != "begin":
                damage += [Damage(number, reason) for reason in _replay(state, item)]
            elif number == 1:
                state = _begin(item)
                damage += [Damage(1, reason) for reason in _other_format(item)]
            else:
                raise ValueError("another journal begins here")
        except _WRONG as error:
            damage.append(Damage(number, f"not understood: {error}"))
    if damage or state.lost:
        state.damage, state.complete = (
            journal_lines.merged(damage) or [Damage(0, "some of its lines are missing")],
            False,
        )
    return state


def _begin(item: Item) -> AppliedState:
    cpus = item["cpus"]
    isolated, housekeeping, offline = (cpulist.parse(cpus[name]) for name in ("isolated", "housekeeping", "offline"))
    partition = CpuPartition(isolated, housekeeping, offline, f"as applied with profile {item['profile']}")
    time = float(str(item["time"]))
    if not 0 <= time < _LATEST:
        raise ValueError(f"time {time}")
    return AppliedState(
        profile=str(item["profile"]),
        source=str(item["source"]),
        cpus=partition,
        boot_id=str(item["boot_id"]),
        time=time,
        passing=bool(item["passing"]),
        sealed="crc" in item,
    )


def _other_format(item: Item) -> Iterator[str]:
    """Yield the fault if another version of quiet has written the journal in an unknown format."""
    number = item.get("format", 1)
    if number != (journal_lines.FORMAT if "crc" in item else 1):
        yield f"written in format {number} by quiet {item.get('version')}; quiet {__version__} cannot read this format"


def _replay(record: AppliedState, item: Item) -> Iterator[str]:
    """Apply a line to the record, and yield the faults of the line."""
    op = item["op"]
    if op == "before":
        for fields in item["entries"]:
            try:
                entry = _target_state(fields)
            except _WRONG as error:
                yield f"{error}: not restored"
            else:
                record.entries.setdefault(entry.target, entry)  # the first recorded value is the original one
        record.complete = False
    elif op == "settled":
        record.settled = {str(target): None if v is None else str(v) for target, v in item["values"].items()}
        record.complete = record.entries.keys() <= record.settled.keys()
        record.lost |= dict.fromkeys(record.settled.keys() - record.entries.keys())
        if not record.complete:
            yield "the line lacks recorded targets"
    elif op == "back":
        record.restored = set(map(str, item["targets"]))
    elif op == "stay":
        record.passing = False
    elif op == "restore":
        record.restoring = True
        record.conflicts = set(map(str, item["conflicts"]))
        record.foreign = set(map(str, item["foreign"]))
    elif op in ("intent", "done", "refused"):
        _write(record, op, str(item["target"]), item)
    else:
        yield f"unknown operation '{op}'"


def _write(record: AppliedState, op: str, target: str, item: Item) -> None:
    entry = record.entries.get(target)
    if entry is None:
        record.lost[target] = None
        return
    if op == "intent":
        entry.wanted, entry.finished = str(item["value"]), False
        record.complete = False
        record.refused.pop(target, None)
    elif op == "done":
        value = item["value"]
        entry.after, entry.finished = (None if value is None else str(value)), True
    else:
        record.refused[target] = str(item["reason"])
        entry.wanted, entry.finished = None, False


def _target_state(fields: object) -> TargetState:
    """Parse a recorded target. Raises ValueError if it is malformed."""
    match fields:
        case [str(knob), str(target), str(kind), str() | None as before, str() | None as identity, bool(passing)]:
            registry.split(target)
            return TargetState(knob, target, kind, before, identity, passing)
    raise ValueError(f"unknown entry {str(fields)[:80]}")
