"""Restore the host: write the original values that the journal recorded, with the engine that apply uses.

A restore that was killed can be run again.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from quiet import cpulist
from quiet.console import table_html
from quiet.errors import QuietError
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.host.proc import status_field
from quiet.host.reader import Reader
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.facts import Facts
from quiet.settings import engine, journal, journal_file
from quiet.settings.applied_state import AppliedState, TargetState
from quiet.settings.engine import Failure, Write
from quiet.settings.journal_file import FILE
from quiet.settings.journal_writer import Journal
from quiet.settings.plan import Skipped
from quiet.targets import registry, value_types


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a restore. It is complete if `conflicts`, `failures` and `damage` are all empty."""

    profile: str | None  # None: nothing was applied
    restored: int
    gone: tuple[str, ...]  # tasks that ended or changed their own CPUs, interrupts that now belong to another device
    conflicts: tuple[Skipped, ...]
    failures: tuple[Skipped, ...]
    damage: tuple[Skipped, ...] = ()  # damage of the journal: the values recorded there may not be restored
    damaged: bool = False  # whether the journal is damaged, even if `keep` accepted it
    copy: str = ""  # path of the copy of a damaged journal
    log_error: str = ""  # why the restore could not be logged
    accepted: tuple[Skipped, ...] = ()  # settings that are not restored, because `keep` accepted them

    def _repr_html_(self) -> str:
        rows = ((each.knob, each.target, each.reason) for each in self.left)
        return table_html(f"restored {self.restored} settings; not restored:", ("knob", "target", "why"), rows)

    @property
    def left(self) -> tuple[Skipped, ...]:
        """The settings that are not restored, or possibly not."""
        return self.conflicts + self.failures + self.damage

    @property
    def complete(self) -> bool:
        """Whether no setting is left to restore; settings that `keep` accepted do not count."""
        return not self.left


def restore(host: Host, force: bool = False, keep: bool = False, patience: float = 0) -> Outcome:
    """Restore every value.

    `force`: also restore values that another program changed after the apply; `keep`: accept such values, and values
    that cannot be restored. With a damaged journal, all readable values are restored; the journal is kept, with a copy
    next to it, until `keep` removes it. Waits up to `patience` seconds for another quiet process to end. Raises Refused
    if it does not end, or if this process may not change the host.
    """
    if journal.read(host) is None:
        return Outcome(None, 0, (), (), ())  # does not require root
    with locked(host, patience):
        record = journal.read(host)
        if record is None:
            return Outcome(None, 0, (), (), ())
        if record.damage or not (record.sealed or all(_is_usable(host, target) for target in record.entries)):
            return _restore_damaged(host, record, force, keep)
        log = Journal(host, lenient=True)
        try:
            outcome = _restore(host, record, log, force, keep)
            return _ended(log.remove, outcome) if outcome.complete else outcome
        finally:
            log.close()


def _restore_damaged(host: Host, record: AppliedState, force: bool, keep: bool) -> Outcome:
    """Restore all readable values. Nothing is logged, so that the journal remains unchanged as evidence."""
    damage = [Skipped("journal", f"file:{FILE}", str(each)) for each in record.damage]
    damage += [Skipped("journal", target, "its original value is in a damaged line") for target in record.lost]
    # a target that is no longer readable cannot be restored
    unusable = {target for target in record.entries if not _is_usable(host, target)}
    damage += [
        Skipped(record.entries.pop(target).knob, target, "not a target of this version of quiet")
        for target in sorted(unusable)
    ]
    unexplained = list(_unexplained(host, record))
    copy = journal_file.preserve(host)
    outcome = replace(_restore(host, record, None, force, keep), damaged=True, copy=copy)
    if keep:
        return _ended(lambda: journal_file.discard(host, copy), outcome)
    damage += [
        Skipped(
            entry.knob,
            entry.target,
            f"it was '{found}', which the journal does not explain; '{entry.before}' was "
            + ("written back" if _has_original(host, entry) else "not written back"),
        )
        for entry, found in unexplained
    ]
    return replace(outcome, damage=tuple(damage))


def _is_usable(host: Host, target: str) -> bool:
    try:
        registry.get(host, target)
        registry.identity(host, target)
    except (ValueError, OSError, QuietError):
        return False
    return True


def _has_original(host: Host, entry: TargetState) -> bool:
    return value_types.same(entry.kind, registry.get(host, entry.target), entry.before)


