"""A study's own store as trials."""

from __future__ import annotations

from pathlib import Path

from cbench.stats.order.data import Trials
from cbench.stats.order.encode import trials
from cbench.study.store import StudyStore


def read(path: Path) -> tuple[Trials, list[str]]:
    """The trials that have ended, and warnings. A failed trial has no value for any of its test's metrics."""
    with StudyStore.open(path) as store:
        header, runs = store.header(), {run.number: run for run in store.runs()}
        values: dict[tuple[int, int], dict[str, float]] = {}
        for run, position, metric, value in store.values():
            values.setdefault((run, position), {})[metric] = value
        ended = store.trials()
    kinds: dict[int, set[str]] = {}
    for run, position, test, _, _, _ in ended:
        kinds.setdefault(test, set()).update(values.get((run, position), ()))
    columns: dict[str, list[object]] = {name: [] for name in ("test", "order", "metric", "run", "position", "value")}
    for run, position, test, _, _, _ in ended:
        for metric in sorted(kinds[test]) or [""]:
            columns["test"].append(header.tests[test])
            columns["order"].append(runs[run].kind)
            columns["metric"].append(metric)
            columns["run"].append(run)
            columns["position"].append(position)
            columns["value"].append(values.get((run, position), {}).get(metric))
    warnings = []
    if failed := sum(each[3] is not None for each in ended):
        warnings.append(f"{failed:,} of {len(ended):,} trials failed")
    if lost := [run for run in runs.values() if run.failure]:
        warnings.append(f"{len(lost):,} runs were left out: {lost[0].failure}")
    if left := sum(not run.over for run in runs.values()):
        warnings.append(f"the study is not finished: {left:,} of {len(runs):,} runs are left")
    found, more = trials(columns)
    return found, warnings + more
