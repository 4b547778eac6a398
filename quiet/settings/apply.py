"""Apply a profile: record each change in the journal, write it, read it back; plan again for up to five rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quiet import cpulist
from quiet.console import table_html
from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.knobs import rivals
from quiet.knobs.registry import BY_NAME
from quiet.machine import write_access
from quiet.machine.cpu_selection import CpuPartition, parse_requested
from quiet.machine.facts import Facts
from quiet.settings import engine, journal, plan
from quiet.settings.applied_state import AppliedState, TargetState
from quiet.settings.engine import Failure, Write
from quiet.settings.journal_writer import Journal, opened, unchanged
from quiet.settings.plan import Change, Plan, Skipped
from quiet.settings.profile import Profile
from quiet.targets import registry, value_types
from quiet.targets.cgroup import group

_LISTS = ("task:", "irq:", "cgroup:")
_CHANGED_BACK = "it changes again after every write; another program may set it"
_ROUNDS = 5  # during the writes, tasks fork and drivers request interrupts


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of an apply.

    `failures`: changes that did not take effect, for a reason that the knob does not expect. `missing_boot`: kernel
    parameters of the profile that the running kernel was booted without; `in_container`: whether only the container's
    host can set them.
    """

    profile: str
    cpus: CpuPartition
    changes: tuple[Change, ...]
    skips: tuple[Skipped, ...]
    failures: tuple[Skipped, ...]
    missing_boot: tuple[str, ...]
    in_container: bool = False

    def _repr_html_(self) -> str:
        below = [f"not applied: {each.target}: {each.reason}" for each in self.failures]
        return table_html(f"applied {self.profile}", Change._fields[:5], (c[:5] for c in self.changes), below)


def apply(
    host: Host,
    profile: Profile,
    requested: str | None = None,
    passing: bool = False,
    patience: float = 0,
    again: bool = False,
) -> Receipt:
    """Apply the profile to the host.

    `requested`: the CPUs to isolate (None: those of the profile); `passing`: apply for one command only; `again`: apply
    only if the profile is already applied. Waits up to `patience` seconds for another quiet process to end. Raises
    Refused if it does not end, if another profile is applied, or if there is no space for the journal; Incomplete if
    the journal or a setting can no longer be written.
    """
    with locked(host, patience):
        record = journal.load(host)
        if again and record is None:
            raise Refused("no profile is applied anymore")
        cpus = _cpus(host, profile, requested, record)
        with opened(host) as log:
            with unchanged(log, started=record is None):
                if record is None:
                    log.begin(host, profile.name, profile.source, cpus, passing)
                    record = journal.load(host)
                    assert record is not None
                elif record.passing and not (passing or again):
                    log.stay()
                work = _Apply(host, profile, cpus, record, log)
                work.prepare()
            return work.run()


def _cpus(host: Host, profile: Profile, requested: str | None, record: AppliedState | None) -> CpuPartition:
    if record is None:
        if outside := write_access.whole(Facts(host)):
            raise Refused(outside)
        own = group(host)
        if profile.knobs.get("cpuset", "leave") != "leave" and registry.get(host, f"cgroup:{own}") is not None:
            raise Refused(
                f"a cgroup {own} already exists and was not created by quiet; remove it (rmdir) or set the knob "
                'cpuset to "leave"'
            )
        if profile.knobs.get("rivals") == "refuse" and (names := rivals.running(Facts(host))):
            raise Refused(
                f'the profile has rivals = "refuse", but these run or are enabled: {", ".join(names)}; stop and '
                'disable them, or set rivals = "quiet"'
            )
        return profile.choose(Facts(host), requested)
    if record.restoring:
        raise Refused("a restore is incomplete; run `quiet restore` first")
    if (record.profile, record.source) != (profile.name, profile.source):
        raise Refused(f"profile '{record.profile}' is applied; run `quiet restore` first, then apply '{profile.name}'")
    if requested is not None and parse_requested(requested, "--cpus") != record.cpus.isolated:
        applied = cpulist.format(record.cpus.isolated)
        raise Refused(f"'{record.profile}' is applied to CPUs {applied}; run `quiet restore` first to choose others")
    return record.cpus


