"""Read a file of trials as columns: CSV or Parquet with test, order, value, and optionally metric, run, position and
host.

pyarrow reads both formats if it is installed. Otherwise, Python reads CSV files, about ten times as slowly.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cbench.stats.trials import Trials
from cbench.tables.columns import MISSING, Coded, Column, ColumnError, Columns, trials
from cbench.tables.separators import other_separator
from quiet import UsageError

NEEDED = ("test", "order", "value")
NAMES = ("test", "order", "metric", "host")
NUMBERS = ("value", "position")
PARQUET = (".parquet", ".pq")
OPTIONAL = ("metric", "run", "position", "host")
NO_PYARROW = "reading Parquet needs pyarrow: pip install 'quiet-cbench[order]', or give a CSV"


def read(path: Path, metrics: Sequence[str] = ()) -> tuple[Trials, list[str]]:
    """Read the trials in a file, and return them with warnings. `metrics`: columns to read instead of `value`. Raises
    UsageError for an unusable file.
    """
    metrics, wanted = value_columns(metrics)
    parquet = path.suffix.lower() in PARQUET
    try:
        columns = parquet_columns(path, lambda names: present(path, names, wanted)) if parquet else _csv(path, wanted)
        found, warnings = trials(columns, metrics)
    except ColumnError as error:
        raise placed(path, parquet, error) from None
    return found, warnings + missing(int(np.isnan(found.value).sum()), found.value.size, found.metrics)


def value_columns(metrics: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The given columns without duplicates, and the columns to read, which are `value` if none is given. Raises
    UsageError for a reserved name.
    """
    metrics = tuple(dict.fromkeys(metrics))
    if names := [name for name in metrics if name in NAMES]:
        raise UsageError(f"--value {names[0]}: contains names, not numbers")
    if names := [name for name in metrics if name in OPTIONAL]:
        raise UsageError(f"--value {names[0]}: numbers the trials; name a column of results")
    return metrics, metrics or ("value",)


def missing(count: int, rows: int, metrics: Sequence[str]) -> list[str]:
    """A warning about missing values, if any. `metrics`: the metric of each series, as in Trials."""
    return [f"{count:,} of {rows:,} {'results are missing' if metrics else 'trials failed'}"] if count else []


def placed(path: Path, parquet: bool, error: ColumnError) -> UsageError:
    """The error to raise for a ColumnError, with the row (Parquet) or the line (CSV)."""
    place, first = (
        "" if row is None else f"row {row + 1}" if parquet else f"line {line_of(path, row)}"
        for row in (error.row, error.first)
    )
    why = f"{error.why} in {first}" if first else error.why
    return UsageError(f"{path}: {place + ': ' if place else ''}column {error.column}: {why}")


