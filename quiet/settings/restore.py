"""Restore: a plan whose wanted values are the journal's "before", through the same engine.

It may be killed and run again.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quiet import cpulist
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.host.proc import status_field
from quiet.host.reader import Reader
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.facts import Facts
from quiet.settings import engine, journal
from quiet.settings.applied_state import AppliedState, TargetState
from quiet.settings.engine import Failure, Write
from quiet.settings.journal import Journal
from quiet.settings.plan import Skipped
from quiet.targets import registry, value_types


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a restore did. Every setting is restored when `conflicts` and `failures` are both empty."""

    profile: str | None  # None: nothing was applied
    restored: int
    gone: tuple[str, ...]  # tasks that ended, interrupts that now belong to another device
    conflicts: tuple[Skipped, ...]
    failures: tuple[Skipped, ...]

    @property
    def complete(self) -> bool:
        """Whether every setting has its original value."""
        return not (self.conflicts or self.failures)


def restore(host: Host, force: bool = False, keep: bool = False, patience: float = 0) -> Outcome:
    """Restore every value. `force`: also those that another program changed since; `keep`: accept those instead.

    Waits `patience` seconds for another quiet to end; raises Refused after that.
    """
    if journal.load(host) is None:
        return Outcome(None, 0, (), (), ())  # without asking for root
    with locked(host, patience):
        record = journal.load(host)
        if record is None:
            return Outcome(None, 0, (), (), ())
        log = Journal(host)
        try:
            return _restore(host, record, log, force, keep)
        finally:
            log.close()


def _restore(host: Host, record: AppliedState, log: Journal, force: bool, keep: bool) -> Outcome:
    renamed = {e.target: registry.current_name(host, e.target, e.identity) for e in record.entries.values()}
    if any(old != new for old, new in renamed.items()):
        record.rename(renamed)
    entries = record.entries
    found = {target: registry.get(host, target) for target in entries}
    gone = {e.target for e in entries.values() if _is_gone(host, e)}
    conflicts, foreign = _others(record, found)
    if record.restoring:  # changed by this restore's own writes, not by another program
        conflicts, foreign = conflicts & record.conflicts, record.foreign
    # restored by an earlier restore and changed by another program since: not ours
    theirs = {
        t
        for t in record.restored & entries.keys()
        if not value_types.same(entries[t].kind, found[t], entries[t].before)
    }
    # an interrupt that its driver has requested again has the default affinity, which no program has set
    gone |= {t for t in conflicts | foreign if registry.identity(host, t) != entries[t].identity}
    conflicts, foreign = conflicts - gone, foreign - gone
    if not record.restoring:
        log.restore(conflicts, foreign)
    leave = gone | theirs | (set() if force else conflicts | foreign)
    masks = _others_masks(host, record, leave - gone)
    todo = [entry for entry in _in_order(entries.values()) if entry.target not in leave]
    differing = {e.target for e in todo if not value_types.same(e.kind, found[e.target], e.before)}
    failures: list[Failure] = []
    for last in (False, True):
        writes = [_write(entry) for entry in todo if BY_NAME[entry.knob].restore_last is last]
        failures += engine.settle(host, writes, lambda write: None, lambda write, value: None)
        if not last:
            _widen_children(host, record)
            _give_back(host, masks)
    left = [f for f in failures if not _went_away(entries[f.write.target], f)]
    gone |= {f.write.target for f in failures if f not in left}
    back = [e for e in todo if value_types.same(e.kind, registry.get(host, e.target), e.before)]
    outcome = Outcome(
        record.profile,
        sum(entry.target in differing for entry in back),
        tuple(sorted(gone)),
        () if force or keep else tuple(_conflict(entries[t], found[t]) for t in sorted(conflicts)),
        () if keep else tuple(Skipped(entries[f.write.target].knob, f.write.target, _failure(f)) for f in left),
    )
    if outcome.complete:
        log.remove()
    else:
        log.back(entry.target for entry in back)
    return outcome


