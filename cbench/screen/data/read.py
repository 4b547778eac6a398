"""The data of a screening experiment in a file, whatever kind it is of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cbench.screen.data import read_table
from cbench.screen.data.data import Data
from cbench.screen.data.read_table import Chosen
from cbench.store.kind import is_store
from quiet import UsageError

__all__ = ["Chosen", "read"]


def read(path: Path, chosen: Chosen | None = None) -> Data:
    """From a screen's store, or a CSV or Parquet file (`chosen`: which columns are what). Raises UsageError."""
    chosen = chosen or Chosen()
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if is_store(path):
        if chosen:
            raise UsageError(f"--factor, --value, --hard: choose a table's columns, and {path} is a store")
        from cbench.screen.data import read_store

        found = read_store.read(path)
    else:
        found = read_table.read(path, chosen)
    if not any(each.value.size for each in found.series):
        raise UsageError(f"{path}: no values in it")
    return replace(found, series=tuple(each for each in found.series if each.value.size))
