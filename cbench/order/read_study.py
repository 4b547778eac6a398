"""A study's own store as trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cbench.order.stats.data import Trials
from cbench.order.verdict import counted
from cbench.study.config import parse
from cbench.study.store import StudyStore
from cbench.tables.columns import Coded, trials


def read(path: Path) -> tuple[Trials, list[str]]:
    """The trials that have ended, and warnings. A failed trial has no value for any of its test's metrics."""
    with StudyStore.open(path, kind="order") as store:
        header, runs = store.header(), {run.number: run for run in store.runs()}
        values: dict[tuple[int, int], dict[str, float]] = {}
        for run, position, metric, value in store.values():
            values.setdefault((run, position), {})[metric] = value
        ended = store.trials()
    kinds: dict[int, set[str]] = {}
    for run, position, test, _, _, _ in ended:
        kinds.setdefault(test, set()).update(values.get((run, position), ()))
    columns: dict[str, Any] = {name: [] for name in ("test", "order", "metric", "run", "position", "value")}
    for run, position, test, _, _, _ in ended:
        for metric in sorted(kinds[test]) or [""]:
            columns["test"].append(test)
            columns["order"].append(runs[run].kind)
            columns["metric"].append(metric)
            columns["run"].append(run)
            columns["position"].append(position)
            columns["value"].append(values.get((run, position), {}).get(metric))
    columns["test"] = Coded(np.array(columns["test"], dtype=np.int32), header.tests)  # in the file's order
    warnings = []
    if failed := sum(each[3] is not None for each in ended):
        warnings.append(f"{failed:,} of {len(ended):,} trials failed")
    if lost := [run for run in runs.values() if run.failure]:
        warnings.append(
            f"{counted(len(lost), 'run')} {'was' if len(lost) == 1 else 'were'} left out: {lost[0].failure}"
        )
    if left := sum(not run.over for run in runs.values()):
        warnings.append(
            f"the study is not finished: {left:,} of {counted(len(runs), 'run')} {'is' if left == 1 else 'are'} left"
        )
    found, more = trials(columns)
    return found, warnings + more


def said(path: Path) -> tuple[float, str, dict[str, dict[str, str]]]:
    """What the study's file says on its analysis: alpha; what a failed trial takes with it; and by the names of an
    analysis the unit of the numbers, and whether lower or higher is better."""
    with StudyStore.open(path, kind="order") as store:
        header = store.header()
    study = parse(header.source, str(path), header.folder, check=False)
    counter = header.host.get("counter") or {}
    found = {}
    for test in study.tests:
        for metric in test.metrics:
            name = f"{test.name}:{metric.name}" if metric.name else test.name
            unit = metric.unit or (str(counter.get("unit", "")) if test.workload else "")
            found[name] = {"unit": unit, "better": metric.better}
    return study.alpha, study.failures, found
