"""Read Parquet files that together form one table, through pyarrow's datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cbench.stats.trials import Trials
from cbench.tables import read
from cbench.tables.columns import ColumnError, Columns, trials
from quiet import UsageError

BATCH = 1 << 18
"""The maximum number of rows in a batch of a scan."""


@dataclass(frozen=True, slots=True)
class ParquetSet:
    """Parquet files whose rows are read in this order, as one table. `rows`: the number of rows of each file; `names`:
    the names of all columns of the first file.
    """

    files: tuple[Path, ...]
    rows: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def open(cls, files: Sequence[Path], values: Sequence[str] = ()) -> ParquetSet:
        """Open the files and read only their footers. Raises UsageError without pyarrow, if a file is damaged, or if
        one file lacks a column of trials (NEEDED and OPTIONAL in read.py, and `values`) that another has.
        """
        parquet = read.arrow_module("pyarrow.parquet")
        if parquet is None:
            raise UsageError(f"{files[0]}: {read.NO_PYARROW}")
        rows, names = [], []
        for path in files:
            with read.readable(path), parquet.ParquetFile(path) as file:
                rows.append(file.metadata.num_rows)
                names.append(tuple(file.schema_arrow.names))
        used = (*read.NEEDED, *read.OPTIONAL, *values)
        for path, there in zip(files, names, strict=True):
            for name in used:
                if (name in there) != (name in names[0]):
                    having, lacking = (path, files[0]) if name in there else (files[0], path)
                    raise UsageError(f"{lacking}: no column {name}, which {having} has")
        return cls(tuple(files), tuple(rows), names[0])

    def columns(self, wanted: Sequence[str]) -> Columns:
        """Read whole columns into memory. Raises UsageError for a damaged file, ColumnError for an unusable column."""
        with read.readable(self.files[0]):
            arrow = read.arrow_module("pyarrow")
            return read.arrow_columns(
                self._dataset(wanted).to_table(columns=list(wanted), memory_pool=arrow.system_memory_pool()), arrow
            )

    def batches(self, wanted: Sequence[str]) -> Iterator[Columns]:
        """The columns of at most BATCH rows at a time, in the order of the rows. Raises errors as columns() does."""
        with read.readable(self.files[0]):
            arrow = read.arrow_module("pyarrow")
            scan = self._dataset(wanted).to_batches(
                columns=list(wanted),
                batch_size=BATCH,
                batch_readahead=1,
                fragment_readahead=1,
                memory_pool=arrow.system_memory_pool(),
            )
            for batch in scan:
                if batch.num_rows:
                    yield read.arrow_columns(arrow.Table.from_batches([batch]), arrow)

    def _dataset(self, wanted: Sequence[str]) -> Any:
        dataset = read.arrow_module("pyarrow.dataset")
        arrow = read.arrow_module("pyarrow")
        names = [name for name in read.NAMES if name in wanted]
        form = dataset.ParquetFileFormat(read_options={"dictionary_columns": names})
        made = dataset.dataset([str(path) for path in self.files], format=form)
        for name in wanted:
            if arrow.types.is_nested(made.schema.field(name).type):
                raise ColumnError(name, None, "contains neither names nor numbers")
        return made

    def placed(self, error: ColumnError) -> UsageError:
        """The error to raise for a ColumnError, with the file and the row in that file."""
        if error.row is None:
            return read.placed(self.files[0], True, error)
        ends = np.cumsum(self.rows)
        at = int(np.searchsorted(ends, error.row, side="right"))
        begin = int(ends[at]) - self.rows[at]
        first = None
        if error.first is not None:
            of = int(np.searchsorted(ends, error.first, side="right"))
            if of == at:
                first = error.first - begin
            else:
                number = error.first - int(ends[of]) + self.rows[of] + 1
                why = f"{error.why} in row {number} of {self.files[of]}"
                return UsageError(f"{self.files[at]}: row {error.row - begin + 1}: column {error.column}: {why}")
        return read.placed(self.files[at], True, ColumnError(error.column, error.row - begin, error.why, first))


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """The given Parquet files and all Parquet files below the given directories, sorted by path within each directory;
    [] if a path is neither a Parquet file nor a directory.

    Raises UsageError for a file that is given twice.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(each for each in path.rglob("*") if each.suffix.lower() in read.PARQUET and each.is_file())
        elif path.suffix.lower() in read.PARQUET and path.is_file():
            found.append(path)
        else:
            return []
    seen: set[Path] = set()
    for path in found:
        if path.resolve() in seen:
            raise UsageError(f"{path}: is given twice; give each file once")
        seen.add(path.resolve())
    return found


def read_set(table: ParquetSet, metrics: Sequence[str] = ()) -> tuple[Trials, list[str]]:
    """Read the trials of all files into memory, and return them with warnings. `metrics`: columns to read instead of
    `value`. Raises UsageError for unusable content.
    """
    metrics, wanted = read.value_columns(metrics)
    present = read.present(table.files[0], table.names, wanted)
    try:
        found, warnings = trials(table.columns(present), metrics)
    except ColumnError as error:
        raise table.placed(error) from None
    count = int(np.isnan(found.value).sum())
    return found, warnings + read.missing(count, found.value.size, found.metrics)
