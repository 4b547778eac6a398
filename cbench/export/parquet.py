"""Export as a Parquet file, by pyarrow, which is installed only on request."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from cbench.export.exporter import ColumnType, Exporter, ExportSource
from quiet import UsageError

MISSING = "--format parquet needs pyarrow: pip install 'quiet-cbench[parquet]', or use --format csv"
TYPES = {
    ColumnType.TEXT: "string",
    ColumnType.WHOLE: "int64",
    ColumnType.UNSIGNED: "uint64",
    ColumnType.LOGICAL: "bool_",
    ColumnType.REAL: "float64",
}


class ParquetExporter(Exporter):
    """Typed columns: values of counters as unsigned 64-bit integers."""

    name = "parquet"
    binary = True

    def write(self, source: ExportSource, clean_only: bool) -> bytes:
        arrow, parquet = _pyarrow()
        table = source.table()
        columns: list[list[Any]] = [[] for _ in table.columns]
        for row in table.rows:
            for column, cell in zip(columns, row, strict=True):
                column.append(cell)
        typed = zip(table.columns.items(), columns, strict=True)
        arrays = {name: arrow.array(cells, getattr(arrow, TYPES[kind])()) for (name, kind), cells in typed}
        file = io.BytesIO()
        parquet.write_table(arrow.table(arrays), file)
        return file.getvalue()


def _pyarrow() -> tuple[Any, Any]:
    """Its modules. UsageError where it is not installed."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(MISSING) from None