def line_of(path: Path, row: int) -> int:
    """The line on which a row of a CSV file ends. Empty lines are not rows, and a quoted field may span several
    lines.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        next(itertools.islice((each for each in reader if each), row + 1, None), None)
        return reader.line_num


def header(path: Path) -> list[str]:
    """The names of a CSV's columns. Raises UsageError if the file cannot be read, is not text or is empty."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = next(csv.reader(file), None)
    except (UnicodeDecodeError, csv.Error):
        raise UsageError(f"{path}: not a cbench store, a Parquet file or UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if first is None:
        raise UsageError(f"{path}: empty")
    return first


def check(path: Path, names: Sequence[str], values: Sequence[str]) -> None:
    """Raises UsageError if columns are missing or duplicated."""
    needed = [*NEEDED[:2], *values]
    if missing := [name for name in needed if name not in names]:
        there = ", ".join(names[:20])
        other = other_separator(names)
        raise UsageError(f"{path}: no column {', '.join(missing)}; it has {there or 'none'}{other and f': {other}'}")
    if twice := [name for name in (*needed, *OPTIONAL) if list(names).count(name) > 1]:
        raise UsageError(f"{path}: column {twice[0]} appears twice")


def present(path: Path, names: Sequence[str], values: Sequence[str]) -> list[str]:
    """The known columns of trials that the file contains. Raises UsageError if a required column is missing or a known
    column is duplicated.
    """
    check(path, names, values)
    return [name for name in (*NEEDED[:2], *values, *OPTIONAL) if name in names]


def parquet_columns(path: Path, select: Callable[[list[str]], list[str]]) -> Columns:
    """The columns of a Parquet file that `select` returns for the file's column names. Raises UsageError for a damaged
    file or without pyarrow, ColumnError for an unusable column.
    """
    arrow, parquet = arrow_module("pyarrow"), arrow_module("pyarrow.parquet")
    if arrow is None or parquet is None:
        raise UsageError(f"{path}: {NO_PYARROW}")
    with readable(path):
        schema = parquet.read_schema(path)
        there = select(schema.names)
        for name in there:
            if arrow.types.is_nested(schema.field(name).type):
                raise ColumnError(name, None, "contains neither names nor numbers")
        # read_table() would load pandas if it is installed
        dictionaries = [name for name in NAMES if name in there]
        with frugal(arrow), parquet.ParquetFile(path, read_dictionary=dictionaries) as file:
            return arrow_columns(file.read(columns=there), arrow)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A context that raises UsageError if pyarrow cannot read the file."""
    arrow = arrow_module("pyarrow")
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or 'damaged'}") from None
    except arrow.ArrowException as error:
        raise UsageError(f"{path}: not a Parquet file, or a damaged one: {str(error).splitlines()[0]}") from None


def _csv(path: Path, values: Sequence[str]) -> Columns:
    there = present(path, header(path), values)
    arrow = arrow_module("pyarrow")
    fast = arrow_module("pyarrow.csv")
    if arrow is None or fast is None:
        return plain(path, there)
    text = arrow.dictionary(arrow.int32(), arrow.string())
    types = {name: text for name in there if name in NAMES}
    types |= {name: arrow.float64() for name in there if name in (*values, "position")}
    options = fast.ConvertOptions(include_columns=there, column_types=types, null_values=MISSING)
    try:
        read = fast.read_csv(path, convert_options=options, memory_pool=arrow.system_memory_pool())
        return arrow_columns(read, arrow)
    except arrow.ArrowException:
        return plain(path, there)  # plain() reports the line and the column of the error


def plain(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read columns of a CSV file as strings in pure Python. Raises UsageError, with the line, for malformed content."""
    found: dict[str, list[str]] = {name: [] for name in names}
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            head = next(reader)
            places = [(head.index(name), found[name]) for name in names]
            for row in reader:
                if not row:
                    continue
                if len(row) != len(head):
                    raise UsageError(f"{path}: line {reader.line_num}: {len(row)} columns, not {len(head)}")
                for place, column in places:
                    column.append(row[place])
    except UnicodeDecodeError:
        raise UsageError(f"{path}: line {reader.line_num + 1} or later: not UTF-8 text") from None
    except csv.Error as error:
        raise UsageError(f"{path}: line {reader.line_num + 1}: {error}") from None
    return found


@contextmanager
def frugal(arrow: Any) -> Iterator[None]:
    """A context in which pyarrow uses the C library's allocator, because its own keeps much of the freed memory."""
    before = arrow.default_memory_pool()
    arrow.set_memory_pool(arrow.system_memory_pool())
    try:
        yield
    finally:
        arrow.set_memory_pool(before)


def arrow_module(name: str) -> Any:
    """A module of pyarrow; None if pyarrow is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def arrow_columns(table: Any, arrow: Any) -> Columns:
    """The columns of a pyarrow table (`Any`, because pyarrow has no type annotations)."""
    found: dict[str, Column] = {}
    for name in table.column_names:
        column = table.column(name)
        text = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
        if name in NAMES or text or arrow.types.is_dictionary(column.type):
            found[name] = _coded(name, column, arrow)
        elif arrow.types.is_null(column.type):
            found[name] = column.to_pylist()
        else:
            found[name] = _numbers(column, arrow)
    return found


def _numbers(column: Any, arrow: Any) -> Any:
    """The column as an array, without to_numpy(), which loads pandas if it is installed."""
    if not arrow.types.is_integer(column.type) and not arrow.types.is_floating(column.type):
        try:
            return column.to_numpy()
        except (arrow.ArrowException, NotImplementedError):
            return column.to_pylist()
    if column.null_count:
        column = column.cast(arrow.float64()).fill_null(float("nan"))
    parts = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)


def _coded(name: str, column: Any, arrow: Any) -> Coded:
    if not arrow.types.is_dictionary(column.type):
        try:
            column = column.cast(arrow.string()).dictionary_encode()
        except arrow.ArrowException:
            raise ColumnError(name, None, "contains no names") from None
    column = column.unify_dictionaries() if column.num_chunks > 1 else column
    whole = column.combine_chunks()
    indices = whole.indices.fill_null(-1) if whole.indices.null_count else whole.indices
    codes = np.from_dlpack(indices) if len(indices) else np.empty(0)
    return Coded(codes.astype(np.int32, copy=False), tuple(str(each) for each in whole.dictionary.to_pylist()))
