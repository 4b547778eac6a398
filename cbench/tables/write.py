"""Rows of what a study or an experiment has measured, as a file: CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from quiet.errors import UsageError

Row = dict[str, Any]


def check(path: Path, kind: str, clean_only: bool, what: str, has: str) -> None:
    """Raises UsageError for what a store cannot become. `what`: it is the store of; `has`: what pyperf has not."""
    if kind == "pyperf":
        raise UsageError(
            f"{path}: the store of {what}, whose {has} pyperf's files cannot hold; use --format csv or parquet"
        )
    if clean_only:
        raise UsageError(f"--clean-only: {what}'s trials are not told apart so; leave it away")


def content(path: Path, kind: str, rows: Sequence[Row], whole: Collection[str], real: Collection[str]) -> str | bytes:
    """All rows, which have the same columns: `whole` numbers, `real` ones and texts. UsageError without any."""
    if not rows:
        raise UsageError(f"{path}: no trials in it")
    return _parquet(rows, whole, real) if kind == "parquet" else _csv(rows)


def _csv(rows: Sequence[Row]) -> str:
    """RFC 4180 with line feeds: numbers in full, nothing where there is nothing."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parquet(rows: Sequence[Row], whole: Collection[str], real: Collection[str]) -> bytes:
    from cbench.export.parquet import loaded

    arrow, parquet = loaded()
    kinds = dict.fromkeys(rows[0], arrow.string())
    kinds |= dict.fromkeys(whole, arrow.int64()) | dict.fromkeys(real, arrow.float64())
    columns = {name: arrow.array([row[name] for row in rows], kinds[name]) for name in rows[0]}
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file)
    return file.getvalue()
