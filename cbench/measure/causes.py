"""Determine the interruptions of each trial, from the kernel's trace if it is usable, otherwise from counters.

The counters are read around a trial, with an untimed call of the workload between the first reading and the timed
region; the trace shows the timed region itself. So if both show an interruption, the trace provides its name, and a
counted interrupt that the trace places before or after the trial is not a cause. If the PMU counts the kernel's
instructions between the two reads, this count decides: a trial without such instructions was not interrupted,
regardless of the counts around it, and any other trial was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cbench.model import (
    COUNTERS,
    FAULT,
    INTERRUPT,
    KERNEL,
    MULTIPLEXED,
    SWITCH,
    TASK,
    TRACING,
    CausesSource,
    Trial,
    TrialCause,
)
from quiet import CAUSE_FAULT, CAUSE_THREAD, CAUSE_WORK, Follower, Seen

OFF = "--no-trace"
COST = "each interruption takes longer while it is traced; --no-trace turns tracing off"
KINDS = {CAUSE_THREAD: TASK, CAUSE_WORK: TASK, CAUSE_FAULT: FAULT}
ALSO_COUNTED = {"TLB": "CAL", "PMI": "NMI", "MCP": "LOC"}
"""Lines of /proc/interrupts whose interrupts another line counts as well."""


class Causes:
    """Names the causes of interruptions in the trials of one measuring process.

    Call begin() before the first trial, name() and then resume() after each chunk of trials, and end() after the last.
    """

    def __init__(self, follower: Follower | None, cpu: int, task: int, own_faults: bool = False) -> None:
        """Prepare to name causes. `follower`: reads the kernel's trace, None if the trace was not requested. `task`:
        the id of the measuring process. `own_faults`: whether page faults are part of the workload's own work.
        """
        self._follower, self._cpu, self._task = follower, cpu, task
        self._own_faults = own_faults
        self._lost = self._counted = 0

    def begin(self) -> None:
        """Begin to follow the trace, before the first trial that counts."""
        if self._follower:
            self._follower.begin(self._cpu)

    def resume(self) -> None:
        """Resume following the trace for the next chunk."""
        if self._follower:
            self._follower.resume()

    def end(self) -> None:
        """Stop following the trace, after the last trial."""
        if self._follower:
            self._follower.pause()

    def name(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials of a chunk, in order, with the names of their causes."""
        return [decided(trial) for trial in self._named(trials)]

    def _named(self, trials: Sequence[Trial]) -> list[Trial]:
        if not self._follower or not self._follower.available:
            self._counted += len(trials)
            return list(trials)
        taken = self._follower.take(self._cpu, self._task, [(trial.begin, trial.end) for trial in trials])
        self._lost += taken.lost
        self._counted += sum(seen is None for seen in taken.seen)
        return [
            trial if seen is None else merged(trial, self._foreign(named(seen, self._follower)), seen)
            for trial, seen in zip(trials, taken.seen, strict=True)
        ]

    def _foreign(self, parts: tuple[TrialCause, ...]) -> tuple[TrialCause, ...]:
        return tuple(part for part in parts if part.kind != FAULT) if self._own_faults else parts

    def source(self) -> CausesSource:
        """The source of the causes, with the number of trials whose causes come from the counters alone."""
        if not self._follower:
            return CausesSource(COUNTERS, OFF, self._counted)
        if not self._follower.available:
            return CausesSource(COUNTERS, self._follower.why, self._counted)
        full = f"; {self._lost:,} events did not fit" if self._lost else ""
        return CausesSource(TRACING, f"clock {self._follower.clock}; {COST}{full}", self._counted)


def decided(trial: Trial) -> Trial:
    """The trial with causes as decided by the PMU's count of kernel instructions: no cause except a multiplexed counter
    if the kernel did not run, otherwise at least one. Without that count, the trial is unchanged.
    """
    if trial.kernel is None:
        return trial
    if trial.kernel == 0:
        kept = tuple(cause for cause in trial.causes if cause.kind == MULTIPLEXED)
        clean = replace(trial, causes=kept, context_switches=0, page_faults=0, interrupts={}, migrated=False)
        return clean if trial.traced is None else replace(clean, traced=())
    return trial if trial.causes else replace(trial, causes=(TrialCause(KERNEL, count=trial.kernel),))


def named(seen: Seen, follower: Follower) -> tuple[TrialCause, ...]:
    """The causes of a trial according to the trace, one for each name, in the order of their longest parts."""
    times: dict[str, TrialCause] = {}
    for part in seen.parts:
        before = times.get(part.label)
        ns = round(follower.ns(part.ticks)) + ((before.ns or 0) if before else 0)
        times[part.label] = TrialCause(KINDS.get(part.cause.kind, INTERRUPT), part.label, ns=ns)
    return tuple(times.values())


def merged(trial: Trial, parts: tuple[TrialCause, ...], seen: Seen) -> Trial:
    """The trial with the causes from the trace (`parts`), plus those causes from the counters that the trace does not
    explain.
    """
    if trial.page_faults:
        parts = tuple(part for part in parts if part.kind != FAULT)  # the counters distinguish kinds of faults
    outside = {name for name, count in trial.interrupts.items() if _outside(name, count, seen)}
    explained = {name for name in trial.interrupts if name in outside or _within(name, seen)}
    switched = any(part.kind == TASK for part in parts)
    rest = [
        cause
        for cause in trial.causes
        if not (cause.kind == INTERRUPT and cause.name in explained) and not (switched and cause.kind == SWITCH)
    ]
    interrupts = {name: count for name, count in trial.interrupts.items() if name not in outside}
    return replace(trial, causes=(*parts, *rest), interrupts=interrupts, traced=parts)


def _within(name: str, seen: Seen) -> bool:
    return any(seen.within.get(text) for text in _texts(name))


def _outside(name: str, count: int, seen: Seen) -> bool:
    """Whether all `count` interrupts of this line occurred outside the trial, between it and its neighbors."""
    if _within(name, seen):
        return False
    if name.partition(" (")[0] in ALSO_COUNTED:
        return any(seen.around.get(text) for text in _texts(name))
    return any(seen.around.get(text, 0) >= count for text in _texts(name))


def _texts(name: str) -> tuple[str, ...]:
    """The names that a line of /proc/interrupts may have in the trace: its label, its description (Arm IPIs), or the
    line that counts the same interrupts.
    """
    label, _, description = name.removesuffix(")").partition(" (")
    return label, description, ALSO_COUNTED.get(label, label)
