"""The trials in a file, whatever kind it is of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cbench.order import read_ordersage
from cbench.stats.trials import Trials
from cbench.store.kind import is_store
from cbench.tables import read as read_table
from quiet import UsageError


def read(path: Path, metrics: Sequence[str] = ()) -> tuple[Trials, list[str]]:
    """The trials and warnings about them, from a study's store, OrderSage's results, a CSV or Parquet file.

    `metrics`: names of a table's columns to read instead of `value`. Raises UsageError.
    """
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if is_store(path):
        from cbench.order import read_study

        _no_columns(path, metrics, "a study's store")
        return _checked(path, read_study.read(path))
    if path.suffix.lower() not in read_table.PARQUET:
        names = read_table.header(path)
        if read_ordersage.is_one(names):
            _no_columns(path, metrics, "OrderSage's own results")
            found = read_ordersage.read(path, names)
            return _checked(path, found)
        if lacking := read_ordersage.lacking(names):
            raise UsageError(f"{path}: like OrderSage's own results, but without the column {lacking}")
    return _checked(path, read_table.read(path, metrics))


def _no_columns(path: Path, metrics: Sequence[str], kind: str) -> None:
    if metrics:
        raise UsageError(f"--value {metrics[0]}: chooses a table's column, and {path} is {kind}")


def _checked(path: Path, found: tuple[Trials, list[str]]) -> tuple[Trials, list[str]]:
    if not found[0].series.size:
        raise UsageError(f"{path}: no trials in it")
    return found
