"""A study's store as one row for each number of a trial, for spreadsheets, data frames and `cbench order analyze`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cbench.study.store import StudyStore
from quiet.errors import UsageError

COLUMNS = ("test", "metric", "order", "run", "position", "value", "failure", "begun_ns", "ended_ns")
WHOLE = ("run", "position", "begun_ns", "ended_ns")
PYPERF = "the store of a study, whose orders pyperf's files cannot hold; use --format csv or parquet"
CLEAN = "--clean-only: a study's trials are not told apart so; leave it away"


def contents(path: Path, kind: str, clean_only: bool) -> tuple[str | bytes, int]:
    """The file's content in the format `kind`, and how many trials are in it. UsageError where that cannot be."""
    if kind == "pyperf":
        raise UsageError(f"{path}: {PYPERF}")
    if clean_only:
        raise UsageError(CLEAN)
    with StudyStore.open(path) as store:
        found, trials = list(_rows(store)), len(store.trials())
    if not found:
        raise UsageError(f"{path}: no trials in it")
    return (_parquet(found) if kind == "parquet" else _csv(found)), trials


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


def _csv(rows: list[dict[str, Any]]) -> str:
    """RFC 4180 with line feeds: numbers in full, nothing where there is nothing."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    from cbench.export_parquet import loaded

    arrow, parquet = loaded()
    kinds = dict.fromkeys(COLUMNS, arrow.string()) | dict.fromkeys(WHOLE, arrow.int64()) | {"value": arrow.float64()}
    columns = {name: arrow.array([row[name] for row in rows], kinds[name]) for name in COLUMNS}
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file)
    return file.getvalue()
