"""A study's store as one row for each number of a trial, for spreadsheets, data frames and `cbench order analyze`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cbench.study.store import StudyStore
from cbench.tables import write

COLUMNS = ("test", "metric", "order", "run", "position", "value", "failure", "begun_ns", "ended_ns")
WHOLE = ("run", "position", "begun_ns", "ended_ns")


def contents(path: Path, kind: str, clean_only: bool) -> tuple[str | bytes, int]:
    """The file's content in the format `kind`, and how many trials are in it. UsageError where that cannot be."""
    write.check(path, kind, clean_only, "a study", "orders")
    with StudyStore.open(path) as store:
        found, trials = list(_rows(store)), len(store.trials())
    return write.content(path, kind, found, WHOLE, ("value",)), trials


def _rows(store: StudyStore) -> Iterator[dict[str, Any]]:
    """COLUMNS; a failed trial has a row for each metric that its test has in others, without a value."""
    names, kinds = store.header().tests, {run.number: run.kind for run in store.runs()}
    ended, values = store.trials(), dict[tuple[int, int], dict[str, float]]()
    for run, position, metric, value in store.values():
        values.setdefault((run, position), {})[metric] = value
    metrics: dict[int, dict[str, None]] = {}
    for run, position, test, _, _, _ in ended:
        metrics.setdefault(test, {}).update(dict.fromkeys(values.get((run, position), ())))
    for run, position, test, failure, begun, ended_ns in ended:
        for metric in metrics[test] or [""]:
            value_of = values.get((run, position), {}).get(metric)
            row = (names[test], metric, kinds[run], run, position, value_of, failure, begun, ended_ns)
            yield dict(zip(COLUMNS, row, strict=True))
