"""Interference as one plain object: what --json prints, and what the table shows; with a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from cbench.interfere.measure import ConditionResult, InterferePlan
from cbench.interfere.stats import Baseline, baseline, difference, disturbs, doubt, lowest, pooled
from cbench.machine.topology import Place
from cbench.model import Trial
from cbench.run import result as report


def values(measured: ConditionResult, number: int) -> list[list[int]]:
    """The values of one workload, a list for each visit."""
    return [[trial.value for trial in visit[number].session.trials] for visit in measured.visits]


def trials(found: Sequence[ConditionResult], number: int) -> list[Trial]:
    """All trials of one workload, under every condition."""
    return [t for measured in found for visit in measured.visits for t in visit[number].session.trials]


DIFFERENT = "the trials did different work"


def row(measured: ConditionResult, number: int, unloaded: list[list[int]], base: Baseline, seed: int) -> dict[str, Any]:
    """One condition of one workload; differences and their interval in % of the unloaded values.

    `disturbs` is None where the data cannot tell, and `cannot_tell` says why.
    """
    condition = measured.condition
    head: dict[str, Any] = {
        "condition": condition.name,
        "place": condition.place.name if condition.place else None,
        "load": condition.spec.workload if condition.spec else None,
        "load_cpu": condition.spec.cpu if condition.spec else None,
        "reason": condition.reason or None,
    }
    if not measured.visits:
        return head
    visits = values(measured, number)
    every = pooled(visits)
    low, repeats = lowest(every)
    every_trial = trials([measured], number)
    busy = [figures.busy_pct for figures in measured.figures if figures.busy_pct is not None]
    found: dict[str, Any] = {
        **head,
        "visits": len(visits),
        "floor": low,
        "floor_repeats": repeats,
        "median": median(every),
        "max": max(every),
        "polluted_pct": 100 * sum(trial.polluted for trial in every_trial) / len(every_trial),
        "load_busy_pct": fmean(busy) if busy else None,
        "trials": visits,
    }
    if condition.spec:
        differs = difference(visits, unloaded, seed)
        found |= {f"diff_{name}": value for name, value in asdict(differs).items()}
        found["disturbs"] = disturbs(differs, base) or (None if doubt(visits, unloaded, base) else False)
        found["cannot_tell"] = None if found["disturbs"] is not None else doubt(visits, unloaded, base)
    return found


def interfere_dict(
    plan: InterferePlan,
    found: Sequence[ConditionResult],
    places: Sequence[Place],
    host: Mapping[str, object],
    seed: int,
) -> dict[str, Any]:
    """The object of `cbench interfere --json`; `order` are the conditions as they were visited."""
    results = []
    spec = next((c.spec for c in plan.conditions if c.spec), None)
    for number, (workload, params) in enumerate(zip(plan.chosen, plan.params, strict=True)):
        unloaded = values(found[0], number)
        base = baseline(unloaded)
        rows = [row(measured, number, unloaded, base, seed) for measured in found]
        outputs = len({trial.output for trial in trials(found, number)})
        for each in rows if outputs > 1 else ():
            if each["load"] and not each["reason"]:
                each |= {"disturbs": None, "cannot_tell": DIFFERENT}
        result: dict[str, Any] = {
            "workload": workload.name,
            "params": dict(params),
            "drift_pct": base.drift_pct,
            "noise_pct": base.noise_pct,
            "outputs": outputs,
            "conditions": rows,
        }
        results.append({**result, "verdict": verdict(result, places, plan.cpu)})
    return {
        "cpu": plan.cpu,
        "counter": report.counter_dict(found[0].visits[0][0].session.counter),
        "host": dict(host),
        "seed": seed,
        "trials": plan.options.trials,
        "order": [plan.conditions[position].name for position in plan.schedule],
        "load": {"period_ms": spec.period_ms, "busy_ms": spec.busy_ms} if spec and spec.period_ms else {},
        "places": [{"name": p.name, "title": p.title, "cpu": p.cpu, "reason": p.reason or None} for p in places],
        "results": results,
    }


def verdict(result: Mapping[str, Any], places: Sequence[Place], cpu: int) -> str:
    """What disturbs and by how much, in words; the worst first."""
    head = f"{result['workload']} on CPU {cpu}: "
    loaded = [r for r in result["conditions"] if r["load"] and not r["reason"]]
    by = sorted((r for r in loaded if r["disturbs"]), key=lambda r: -r["diff_median_pct"])
    not_by = [r for r in loaded if r["disturbs"] is False]
    unclear = [r for r in loaded if r["disturbs"] is None]
    parts = []
    if by:
        parts.append("disturbed by " + ", by ".join(_words(r) for r in by))
    if not_by:
        names = ", ".join(_where(r) for r in not_by)
        parts.append(f"{'not measurably by' if by else 'not measurably disturbed by'} {names}")
    for why in dict.fromkeys(r["cannot_tell"] for r in unclear):
        names = ", ".join(_where(r) for r in unclear if r["cannot_tell"] == why)
        parts.append(f"cannot tell whether disturbed by {names}: {why}")
    if not loaded:
        parts.append("no load could be placed")
    parts.append(f"unloaded visits differ by up to {result['noise_pct']:.2f} % (drift {result['drift_pct']:+.2f} %)")
    absent = [f"{p.title} ({p.reason})" for p in places if p.cpu is None]
    absent += [f"{r['condition']} ({r['reason']})" for r in result["conditions"] if r["reason"]]
    if result["outputs"] > 1:
        parts.append(f"non-deterministic: {result['outputs']:,} different results, so the trials did different work")
    if absent:
        parts.append(f"not measured: {', '.join(dict.fromkeys(absent))}")
    return head + "; ".join(parts)


def _where(found: Mapping[str, Any]) -> str:
    return f"{found['condition']} (CPU {found['load_cpu']})"


def _words(found: Mapping[str, Any]) -> str:
    interval = f"[{found['diff_low_pct']:+.2f}, {found['diff_high_pct']:+.2f}]"
    return (
        f"{_where(found)}: median {found['diff_median_pct']:+.2f} % {interval}, floor {found['diff_floor_pct']:+.2f} %"
    )