def _others_masks(host: Host, record: AppliedState, leave: set[str]) -> dict[str, str]:
    """The affinities that are not ours to touch, and that taking the partition down overwrites before Linux 6.2.

    A mask of exactly the housekeeping CPUs is what every task has inherited; it is to become wide again.
    """
    facts = Facts(host)
    inherited = facts.online - record.cpus.away
    masks = {}
    for task in facts.tasks:
        target = f"task:{task.tid}"
        allowed = cpulist.parse(task.cpus) & facts.online
        own = target not in record.entries and allowed != inherited and not allowed & record.cpus.away
        if not task.bound and (own or target in leave):
            masks[target] = task.cpus
    return masks


def _give_back(host: Host, masks: dict[str, str]) -> None:
    for target, mask in masks.items():
        now = registry.get(host, target)
        if now is not None and not value_types.same(value_types.CPULIST, now, mask):
            with contextlib.suppress(OSError):  # it ended just now
                registry.put(host, target, mask)


def _went_away(entry: TargetState, failure: Failure) -> bool:
    """Whether nothing is left to restore: the device is gone, or the kernel manages the interrupt by itself."""
    if failure.errno == errno.ENOENT:
        return entry.target.startswith(("file:", "irq:", "workqueue:"))
    return entry.passing and entry.target.startswith("irq:") and failure.errno in (errno.EPERM, errno.EIO)


def _failure(failure: Failure) -> str:
    if failure.write.wanted is None:
        return f"it could not be removed: {failure.text} (does another cgroup or task use it?)"
    return f"'{failure.write.wanted}' could not be written back: {failure.text}"


def _conflict(entry: TargetState, found: str | None) -> Skipped:
    was = value_types.plain(entry.kind, entry.before) if entry.before is not None else "absent"
    return Skipped(
        entry.knob, entry.target, f"somebody else made it '{found}' (found '{was}', applied '{entry.wanted}')"
    )


def _write(entry: TargetState) -> Write:
    wanted = entry.before if entry.before is None else value_types.plain(entry.kind, entry.before)
    return Write(entry.target, wanted, entry.kind)


def _in_order(entries: Iterable[TargetState]) -> list[TargetState]:
    """By knob as in the tuple; within a knob backwards, so that what was made last goes first."""
    rank = {knob.name: number for number, knob in enumerate(KNOBS)}
    backwards = list(entries)[::-1]
    return sorted(backwards, key=lambda entry: rank[entry.knob])


def _is_gone(host: Reader, entry: TargetState) -> bool:
    if entry.identity is None:
        return False
    return not registry.same_thing(registry.identity(host, entry.target), entry.identity)


def _others(record: AppliedState, found: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
    """The targets that another program has changed since: (those that we wrote, those that we never wrote)."""
    conflicts = {e.target for e in record.entries.values() if _is_conflict(record, e, found[e.target])}
    foreign = {
        e.target
        for e in record.entries.values()
        if e.wanted is None
        and record.complete
        and not value_types.same(e.kind, found[e.target], record.settled[e.target])
    }
    return conflicts, foreign


def _is_conflict(record: AppliedState, entry: TargetState, found: str | None) -> bool:
    if entry.wanted is None or not entry.finished or not record.complete or BY_NAME[entry.knob].drifts:
        return False  # never written by us, cut short, or perhaps moved by a later write of an apply that was
    if found is None and entry.before is not None:
        return False  # gone with its device
    ours = (entry.before, entry.wanted, entry.after, record.settled[entry.target])
    return not any(value_types.same(entry.kind, found, value) for value in ours)


def _widen_children(host: Host, record: AppliedState) -> None:
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
        if (
            ancestor is None
            or ancestor.before is None
            or not value_types.same(value_types.CPULIST, task.cpus, ancestor.wanted)
        ):
            continue
        try:
            registry.put(host, f"task:{task.tid}", ancestor.before)
        except OSError:
            continue  # it has ended, or is bound


def _ancestor(reader: Reader, tid: int, known: dict[int, TargetState]) -> TargetState | None:
    """The nearest recorded ancestor of a thread: its process first, then the parents."""
    group = status_field(reader.text(f"/proc/{tid}/status"), "Tgid")
    pid = int(group) if group else 0
    for _ in range(64):
        if pid in known:
            return known[pid]
        parent = status_field(reader.text(f"/proc/{pid}/status"), "PPid")
        if not parent or parent == "0":
            return None
        pid = int(parent)
    return None