def _unexplained(host: Host, record: AppliedState) -> Iterator[tuple[TargetState, str]]:
    """Yield the targets whose value the journal does not explain, with this value.

    Such a value is not the original one, and the readable part of the journal does not record that quiet wrote it.
    """
    for entry in record.entries.values():
        found = registry.get(host, entry.target)
        ours = (entry.before, entry.wanted, entry.after, record.settled.get(entry.target))
        alike = any(value_types.same(entry.kind, found, value) for value in ours)
        if not (alike or found is None or entry.passing or drifts(entry) or _is_gone(host, entry)):
            yield entry, found


def _ended(remove: Callable[[], str | None], outcome: Outcome) -> Outcome:
    """Remove the journal and return the outcome; `remove` returns the path of the copy of a damaged journal."""
    try:
        outcome = replace(outcome, copy=remove() or "")
    except OSError as error:
        reason = (
            f"the journal could not be removed: {error.strerror}; the settings are restored; correct this, then run "
            "`quiet restore` again"
        )
        return replace(outcome, failures=(Skipped("journal", f"file:{FILE}", reason),))
    return outcome


def _restore(host: Host, record: AppliedState, log: Journal | None, force: bool, keep: bool) -> Outcome:
    renamed = {e.target: registry.current_name(host, e.target, e.identity) for e in record.entries.values()}
    if any(old != new for old, new in renamed.items()):
        record.rename(renamed)
    entries = record.entries
    found = {target: registry.get(host, target) for target in entries}
    gone = {e.target for e in entries.values() if _is_gone(host, e)}
    conflicts, foreign = _others(record, found)
    if record.restoring:  # other differences come from the interrupted restore
        conflicts, foreign = conflicts & record.conflicts, record.foreign
    elif log is not None:
        log.restore(conflicts, foreign)
    # targets that an earlier restore has restored and that another program has changed since then
    theirs = {
        t
        for t in record.restored & entries.keys()
        if not value_types.same(entries[t].kind, found[t], entries[t].before)
    }
    # an interrupt that its driver requested again has the default affinity, which no program has set
    gone |= {t for t in conflicts | foreign if registry.identity(host, t) != entries[t].identity}
    # a process's own settings are not the host's: they stay, or any user could block a restore
    chosen = set() if force else {t for t in conflicts if registry.is_of_process(t)}
    gone |= chosen
    conflicts, foreign = conflicts - gone, foreign - gone
    leave = gone | theirs | (set() if force else conflicts | foreign)
    masks = _others_masks(host, record, leave - gone | chosen)
    todo = [entry for entry in _in_order(entries.values()) if entry.target not in leave]
    differing = {e.target for e in todo if not value_types.same(e.kind, found[e.target], e.before)}
    failures: list[Failure] = []
    for last in (False, True):
        writes = [_write(entry) for entry in todo if _is_restored_last(entry) is last]
        failures += engine.settle(host, writes, lambda write: None, lambda write, value: None)
        if not last:
            _widen_children(host, record)
            _give_back(host, masks)
    left = [f for f in failures if not _went_away(entries[f.write.target], f)]
    gone |= {f.write.target for f in failures if f not in left}
    back = [entry for entry in todo if _has_original(host, entry)]
    theirs_now = (
        ()
        if force
        else tuple(_conflict(entries[t], found[t]) for t in sorted(conflicts) if not _is_over(host, entries[t]))
    )
    rejected = tuple(Skipped(entries[f.write.target].knob, f.write.target, _failure(f)) for f in left)
    outcome = Outcome(
        record.profile,
        sum(entry.target in differing for entry in back),
        tuple(sorted(gone)),
        () if keep else theirs_now,
        () if keep else rejected,
        accepted=theirs_now + rejected if keep else (),
    )
    if log is not None and not outcome.complete:
        log.back(entry.target for entry in back)
    return replace(outcome, log_error=log.failure if log is not None else "")


# The kernel chooses the CPUs of a kernel thread that was created after the apply. Since this release, it chooses them
# again when the partition is removed (kthreads_update_housekeeping).
KERNEL_CHOOSES = (7, 0)


