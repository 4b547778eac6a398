"""Read trials from the store of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from cbench.machine.passport import Passport, UnlikeFact, unlike
from cbench.order.result import SuiteResult
from cbench.order.series_summary import MetricMeaning
from cbench.report.text import counted
from cbench.results import JsonValue
from cbench.stats.trials import Trials
from cbench.store.database import reads_store
from cbench.study.config import parse
from cbench.study.orders import FIXED, ISOLATED
from cbench.study.records import Header, host_names
from cbench.study.store import StudyStore
from cbench.tables.columns import LARGEST, TOO_LARGE, Coded, named, trials
from quiet import UsageError

KINDS = {ISOLATED: FIXED}
"""The order that a kind of run stands for: isolated runs are the baseline for runs in one process."""


EndedTrial = tuple[int, str, int, int, Mapping[str, float]]
"""The test, order, run, position, and values by metric."""


@dataclass(frozen=True, slots=True)
class EndedTrials:
    """The ended trials of one store."""

    header: Header
    rows: tuple[EndedTrial, ...]
    warnings: tuple[str, ...]


def read(path: Path) -> tuple[Trials, list[str]]:
    """The trials that have ended, and warnings. A failed trial has no value for any of its test's metrics, and a trial
    with a value that is too large to be analyzed counts as failed.
    """
    store = _ended(path)
    found, more = trials(_columns([store]))
    return found, [*store.warnings, *more]


def read_hosts(paths: Sequence[Path]) -> tuple[Trials, list[str], tuple[UnlikeFact, ...]]:
    """The trials of one study from a store of each host; warnings; and the differences between the hosts' passports.

    Raises UsageError for stores of different studies, and for a store that is given twice.
    """
    stores = [_ended(path) for path in paths]
    for number, (path, store) in enumerate(zip(paths, stores, strict=True)):
        for other, before in zip(paths[:number], stores, strict=False):
            if store.header.made_ns == before.header.made_ns and store.header.host == before.header.host:
                raise UsageError(f"{path}: the same store as {other}, or a copy of it; give one store per host")
        if store.header.tests != stores[0].header.tests:
            raise UsageError(f"{path}: its tests differ from those of {paths[0]}; give stores of one study")
    names = host_names(paths, [store.header for store in stores])
    columns = _columns(stores)
    metrics = _metrics(stores)
    columns["host"] = [name for name, store in zip(names, stores, strict=True) for _ in _rows(store, metrics)]
    warnings = [f"{name}: {said}" for name, store in zip(names, stores, strict=True) for said in store.warnings]
    if len({store.header.source for store in stores}) > 1:
        warnings.append(f"the study files in the stores differ; the settings of {paths[0]} are used")
    found, more = trials(columns)
    passports = {name: Passport.parse(_facts(store.header)) for name, store in zip(names, stores, strict=True)}
    return found, warnings + more, unlike({name: each for name, each in passports.items() if each is not None})


def _facts(header: Header) -> Mapping[str, JsonValue]:
    return cast("Mapping[str, JsonValue]", header.host)


@reads_store
def _ended(path: Path) -> EndedTrials:
    with StudyStore.open(path, kind="order") as store:
        header, runs = store.header(), {run.number: run for run in store.runs()}
        values: dict[tuple[int, int], dict[str, float]] = {}
        for run, position, metric, value in store.values():
            values.setdefault((run, position), {})[metric] = value
        ended = store.trials()
    orders = {number: KINDS.get(run.kind, run.kind) for number, run in runs.items()}
    warnings = []
    if failed := sum(each[3] is not None for each in ended):
        warnings.append(f"{failed:,} of {len(ended):,} trials failed")
    if lost := [run for run in runs.values() if run.failure]:
        warnings.append(
            f"{counted(len(lost), 'run')} {'was' if len(lost) == 1 else 'were'} left out; the first, run "
            f"{lost[0].number + 1}: {lost[0].failure}"
        )
    if left := sum(not run.over for run in runs.values()):
        warnings.append(
            f"the study is not finished: {left:,} of {counted(len(runs), 'run')} {'is' if left == 1 else 'are'} left; "
            f"to complete it: cbench order resume {path}"
        )
    rows = [(test, orders[run], run, position, values.get((run, position), {})) for run, position, test, *_ in ended]
    return EndedTrials(header, *_without_too_large(header, rows, warnings))


def _without_too_large(
    header: Header, rows: Sequence[EndedTrial], warnings: Sequence[str]
) -> tuple[tuple[EndedTrial, ...], tuple[str, ...]]:
    """The trials, without the values of those that have a value beyond ±LARGEST; and the warnings, with one for each
    test that has such trials. Studies measured by older versions may contain them.
    """
    found: dict[int, list[str]] = {}
    kept = []
    for test, order, run, position, values in rows:
        metric = next((name for name, value in values.items() if not abs(value) <= LARGEST), None)
        if metric is not None:
            where = f"{named(header.tests[test], metric)}: the value {values[metric]:g} of run {run + 1} {TOO_LARGE}"
            found.setdefault(test, []).append(where)
        kept.append((test, order, run, position, values if metric is None else {}))
    more = []
    for first, *others in found.values():
        trials_of = f"this trial and {len(others):,} more like it count" if others else "this trial counts"
        more.append(f"{first}; {trials_of} as failed")
    return tuple(kept), (*warnings, *more)


def _metrics(stores: Sequence[EndedTrials]) -> dict[int, list[str]]:
    """The names of each test's metrics, collected over all hosts."""
    kinds: dict[int, set[str]] = {}
    for store in stores:
        for test, _, _, _, values in store.rows:
            kinds.setdefault(test, set()).update(values)
    return {test: sorted(names) or [""] for test, names in kinds.items()}


def _rows(
    store: EndedTrials, metrics: Mapping[int, Sequence[str]]
) -> list[tuple[int, str, str, int, int, float | None]]:
    return [
        (test, order, metric, run, position, values.get(metric))
        for test, order, run, position, values in store.rows
        for metric in metrics[test]
    ]


def _columns(stores: Sequence[EndedTrials]) -> dict[str, Coded | list[object]]:
    """The columns of the trials of all stores, one store after the other."""
    metrics = _metrics(stores)
    rows = [row for store in stores for row in _rows(store, metrics)]
    tests = Coded(
        np.array([row[0] for row in rows], dtype=np.int32), stores[0].header.tests
    )  # in the order of the study's file
    names = ("order", "metric", "run", "position", "value")
    return {"test": tests} | {name: [row[at] for row in rows] for at, name in enumerate(names, start=1)}


@dataclass(frozen=True, slots=True)
class StudyDefaults:
    """The settings in a study's file that an analysis uses. `failures`: whether a failed trial excludes only itself or
    its whole run; `metrics`: the meaning of each metric, by its name in the analysis; `suite`: the harness and the
    isolation of a suite, None if the study measures no suite.
    """

    alpha: float
    failures: str
    metrics: dict[str, MetricMeaning]
    suite: SuiteResult | None = None


@reads_store
def runs_left(path: Path) -> int:
    """The number of runs that a study in this store has not finished."""
    with StudyStore.open(path, kind="order") as store:
        return sum(not run.over for run in store.runs())


@reads_store
def defaults(path: Path) -> StudyDefaults:
    """Read the settings from the study file inside this store. Raises QuietError if the store is unusable."""
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
