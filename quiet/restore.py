"""Restore: a plan whose wanted values are the journal's "before", through the same engine.

It may be killed and run again.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass

from quiet import engine, journal, targets, values
from quiet.engine import Failure, Write
from quiet.facts import Facts
from quiet.host import Host, Reader
from quiet.journal import Entry, Journal, Record
from quiet.knobs import BY_NAME, KNOBS
from quiet.plan import Skipped


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a restore did. Nothing is left changed by us when `conflicts` and `failures` are both empty."""

    profile: str | None  # None: nothing was applied
    restored: int
    gone: tuple[str, ...]  # tasks that ended, interrupts that now belong to another device
    conflicts: tuple[Skipped, ...]
    failures: tuple[Skipped, ...]

    @property
    def complete(self) -> bool:
        """Whether everything is as it was found."""
        return not (self.conflicts or self.failures)


def restore(host: Host, force: bool = False, keep: bool = False, patience: float = 0) -> Outcome:
    """Put everything back. `force` also what somebody else has changed since; `keep` accepts their values instead.

    Waits `patience` seconds for another quiet to end; raises Refused after that.
    """
    if journal.load(host) is None:
        return Outcome(None, 0, (), (), ())  # without asking for root
    with journal.locked(host, patience):
        record = journal.load(host)
        if record is None:
            return Outcome(None, 0, (), (), ())
        log = Journal(host)
        try:
            return _restore(host, record, log, force, keep)
        finally:
            log.close()


def _restore(host: Host, record: Record, log: Journal, force: bool, keep: bool) -> Outcome:
    gone = {e.target for e in record.entries.values() if _is_gone(host, e)}
    conflicts, foreign = _others(host, record)
    if record.restoring:  # what this restore's own writes have moved is nobody else's change
        conflicts, foreign = conflicts & record.conflicts, record.foreign
    conflicts -= gone
    if not record.restoring:
        log.restore(conflicts, foreign)
    leave = gone | (set() if force else conflicts | foreign)
    todo = [entry for entry in _in_order(record.entries.values()) if entry.target not in leave]
    differing = [e for e in todo if not values.same(e.kind, targets.get(host, e.target), e.before)]
    failures: list[Failure] = []
    for last in (False, True):
        writes = [_write(entry) for entry in todo if BY_NAME[entry.knob].restore_last is last]
        failures += engine.settle(host, writes, lambda write: None, lambda write, found: None)
        if not last:
            _widen_children(host, record)
    left = [f for f in failures if not _went_away(record.entries[f.write.target], f)]
    gone |= {f.write.target for f in failures if f not in left}
    outcome = Outcome(
        record.profile,
        sum(values.same(e.kind, targets.get(host, e.target), e.before) for e in differing),
        tuple(sorted(gone)),
        () if force or keep else tuple(_conflict(host, record.entries[target]) for target in sorted(conflicts)),
        tuple(Skipped(record.entries[f.write.target].knob, f.write.target, _failure(f)) for f in left),
    )
    if outcome.complete:
        log.remove()
    return outcome


def _went_away(entry: Entry, failure: Failure) -> bool:
    """Whether there is nothing to put back: the device has gone, or the kernel manages the interrupt by itself."""
    if failure.errno == errno.ENOENT:
        return entry.target.startswith(("file:", "irq:", "workqueue:"))
    return entry.passing and entry.target.startswith("irq:") and failure.errno in (errno.EPERM, errno.EIO)


def _failure(failure: Failure) -> str:
    return f"'{failure.write.wanted}' could not be written back: {failure.text}"


def _conflict(host: Reader, entry: Entry) -> Skipped:
    found = targets.get(host, entry.target)
    was = values.plain(entry.kind, entry.before) if entry.before is not None else "absent"
    return Skipped(
        entry.knob, entry.target, f"somebody else made it '{found}' (found '{was}', applied '{entry.wanted}')"
    )


def _write(entry: Entry) -> Write:
    wanted = entry.before if entry.before is None else values.plain(entry.kind, entry.before)
    return Write(entry.target, wanted, entry.kind)


def _in_order(entries: Iterable[Entry]) -> list[Entry]:
    """By knob as in the tuple; within a knob backwards, so that what was made last goes first."""
    rank = {knob.name: number for number, knob in enumerate(KNOBS)}
    backwards = list(entries)[::-1]
    return sorted(backwards, key=lambda entry: rank[entry.knob])


def _is_gone(host: Reader, entry: Entry) -> bool:
    if entry.identity is None:
        return False
    return targets.identity(host, entry.target) != entry.identity


def _others(host: Reader, record: Record) -> tuple[set[str], set[str]]:
    """The targets that somebody else has changed since: (those that we had written, those that we never wrote)."""
    found = {e.target: targets.get(host, e.target) for e in record.entries.values()}
    conflicts = {e.target for e in record.entries.values() if _is_conflict(record, e, found[e.target])}
    foreign = {
        e.target
        for e in record.entries.values()
        if e.wanted is None and record.complete and not values.same(e.kind, found[e.target], record.settled[e.target])
    }
    return conflicts, foreign


def _is_conflict(record: Record, entry: Entry, found: str | None) -> bool:
    if entry.wanted is None or not entry.finished or not record.complete or BY_NAME[entry.knob].drifts:
        return False  # never written by us, cut short, or perhaps moved by a later write of an apply that was
    if found is None and entry.before is not None:
        return False  # gone with its device
    ours = (entry.before, entry.wanted, entry.after, record.settled[entry.target])
    return not any(values.same(entry.kind, found, value) for value in ours)


def _widen_children(host: Host, record: Record) -> None:
    """Tasks born while the profile was applied inherited a narrowed mask: they get what their ancestor gets back."""
    narrowed = {
        int(e.target[5:]): e for e in record.entries.values() if e.target.startswith("task:") and e.wanted is not None
    }
    if not narrowed:
        return
    for task in Facts(host).tasks:
        if task.bound or f"task:{task.tid}" in record.entries:
            continue
        ancestor = _ancestor(host, task.tid, narrowed)
        if ancestor is None or ancestor.before is None or not values.same(values.CPULIST, task.cpus, ancestor.wanted):
            continue
        try:
            targets.put(host, f"task:{task.tid}", ancestor.before)
        except OSError:
            continue  # ended meanwhile, or bound


def _ancestor(reader: Reader, tid: int, known: dict[int, Entry]) -> Entry | None:
    """The nearest recorded ancestor of a thread: its process first, then the parents."""
    group = targets.status_field(reader, f"/proc/{tid}/status", "Tgid")
    pid = int(group) if group else 0
    for _ in range(64):
        if pid in known:
            return known[pid]
        parent = targets.status_field(reader, f"/proc/{pid}/status", "PPid")
        if not parent or parent == "0":
            return None
        pid = int(parent)
    return None
