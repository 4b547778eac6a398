"""A study's own store as trials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cbench.order.result import SuiteResult
from cbench.order.summarize import MetricMeaning
from cbench.report.text import counted
from cbench.stats.trials import Trials
from cbench.store.database import reads_store
from cbench.study.config import parse
from cbench.study.orders import FIXED, ISOLATED
from cbench.study.store import StudyStore
from cbench.tables.columns import Coded, named, trials

KINDS = {ISOLATED: FIXED}
"""Isolated runs are the baseline that runs in one process are compared with."""


@reads_store
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
    orders = {number: KINDS.get(run.kind, run.kind) for number, run in runs.items()}
    rows = [
        (test, orders[run], metric, run, position, values.get((run, position), {}).get(metric))
        for run, position, test, _, _, _ in ended
        for metric in sorted(kinds[test]) or [""]
    ]
    tests = Coded(np.array([row[0] for row in rows], dtype=np.int32), header.tests)  # in the file's order
    names = ("order", "metric", "run", "position", "value")
    columns = {"test": tests} | {name: [row[at] for row in rows] for at, name in enumerate(names, start=1)}
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


@dataclass(frozen=True, slots=True)
class StudyDefaults:
    """What a study's file says on its analysis: alpha; what a failed trial takes with it; what each metric means, by
    the names of an analysis; of a suite its harness, and what is isolated."""

    alpha: float
    failures: str
    metrics: dict[str, MetricMeaning]
    suite: SuiteResult | None = None


@reads_store
def defaults(path: Path) -> StudyDefaults:
    """What the file of this store's study says. Raises UsageError."""
    with StudyStore.open(path, kind="order") as store:
        header, units = store.header(), store.units()
    study = parse(header.source, str(path), header.folder, check=False)
    metrics = {}
    if study.suite is not None:
        for (number, name), unit in units.items():
            metrics[named(header.tests[number], name)] = MetricMeaning(unit, study.suite.better)
        return StudyDefaults(
            study.alpha, study.failures, metrics, SuiteResult(study.suite.harness, study.suite.isolated)
        )
    for test in study.tests:
        for metric in test.metrics:
            unit = metric.unit or (header.unit if test.workload else "")
            metrics[named(test.name, metric.name)] = MetricMeaning(unit, metric.better)
    return StudyDefaults(study.alpha, study.failures, metrics)
