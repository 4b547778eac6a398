"""Define the results of an interference measurement for --json and the table, with a verdict as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from cbench.interfere.measure import Condition, InterferePlan
from cbench.interfere.stats import Baseline, baseline, difference, disturbs, doubt, lowest, pooled
from cbench.machine.describe import HostFacts
from cbench.machine.topology import Place
from cbench.model import DISAGREE, Counter, Params, Trial
from cbench.results import extended
from quiet import table_html

DIFFERENT = "the trials did different work"


@dataclass(frozen=True, slots=True)
class UnmeasuredCondition:
    """A condition without figures, and the fields that all conditions share. `place`, `load`, `load_cpu`: None without
    a load; `reason`: the reason why there are no figures, None if there are figures.
    """

    condition: str
    place: str | None
    load: str | None
    load_cpu: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class MeasuredCondition(UnmeasuredCondition):
    """The unloaded condition. `floor`: the lowest value that repeats or, if `floor_repeats` is false, the 5 % quantile.
    `load_busy_pct`: the load's CPU time in % of its running time, None without a load. `trials`: the values of all
    trials, a tuple per visit.
    """

    visits: int
    floor: int
    floor_repeats: bool
    median: float
    max: int
    polluted_pct: float
    load_busy_pct: float | None
    trials: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LoadedCondition(MeasuredCondition):
    """A load at a place. The differences, and the interval of the difference in median (from `diff_low_pct` to
    `diff_high_pct`), are in % of the unloaded values.

    `disturbs`: None if the data do not decide this; `cannot_tell` then gives the reason.
    """

    diff_floor_pct: float
    diff_median_pct: float
    diff_low_pct: float
    diff_high_pct: float
    disturbs: bool | None
    cannot_tell: str | None

    @property
    def where(self) -> str:
        return f"{self.condition} (CPU {self.load_cpu})"


@dataclass(frozen=True, slots=True)
class PlaceResult:
    """A place of this host. `cpu`: None if the host has no such place; `reason`: the reason for this, else None."""

    name: str
    title: str
    cpu: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class WorkloadInterference:
    """The results of one workload under every condition. `drift_pct`, `noise_pct`: as in Baseline; `outputs`: the
    number of different results of the trials, 1 if they did the same work.
    """

    workload: str
    params: Params
    drift_pct: float
    noise_pct: float
    outputs: int
    conditions: tuple[UnmeasuredCondition, ...]
    verdict: str = ""

    @property
    def measured(self) -> list[MeasuredCondition]:
        return [row for row in self.conditions if isinstance(row, MeasuredCondition)]

    @property
    def loaded(self) -> list[LoadedCondition]:
        return [row for row in self.conditions if isinstance(row, LoadedCondition)]


@dataclass(frozen=True, slots=True)
class InterfereResult:
    """The whole result of an interference measurement. `trials`: the number of trials per visit; `order`: the
    condition of each visit.
    """

    cpu: int
    counter: Counter
    host: HostFacts
    seed: int
    trials: int
    order: tuple[str, ...]
    places: tuple[PlaceResult, ...]
    results: tuple[WorkloadInterference, ...]

    def _repr_html_(self) -> str:
        rows = [
            (result.workload, row.condition, row.floor, f"{row.median:,.0f}", f"{row.polluted_pct:.0f} %")
            for result in self.results
            for row in result.measured
        ]
        head = ("workload", "condition", "floor", "median", "polluted")
        return table_html(self.counter.unit, head, rows, [result.verdict for result in self.results])


def all_trials(conditions: Sequence[Condition], number: int) -> list[Trial]:
    """All trials of one workload, under every condition."""
    return [trial for each in conditions for visit in each.visits for trial in visit[number].session.trials]


def _values(condition: Condition, number: int) -> tuple[tuple[int, ...], ...]:
    """The values of one workload, a tuple for each visit. Calibrated cycles whose chains disagree are omitted if at
    least two other values of the visit remain. Trials on a core that is shared with the load are kept.
    """
    return tuple(_told(visit[number].session.trials) for visit in condition.visits)


def _told(trials: Sequence[Trial]) -> tuple[int, ...]:
    every = tuple(trial.value for trial in trials)
    agreeing = tuple(t.value for t in trials if not any(cause.kind == DISAGREE for cause in t.causes))
    return agreeing if len(agreeing) > 1 else every


def condition_result(
    condition: Condition, number: int, unloaded: Sequence[Sequence[int]], base: Baseline, seed: int
) -> UnmeasuredCondition:
    """The result of one workload under one condition."""
    place, spec = condition.place, condition.spec
    head = UnmeasuredCondition(
        condition.name,
        place.name if place else None,
        spec.workload if spec else None,
        spec.cpu if spec else None,
        condition.reason or None,
    )
    if not condition.visits:
        return head
    visits = _values(condition, number)
    every = pooled(visits)
    low, repeats = lowest(every)
    trials = all_trials([condition], number)
    busy = [figures.busy_pct for figures in condition.figures if figures.busy_pct is not None]
    measured = extended(
        MeasuredCondition,
        head,
        visits=len(visits),
        floor=low,
        floor_repeats=repeats,
        median=median(every),
        max=max(every),
        polluted_pct=100 * sum(trial.polluted for trial in trials) / len(trials),
        load_busy_pct=fmean(busy) if busy else None,
        trials=tuple(tuple(trial.value for trial in visit[number].session.trials) for visit in condition.visits),
    )
    if spec is None:
        return measured
    differs = difference(visits, unloaded, seed)
    doubtful = doubt(visits, unloaded, base)
    disturbing = disturbs(differs, base) or (None if doubtful else False)
    return extended(
        LoadedCondition,
        measured,
        diff_floor_pct=differs.floor_pct,
        diff_median_pct=differs.median_pct,
        diff_low_pct=differs.low_pct,
        diff_high_pct=differs.high_pct,
        disturbs=disturbing,
        cannot_tell=None if disturbing is not None else doubtful,
    )


def interfere_result(plan: InterferePlan, places: Sequence[Place], host: HostFacts, seed: int) -> InterfereResult:
    """The result of a plan after all visits; the unloaded condition comes first."""
    return InterfereResult(
        cpu=plan.cpu,
        counter=plan.conditions[0].visits[0][0].session.counter,
        host=host,
        seed=seed,
        trials=plan.options.trials,
        order=tuple(plan.conditions[position].name for position in plan.schedule),
        places=tuple(PlaceResult(p.name, p.title, p.cpu, p.reason or None) for p in places),
        results=tuple(_workload(plan, places, number, seed) for number in range(len(plan.chosen))),
    )


def _workload(plan: InterferePlan, places: Sequence[Place], number: int, seed: int) -> WorkloadInterference:
    unloaded = _values(plan.conditions[0], number)
    base = baseline(unloaded)
    rows = [condition_result(condition, number, unloaded, base, seed) for condition in plan.conditions]
    outputs = len({trial.output for trial in all_trials(plan.conditions, number)})
    if outputs > 1:
        rows = [
            replace(row, disturbs=None, cannot_tell=DIFFERENT) if isinstance(row, LoadedCondition) else row
            for row in rows
        ]
    result = WorkloadInterference(
        plan.chosen[number].name, dict(plan.params[number]), base.drift_pct, base.noise_pct, outputs, tuple(rows)
    )
    return replace(result, verdict=verdict(result, places, plan.cpu))


def verdict(result: WorkloadInterference, places: Sequence[Place], cpu: int) -> str:
    """The effects and their sizes as text, the worst first."""
    head = f"{result.workload} on CPU {cpu}: "
    by = sorted((row for row in result.loaded if row.disturbs), key=lambda row: -row.diff_median_pct)
    not_by = [row for row in result.loaded if row.disturbs is False]
    unclear = [row for row in result.loaded if row.disturbs is None]
    parts = []
    if by:
        parts.append("disturbed by " + ", by ".join(_words(row) for row in by))
    if not_by:
        names = ", ".join(row.where for row in not_by)
        parts.append(f"{'not measurably by' if by else 'not measurably disturbed by'} {names}")
    for why in dict.fromkeys(row.cannot_tell for row in unclear):
        names = ", ".join(row.where for row in unclear if row.cannot_tell == why)
        parts.append(f"cannot tell whether disturbed by {names}: {why}")
    if not result.loaded:
        parts.append("no load could be placed")
    parts.append(f"unloaded visits differ by up to {result.noise_pct:.2f} % (drift {result.drift_pct:+.2f} %)")
    absent = [f"{p.title} ({p.reason})" for p in places if p.cpu is None]
    absent += [f"{row.condition} ({row.reason})" for row in result.conditions if row.reason]
    if result.outputs > 1:
        parts.append(f"non-deterministic: {result.outputs:,} different results, so the trials did different work")
    if absent:
        parts.append(f"not measured: {', '.join(dict.fromkeys(absent))}")
    return head + "; ".join(parts)


def _words(row: LoadedCondition) -> str:
    interval = f"[{row.diff_low_pct:+.2f}, {row.diff_high_pct:+.2f}]"
    return f"{row.where}: median {row.diff_median_pct:+.2f} % {interval}, floor {row.diff_floor_pct:+.2f} %"
