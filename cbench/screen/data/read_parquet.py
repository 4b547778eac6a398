"""Every column of a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbench.tables.columns import ColumnError
from cbench.tables.read import NO_PYARROW, arrow_columns, arrow_module, frugal
from quiet.errors import UsageError


def columns(path: Path) -> Mapping[str, Any]:
    """Names as encode.Coded, numbers as arrays. Raises UsageError."""
    arrow, parquet = arrow_module("pyarrow"), arrow_module("pyarrow.parquet")
    if arrow is None or parquet is None:
        raise UsageError(f"{path}: {NO_PYARROW}")
    try:
        schema = parquet.read_schema(path)
        if nested := [name for name in schema.names if arrow.types.is_nested(schema.field(name).type)]:
            raise ColumnError(nested[0], None, "has neither names nor numbers")
        if twice := [name for at, name in enumerate(schema.names) if name in schema.names[:at]]:
            raise UsageError(f"{path}: column {twice[0]} is there twice")
        with frugal(arrow), parquet.ParquetFile(path) as file:
            return arrow_columns(file.read(), arrow)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or 'damaged'}") from None
    except arrow.ArrowException as error:
        raise UsageError(f"{path}: no Parquet file, or a damaged one: {str(error).splitlines()[0]}") from None
