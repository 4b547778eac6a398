"""Results as one plain object: what --json prints, and what render.py shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from cbench.model import INTERRUPT, Counter, Result, Session, Trial
from cbench.run.result_processes import clean_dict, divide, floors_from, processes_dict
from cbench.stats import settling
from cbench.stats.clean import rule_for
from cbench.stats.summary import summarise
from cbench.stats.verdict import verdict

SHOWN = 5


def causes(trials: Sequence[Trial]) -> list[dict[str, object]]:
    """The trials' causes by name, that of most trials first; times are None where only the counters know of it."""
    times: dict[str, list[int | None]] = {}
    for trial in trials:
        ns = {part.text: part.ns for part in trial.traced or ()}
        for cause in trial.causes:
            times.setdefault(cause, []).append(ns.get(cause))
    rows: list[dict[str, object]] = []
    for cause, each in sorted(times.items(), key=lambda item: (-len(item[1]), item[0])):
        known = [ns for ns in each if ns is not None]
        total, most = (sum(known), max(known)) if known else (None, None)
        rows.append({"cause": cause, "trials": len(each), "total_ns": total, "max_ns": most})
    return rows


def counter_dict(counter: Counter) -> dict[str, object]:
    return {
        "name": counter.name,
        "unit": counter.unit,
        "why": counter.why,
        "method": counter.method,
        "quantum": counter.quantum,
        "overhead": counter.overhead,
        "overhead_median": counter.overhead_median,
        "others": list(counter.others),
        "baseline": list(counter.baseline),
        "left_out": dict(counter.left_out),
    }


def result_dict(result: Result, virtual: bool, subtract: bool = False) -> dict[str, object]:
    """One workload on one CPU; percentiles are differences from the mode; all in the counter's unit.

    `subtract`: the lowest value of an empty timed region is taken off every trial's value.
    """
    session = result.session
    counter = session.counter
    trials = [_less(trial, counter.overhead or 0) for trial in result.trials] if subtract else list(result.trials)
    values = [trial.value for trial in trials]
    quantum = counter.quantum or 1
    rule = rule_for(counter.unit, virtual)
    summary = summarise(values, quantum, [trial.value for trial in floors_from(trials, rule)])
    processes = divide(result, trials, virtual)
    outputs = sorted({trial.output for trial in trials})
    words = [verdict(trials, summary, counter.unit, quantum, virtual), *_remarks(result, trials, len(outputs))]
    return {
        "workload": result.workload.name,
        "params": dict(result.params),
        "cpu": result.cpu,
        "isolated": result.isolated,
        "trials": values,
        "first": values[:SHOWN],
        "last": values[-SHOWN:],
        "output": outputs[0] if len(outputs) == 1 else None,
        "outputs": len(outputs),
        "floor": summary.floor,
        "mode": summary.mode,
        "mode_count": summary.mode_count,
        "at_floor": summary.at_floor,
        "near_floor": summary.near_floor,
        "min": summary.minimum,
        "range": summary.range,
        "p90": summary.p90,
        "p99": summary.p99,
        "max": summary.max,
        "overhead_subtracted": (counter.overhead or 0) if subtract else 0,
        "warmup": len(session.settling.values),
        "settled": settled(session),
        "settling": _settling(result, (counter.overhead or 0) if subtract else 0),
        "polluted": [
            {"trial": number, "cause": ", ".join(trial.causes)} for number, trial in enumerate(trials) if trial.polluted
        ],
        "causes": causes(trials),
        "causes_from": dict(session.causes),
        "clean": sum(not trial.polluted for trial in trials),
        "clean_trials": clean_dict(result, processes, virtual),
        "with_context_switch": sum(trial.context_switches > 0 for trial in trials),
        "with_interrupt": sum(
            bool(trial.interrupts) or any(part.kind == INTERRUPT for part in trial.traced or ()) for trial in trials
        ),
        "with_page_fault": sum(trial.page_faults > 0 for trial in trials),
        "with_migration": sum(trial.migrated for trial in trials),
        "counts": _counts(trials, counter),
        "counter": counter_dict(counter),
        "processes": processes_dict(processes),
        "memory_locked": session.locked,
        "addresses": ", ".join(sorted({one.addresses for one in result.sessions})),
        "pages": ", ".join(sorted({one.pages for one in result.sessions})),
        "stolen_ms": _sum([one.stolen_ms for one in result.sessions]),
        "verdict": "\n".join(words),
    }


def _less(trial: Trial, overhead: int) -> Trial:
    return replace(trial, value=max(trial.value - overhead, 0))


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _settling(result: Result, overhead: int) -> dict[str, object]:
    """What was discarded by the first process, less the overhead, and the rule."""
    first = result.session.settling
    return {
        "rule": settling.RULE,
        "values": [max(value - overhead, 0) for value in first.values],
        "mispredictions": list(first.mispredictions),
        "settled": [settled(one) for one in result.sessions],
    }


def _counts(trials: Sequence[Trial], counter: Counter) -> dict[str, dict[str, float]]:
    """What was counted beside the value, with what an empty region has of it."""
    rows: dict[str, dict[str, float]] = {}
    for name, base in zip(counter.others, counter.baseline, strict=True):
        values = [trial.counts[name] for trial in trials]
        rows[name] = {"min": min(values), "median": median(values), "max": max(values), "empty": base}
    return rows


def _remarks(result: Result, trials: Sequence[Trial], outputs: int) -> list[str]:
    """What else must be said before these numbers are used; often nothing."""
    lines: list[str] = []
    counter = result.session.counter
    if outputs > 1:
        lines.append(f"non-deterministic: {outputs:,} different results, so the trials did different work")
    if unsettled := [one for one in result.sessions if settled(one) is False]:
        lines.append(f"not settled after {len(unsettled[0].settling.values):,} discarded trials")
    if len(result.sessions) == 1:
        numbers = [number for number, trial in enumerate(trials) if trial.valid and not trial.polluted]
        found = settling.states([trials[number].value for number in numbers], counter.quantum or 1)
        if found:
            lines.append(found.text(counter.unit, numbers[found.first_change]))
    return lines


def settled(session: Session) -> bool | None:
    """Whether the discarded trials had settled; None where they were too few to tell."""
    return session.settling.settled if len(session.settling.values) >= 2 * settling.WINDOW else None


def run_dict(results: Sequence[Result], host: dict[str, object], subtract: bool = False) -> dict[str, object]:
    """The object of `cbench run --json`."""
    return {
        "counter": counter_dict(results[0].session.counter),
        "host": host,
        "results": [result_dict(result, bool(host["virtual"]), subtract) for result in results],
    }