class _Apply:
    def __init__(self, host: Host, profile: Profile, cpus: CpuPartition, record: AppliedState, log: Journal) -> None:
        self.host, self.profile, self.cpus, self.record, self.log = host, profile, cpus, record, log
        self.failures: list[Skipped] = []
        self.made: Plan | None = None
        self.new: list[TargetState] = []
        # leave targets that another program has changed since an earlier apply, unless this apply writes them again
        found = {target: registry.get(host, target) for target in record.settled if record.complete}
        self.foreign = {t for t, value in found.items() if value != record.settled[t]}

    def prepare(self) -> None:
        """Plan the first round, and reserve space for its journal. Changes nothing yet."""
        self.record.refused.clear()  # try again: a busy target may be free now
        self.made = self._plan()
        self.new = self._new(self.made)
        if self.made.changes:
            self.log.reserve(self.new, [(c.target, c.wanted) for c in self.made.changes], self.record.entries)

    def run(self) -> Receipt:
        """Write the prepared changes, and the changes that become necessary during the apply."""
        assert self.made is not None
        made, changes = self.made, dict[str, Change]()
        for _ in range(_ROUNDS):
            if not made.changes:
                break
            changes.update((change.target, change) for change in made.changes)
            self._round(made)
            made = self._plan()
            self.new = self._new(made)
        again = {change.target: change for change in made.changes if change.target in changes}
        for change in again.values():
            del changes[change.target]
            self.failures.append(Skipped(change.knob, change.target, _CHANGED_BACK, change.label))
        self.log.settled({target: self._settled(target, target in again) for target in self.record.entries})
        # these changes were neither rejected nor skipped because of a rejected dependency
        written = tuple(c for c in changes.values() if self.record.entries[c.target].wanted is not None)
        failures, boot = tuple(self.failures), made.missing_boot
        return Receipt(self.profile.name, self.cpus, written, made.skips, failures, boot, made.in_container)

    def _settled(self, target: str, changed_back: bool) -> str | None:
        """The value that a restore expects: the current one or, if another program wrote it, the recorded one."""
        if changed_back:
            return self.record.entries[target].after
        return self.record.settled[target] if target in self.foreign else registry.get(self.host, target)

    def _plan(self) -> Plan:
        record = self.record
        return plan.make(self.host, self.profile, self.cpus, record.accepted(), record.refused)

    def _round(self, made: Plan) -> None:
        self.log.before(self.new)
        self.record.entries.update((entry.target, entry) for entry in self.new)
        # dependencies first: if an atomic knob is rejected, its dependents are not written
        for part in _parts(made.changes):
            taken_back = {self.record.entries[target].knob for target in self.record.refused}
            self._write([c for c in part if BY_NAME[c.knob].needs not in taken_back])
        self._keep_affinities(made.entangled)

    def _write(self, changes: Sequence[Change]) -> None:
        by_target = {change.target: change for change in changes}
        failures = self._settle(Write(c.target, c.wanted, c.kind, BY_NAME[c.knob].clamps) for c in changes)
        for knob in {by_target[failure.write.target].knob for failure in failures}:
            if BY_NAME[knob].atomic:
                self._take_back(knob)
        for failure in failures:
            self._refuse(by_target[failure.write.target], failure)

    def _new(self, made: Plan) -> list[TargetState]:
        """The targets of the plan that are not recorded yet."""
        if not made.changes:
            return []
        new = [
            TargetState(c.knob, c.target, c.kind, c.current, registry.identity(self.host, c.target), False)
            for c in made.changes
            if c.target not in self.record.entries
        ]
        known = set(self.record.entries) | {entry.target for entry in new}
        for knob, target in made.entangled:
            if target not in known and (found := registry.get(self.host, target)) is not None:
                known.add(target)
                kind = value_types.CPULIST if target.startswith(_LISTS) else value_types.CHOICE
                new.append(TargetState(knob, target, kind, found, registry.identity(self.host, target), True))
        return new

    def _settle(self, writes: Iterable[Write]) -> list[Failure]:
        return engine.settle(self.host, writes, self._before, self._after)

    def _before(self, write: Write) -> None:
        entry = self.record.entries[write.target]
        entry.wanted, entry.finished = write.wanted, False
        self.foreign.discard(write.target)
        self.record.refused.pop(write.target, None)
        self.log.intent(write.target, write.wanted or "")

    def _after(self, write: Write, found: str | None) -> None:
        entry = self.record.entries[write.target]
        entry.after, entry.finished = found, True
        self.log.done(write.target, found)

    def _written(self, knob: str) -> list[TargetState]:
        return [e for e in self.record.entries.values() if e.knob == knob and not e.passing]

    def _take_back(self, knob: str) -> None:
        writes = [Write(e.target, e.before, e.kind) for e in reversed(self._written(knob))]
        engine.settle(self.host, writes, lambda write: None, lambda write, found: None)

    def _refuse(self, change: Change, failure: Failure) -> None:
        knob = BY_NAME[change.knob]
        words = (reason for verdict, reason in knob.verdicts.items() if verdict in failure.text)
        expected = knob.refusals.get(failure.errno)
        if expected is None and (word := next(words, None)) is not None:
            expected = word if isinstance(word, str) else word(Facts(self.host))
        reason = expected or f"the kernel refused '{failure.write.wanted}': {failure.text}"
        if expected is None:
            self.failures.append(Skipped(change.knob, change.target, reason, change.label))
        whole = [e.target for e in self._written(knob.name)] if knob.atomic else [change.target]
        for target in whole:
            if knob.atomic and target in self.record.refused:
                continue  # the other failures follow from the first one
            self.record.refused[target] = reason
            self.record.entries[target].wanted = None
            self.log.refused(target, reason)

    def _keep_affinities(self, entangled: Iterable[tuple[str, str]]) -> None:
        """Restore the CPUs of tasks that were pinned to other CPUs, if the new partition has overwritten them."""
        for _, target in entangled:
            entry = self.record.entries.get(target)
            if entry is None or not entry.passing or not target.startswith("task:") or entry.before is None:
                continue
            found = registry.get(self.host, target)
            if found is None or value_types.same(value_types.CPULIST, found, entry.before):
                continue
            write = Write(target, entry.before, entry.kind, clamps=True)
            engine.settle(self.host, [write], self._before, self._after)


def _parts(changes: Sequence[Change]) -> Iterable[Sequence[Change]]:
    """The changes in order, as parts that each end with the last change of an atomic knob."""
    start = 0
    for number, (change, following) in enumerate(zip(changes, (*changes[1:], None), strict=True), 1):
        if following is None or (BY_NAME[change.knob].atomic and following.knob != change.knob):
            yield changes[start:number]
            start = number
