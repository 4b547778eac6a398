"""A store as a Parquet file, by pyarrow, which is installed only on request."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from cbench.export.rows import COLUMNS, LOGICAL, UNSIGNED, WHOLE, counted, rows
from cbench.store.records import StoredSeries
from quiet.errors import UsageError

MISSING = "--format parquet needs pyarrow: pip install 'quiet-cbench[parquet]', or use --format csv"


def as_parquet(series: Sequence[StoredSeries], clean_only: bool = False) -> bytes:
    """The rows of export_rows, typed: values as unsigned 64-bit integers. UsageError without pyarrow."""
    arrow, parquet = loaded()
    names = [*COLUMNS, *(f"count.{name}" for name in counted(series))]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows(series, clean_only):
        for name in names:
            found[name].append(row[name])
    columns = {name: arrow.array(values, _kind(arrow, name)) for name, values in found.items()}
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file)
    return file.getvalue()


def _kind(arrow: Any, name: str) -> Any:
    if name in UNSIGNED or name.startswith("count."):
        return arrow.uint64()
    return arrow.int64() if name in WHOLE else arrow.bool_() if name in LOGICAL else arrow.string()


def loaded() -> tuple[Any, Any]:
    """pyarrow and its room for Parquet. UsageError where it is not installed."""
    from importlib import import_module

    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(MISSING) from None
