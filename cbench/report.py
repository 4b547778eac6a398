"""Results as one plain object: what --json prints, and what render.py shows."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.model import INTERRUPT, Counter, Result, Trial
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
    }


def result_dict(result: Result, virtual: bool) -> dict[str, object]:
    """One workload on one CPU; percentiles are differences from the mode; all in the counter's unit."""
    session = result.session
    trials = session.trials
    values = [trial.value for trial in trials]
    quantum = session.counter.quantum or 1
    summary = summarise(values, quantum)
    outputs = sorted({trial.output for trial in trials})
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
        "warmup": session.warmup,
        "settled": session.settled,
        "polluted": [
            {"trial": number, "cause": ", ".join(trial.causes)} for number, trial in enumerate(trials) if trial.polluted
        ],
        "causes": causes(trials),
        "causes_from": dict(session.causes),
        "clean": sum(not trial.polluted for trial in trials),
        "with_context_switch": sum(trial.context_switches > 0 for trial in trials),
        "with_interrupt": sum(
            bool(trial.interrupts) or any(part.kind == INTERRUPT for part in trial.traced or ()) for trial in trials
        ),
        "with_page_fault": sum(trial.page_faults > 0 for trial in trials),
        "with_migration": sum(trial.migrated for trial in trials),
        "counter": counter_dict(session.counter),
        "memory_locked": session.locked,
        "addresses": session.addresses,
        "pages": session.pages,
        "stolen_ms": session.stolen_ms,
        "verdict": verdict(trials, summary, session.counter.unit, quantum, virtual),
    }


def run_dict(results: Sequence[Result], host: dict[str, object]) -> dict[str, object]:
    """The object of `cbench run --json`."""
    return {
        "counter": counter_dict(results[0].session.counter),
        "host": host,
        "results": [result_dict(result, bool(host["virtual"])) for result in results],
    }