def _others_masks(host: Host, record: AppliedState, leave: set[str]) -> dict[str, str]:
    """The affinities of tasks that quiet did not change; before Linux 6.2, removing the partition overwrites them.

    A mask that equals the housekeeping CPUs was inherited, so it must become wide again.
    """
    facts = Facts(host)
    inherited = facts.online - record.cpus.away
    masks = {}
    for task in facts.tasks:
        target = f"task:{task.tid}"
        allowed = cpulist.parse(task.cpus) & facts.online
        unknown = target not in record.entries and not (task.kernel and facts.release >= KERNEL_CHOOSES)
        own = unknown and allowed != inherited and not allowed & record.cpus.away
        if not task.bound and (own or target in leave):
            masks[target] = task.cpus
    return masks


def _give_back(host: Host, masks: dict[str, str]) -> None:
    for target, mask in masks.items():
        now = registry.get(host, target)
        if now is not None and not value_types.same(value_types.CPULIST, now, mask):
            with contextlib.suppress(OSError):  # the task has just ended
                registry.put(host, target, mask)


def _is_over(host: Host, entry: TargetState) -> bool:
    """Whether a conflict has disappeared, for example because the restore has removed the target's directory."""
    now = registry.get(host, entry.target)
    return value_types.same(entry.kind, now, entry.before) or (now is None and registry.ends(entry.target))


def _went_away(entry: TargetState, failure: Failure) -> bool:
    """Whether nothing is left to restore: the device is gone, the kernel manages the interrupt itself, or a process
    has changed its own setting since it was restored.
    """
    if not failure.errno and registry.is_of_process(entry.target):
        return True
    if failure.errno == errno.ENOENT:
        return entry.target.startswith(("file:", "irq:", "workqueue:"))
    return entry.passing and entry.target.startswith("irq:") and failure.errno in (errno.EPERM, errno.EIO)


def _failure(failure: Failure) -> str:
    if failure.write.wanted is None:
        return f"it could not be removed: {failure.text}; another cgroup or task may use it"
    return f"'{failure.write.wanted}' could not be written back: {failure.text}"


def _conflict(entry: TargetState, found: str | None) -> Skipped:
    was = value_types.plain(entry.kind, entry.before) if entry.before is not None else "absent"
    return Skipped(
        entry.knob, entry.target, f"changed to '{found}' after the apply (original '{was}', applied '{entry.wanted}')"
    )


def _write(entry: TargetState) -> Write:
    wanted = entry.before if entry.before is None else value_types.plain(entry.kind, entry.before)
    return Write(entry.target, wanted, entry.kind)


def _in_order(entries: Iterable[TargetState]) -> list[TargetState]:
    """Sort the writes: knobs in the registry's order; within a knob, the last created target first."""
    rank = {knob.name: number for number, knob in enumerate(KNOBS)}
    backwards = list(entries)[::-1]
    return sorted(backwards, key=lambda entry: rank.get(entry.knob, len(rank)))


# Another version may have written the journal, with a knob that this version lacks: then restore by target alone.


def _is_restored_last(entry: TargetState) -> bool:
    knob = BY_NAME.get(entry.knob)
    return knob is not None and knob.restore_last


def drifts(entry: TargetState) -> bool:
    """Whether the kernel may change the target on its own, so that a different value is no conflict."""
    knob = BY_NAME.get(entry.knob)
    return knob is not None and knob.drifts


def _is_gone(host: Reader, entry: TargetState) -> bool:
    if entry.identity is None:
        return False
    return not registry.same_thing(registry.identity(host, entry.target), entry.identity)


def _others(record: AppliedState, found: Mapping[str, str | None]) -> tuple[set[str], set[str]]:
    """The targets that another program changed after the apply: those that quiet wrote, and those that it did not."""
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
    if entry.wanted is None or not entry.finished or not record.complete or drifts(entry):
        return False  # never written by us, cut short, or perhaps changed by a later write of an incomplete apply
    if found is None and entry.before is not None:
        return False  # the device is gone
    ours = (entry.before, entry.wanted, entry.after, record.settled[entry.target])
    return not any(value_types.same(entry.kind, found, value) for value in ours)


def _widen_children(host: Host, record: AppliedState) -> None:
    """Widen the masks of tasks that were created with a narrowed mask: give them their ancestor's restored mask."""
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
            continue  # the task has ended, or is bound to a CPU


def _ancestor(reader: Reader, tid: int, known: dict[int, TargetState]) -> TargetState | None:
    """The nearest recorded ancestor of a thread: first the thread's process, then the parents; None without one."""
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
