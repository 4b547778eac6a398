"""Read a CSV or Parquet file with a column `value` and optional columns for the test, the unit and processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

from cbench.formats import csv_rows
from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, Number
from cbench.formats.reader import ResultReader, TestSample
from quiet import UsageError

VALUE, TEST, UNIT, METRIC = "value", "test", "unit", "metric"
PROCESS = ("run", "series", "process")
"""The columns that distinguish processes, as `cbench export` writes them."""
BUILD = "count.layout"
"""The column with the number of the build, if builds vary; `process` is then the same number in every run."""
NO_PYARROW = "reading Parquet needs pyarrow: pip install 'quiet-cbench[parquet]', or convert the file to CSV"
UNNAMED = "value"


class TableReader(ResultReader):
    """Each row contains one value. Rows with the same `run`, `series` and `process`, as far as these columns exist, are
    one process.

    Without any of these columns, a file is one process. If builds vary, all rows of one build (`count.layout`) are one
    process. `polluted` is 1 in rows of disturbed trials.
    """

    name = "a CSV or Parquet file with a column `value`"
    lists_orders = True
    lists_treatments = True
    more = "add a column `process`, or run the program {n} times and give the directory of its files"

    def matches(self, content: Content) -> bool:
        return _is_parquet(content) or VALUE in csv_rows.columns(content)

    def read(self, content: Content) -> tuple[TestSample, ...]:
        rows = _parquet(content) if _is_parquet(content) else csv_rows.rows(content)
        tests: dict[tuple[str, str], dict[tuple[str, ...], list[tuple[Number, bool]]]] = {}
        failed: dict[tuple[str, str], str] = {}
        for place, row in rows:
            if VALUE not in row:
                raise DamagedError("", f"no column {VALUE}; the columns are {', '.join(list(row)[:20])}")
            value = csv_rows.number(place, VALUE, row[VALUE])
            name, metric = row.get(TEST) or UNNAMED, row.get(METRIC)
            key = f"{name}:{metric}" if metric else name, row.get(UNIT, "")
            if value is None:  # the trial failed
                failed.setdefault(key, f"{place}: column {VALUE}: {row[VALUE].strip()!r} is not a number")
                continue
            columns = PROCESS[2:] if row.get(BUILD) else PROCESS
            process = tuple(row.get(column, "") for column in columns)
            clean = row.get("polluted", "") in ("", "0", "False")
            tests.setdefault(key, {}).setdefault(process, []).append((value, clean))
        if not tests:
            raise DamagedError("", f"no values in column {VALUE}")
        return (
            *(self._test(name, unit, processes.values()) for (name, unit), processes in tests.items()),
            *(
                replace(self.sample(name, unit, []), failed=(why,))
                for (name, unit), why in failed.items()
                if (name, unit) not in tests
            ),
        )

    def _test(self, name: str, unit: str, processes: Iterable[list[tuple[Number, bool]]]) -> TestSample:
        every = [[value for value, _ in rows] for rows in processes]
        return self.sample(
            name, unit, every, clean=([value for value, is_clean in rows if is_clean] for rows in processes)
        )


def _is_parquet(content: Content) -> bool:
    return content.head[:4] == b"PAR1"


def _parquet(content: Content) -> list[tuple[str, dict[str, str]]]:
    """The rows, with the relevant columns as text, which keeps every digit. pandas is not used, because it loads
    slowly.
    """
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(f"{content.path}: {NO_PYARROW}") from None
    wanted = (VALUE, TEST, UNIT, METRIC, BUILD, "polluted", *PROCESS)
    try:
        with parquet.ParquetFile(content.path) as file:
            names = [name for name in file.schema_arrow.names if name in wanted]
            if VALUE not in names:
                raise DamagedError("", f"no column {VALUE}; the columns are {', '.join(file.schema_arrow.names[:20])}")
            csv_rows.check_unique("", names)
            rows = file.read(columns=names).to_pylist()
    except (arrow.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, DamagedError):
            raise
        raise DamagedError("", f"damaged: {str(error).splitlines()[0][:200] if str(error) else error!r}") from None
    return [
        (f"row {number}", {name: "" if value is None else str(value) for name, value in row.items()})
        for number, row in enumerate(rows, start=1)
    ]
