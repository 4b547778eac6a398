"""Convert exportable data to rows: trials of `cbench run`, a study, a screening experiment, or other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cbench.export.exporter import Cell, ExportSource, ExportTable
from cbench.formats import registry
from cbench.store.database import study_kind
from cbench.store.groups import layout
from cbench.store.kind import is_store
from cbench.store.records import NO_CPU, Stored, StoredSeries
from cbench.store.store import Store
from cbench.study.store import StudyStore
from quiet import UsageError

TEXT, WHOLE, UNSIGNED, LOGICAL, REAL = "string", "int64", "uint64", "bool_", "float64"
FIXED = "fixed"
"""The value in the column `order` for all trials that are not from a study. The columns `order`, `run` and `position`
correspond to those in the export of a study.
"""
TRIALS = {
    "run": WHOLE,
    "series": WHOLE,
    "test": TEXT,
    "workload": TEXT,
    "params": TEXT,
    "cpu": WHOLE,
    "process": WHOLE,
    "order": TEXT,
    "position": WHOLE,
    "value": UNSIGNED,
    "unit": TEXT,
    "polluted": LOGICAL,
    "cause": TEXT,
    "time": TEXT,
    "output": UNSIGNED,
    "valid": LOGICAL,
    "migrated": LOGICAL,
    "context_switches": WHOLE,
    "page_faults": WHOLE,
    "interrupts": TEXT,
}
STUDY_OMITTED = "the units and directions of the metrics, the study's file and the outputs"
SCREEN_OMITTED = "the units and directions of the responses, the order of the levels, alpha and the abridgments"
STUDY = {
    "test": TEXT,
    "metric": TEXT,
    "order": TEXT,
    "run": WHOLE,
    "position": WHOLE,
    "value": REAL,
    "failure": TEXT,
    "begun_ns": WHOLE,
    "ended_ns": WHOLE,
}
SAMPLES = {"test": TEXT, "process": WHOLE, "position": WHOLE, "value": REAL, "unit": TEXT}
SCREEN_WHOLE = ("run", "batch", "iteration", "position", "treatment", "begun_ns", "ended_ns")


def source_of(data: str, clean_only: bool) -> ExportSource:
    """Read a store, or results of another program. Raises UsageError if there is no trial."""
    if os.path.exists(data) and not is_store(Path(data)):
        return _of_samples(Path(data), clean_only)
    with Store.open(data) as store:
        series = tuple(store.series())
    path = Path(data)
    if any(each.trials for each in series):
        trials = sum(not (clean_only and trial.polluted) for each in series for trial in each.trials)
        return ExportSource(path, _trials(series, clean_only), trials, series)
    kind = study_kind(path)
    if kind is None:
        raise UsageError(f"{data}: contains no trials")
    return _screen(path) if kind == "screen" else _study(path)


def _of_samples(path: Path, clean_only: bool) -> ExportSource:
    """The results of another program, with a row per value."""
    samples = registry.read(path)
    if clean_only and not any(each.polluted for each in samples):
        raise UsageError(f"--clean-only: {path} has no trial that is marked as polluted; omit the option")
    kept = [each.undisturbed() if clean_only else each for each in samples]
    values = [value for each in kept for process in each.processes for value in process]
    whole = all(isinstance(value, int) for value in values)
    rows = [
        (each.name, process, position, value if whole else float(value), each.unit)
        for each in kept
        for process, of in enumerate(each.processes)
        for position, value in enumerate(of)
    ]
    table = ExportTable({**SAMPLES, "value": WHOLE if whole else REAL}, rows)
    return ExportSource(path, table, len(values), samples=samples)


def _trials(series: tuple[StoredSeries, ...], clean_only: bool) -> ExportTable:
    """A row per trial; after the fixed columns, one column per additional counter, empty for trials without it."""
    counted = sorted({name for each in series for stored in each.trials for name in stored.counts})
    builds: dict[object, int] = {}
    rows = (
        (*_row(each, stored, _process(each, stored, builds)), *(stored.counts.get(name) for name in counted))
        for each in series
        for stored in each.trials
        if not (clean_only and stored.polluted)
    )
    return ExportTable({**TRIALS, **{f"count.{name}": UNSIGNED for name in counted}}, rows)


def _process(series: StoredSeries, stored: Stored, builds: dict[object, int]) -> int:
    """The number of a trial's process in its series; if builds vary, the number of the trial's build, which all series
    share.
    """
    built = layout(series, stored)
    if built is not None:
        return builds.setdefault(built, len(builds))
    return stored.position if series.each_trial else series.process


def _row(series: StoredSeries, stored: Stored, process: int) -> tuple[Cell, ...]:
    trial = stored.trial
    return (
        *(series.run.number, series.number, series.test, series.workload),
        " ".join(f"{name}={value}" for name, value in sorted(series.params.items())),
        *(
            None if series.cpu == NO_CPU else series.cpu,
            process,
            FIXED,
            stored.position,
            trial.value,
            series.unit,
            trial.polluted,
        ),
        ", ".join(cause.text for cause in trial.causes),
        *(_time(stored.begin_ns), trial.output, trial.valid, trial.migrated, trial.context_switches, trial.page_faults),
        ", ".join(f"{name} {count}" for name, count in trial.interrupts.items()),
    )


def _time(ns: int | None) -> str:
    """A time in UTC, to the microsecond; "" for None.

    More digits would be meaningless: the time is interpolated between pairs of readings of two clocks, and the two
    readings of a pair are about a microsecond apart.
    """
    if ns is None:
        return ""
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ns // 1000 % 10**6:06}Z"


def _study(path: Path) -> ExportSource:
    with StudyStore.open(path) as store:
        rows, trials = list(_study_rows(store)), len(store.trials())
    table = ExportTable(STUDY, rows)
    return ExportSource(path, table, trials, what="a study", extra="orders", omitted=STUDY_OMITTED)


def _study_rows(store: StudyStore) -> Iterator[tuple[Cell, ...]]:
    """A row for each value of a trial; a failed trial has a row for each metric that its test's other trials have."""
    names, kinds = store.header().tests, {run.number: run.kind for run in store.runs()}
    ended, values = store.trials(), dict[tuple[int, int], dict[str, float]]()
    for run, position, metric, value in store.values():
        values.setdefault((run, position), {})[metric] = value
    metrics: dict[int, dict[str, None]] = {}
    for run, position, test, _, _, _ in ended:
        metrics.setdefault(test, {}).update(dict.fromkeys(values.get((run, position), ())))
    for run, position, test, failure, begun, ended_ns in ended:
        for metric in metrics[test] or [""]:
            number = values.get((run, position), {}).get(metric)
            yield names[test], metric, kinds[run], run, position, number, failure, begun, ended_ns


def _screen(path: Path) -> ExportSource:
    """A screening experiment with a row per trial: the factor levels, the trial's place in the design, and its
    responses.
    """
    from cbench.screen.data.load_store import trial_rows

    columns, responses, rows = trial_rows(path)
    types = {name: WHOLE if name in SCREEN_WHOLE else REAL if name in responses else TEXT for name in columns}
    table = ExportTable(types, rows)
    return ExportSource(path, table, len(rows), what="a screening experiment", extra="factors", omitted=SCREEN_OMITTED)
