"""Group trials that do not fit in memory by series, in a memory-mapped temporary file.

The Parquet files are scanned twice: the first scan counts the rows of each series and numbers the runs, and the second
scan writes each row to its place. All later steps use one series at a time, so only a part of the temporary file must
be in memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench.stats.trials import Codes, Flags, Trials, Values
from cbench.tables import read
from cbench.tables.columns import (
    UNTIMED,
    Column,
    ColumnError,
    Columns,
    coded,
    first_rows,
    named,
    numbers_of,
    orders_of,
    unique,
)
from cbench.tables.parquet_set import BATCH, ParquetSet
from quiet import UsageError

IN_MEMORY = 15_000_000
"""Tables with more rows are analyzed out of core. 15 million rows with run and position take about 2 GB in memory."""
RELEASE = 4 * BATCH
"""The number of rows after which the memory of the file's pages is released."""
NO_POSITIONS = (
    "{rows:,} rows are analyzed out of core, without the column position: positions, first trials and predecessors are "
    "not analyzed; give fewer rows to analyze them"
)
Progress = Callable[[str, int, int], None]
"""Reports progress: the step, the completed amount, and the total."""
WIDTH = 1 << 20
"""The key of a series is the code of its test times WIDTH, plus the code of its metric, which must be below WIDTH."""


@dataclass(slots=True)
class MappedTrials:
    """Trials whose columns are in a temporary file. `ordered`: the part of the file for sorted values and for the
    differences of pairs.
    """

    trials: Trials
    warnings: list[str]
    ordered: Values
    used: int = 0
    since: int = 0

    def keep(self, values: Values) -> Values:
        """Append values to the file and return the stored copy; the file has room for 1.5 values per trial."""
        begin, self.used = self.used, self.used + values.size
        self.ordered[begin : self.used] = values
        self.since += values.size
        if self.since > RELEASE:
            self.since = 0
            self.trials.release()
        return self.ordered[begin : self.used]


@dataclass(slots=True)
class _Names:
    """The codes of names, in the order of their first appearance over all batches."""

    numbers: dict[str, int] = field(default_factory=dict)

    def codes(self, name: str, column: Column, blank: bool = False) -> Codes:
        batch = coded(name, column, blank)
        found = [self.numbers.setdefault(each, len(self.numbers)) for each in batch.names]
        return np.asarray(np.array(found, dtype=np.int32)[batch.codes])


@dataclass(slots=True)
class _RunRanks:
    """The runs by name and order, with the first row of each. `changes`: the number of rows whose run differs from that
    of the previous row.
    """

    first: dict[tuple[float | str, bool], int] = field(default_factory=dict)
    changes: int = 0
    last: tuple[float | str, bool] | None = None
    rank: dict[tuple[float | str, bool], int] = field(default_factory=dict)

    def add(self, column: Column, random: Flags, begin: int) -> None:
        keys, first, codes = self._keys(column, random)
        for key, row in zip(keys, first.tolist(), strict=True):
            self.first.setdefault(key, begin + row)
        self.changes += int((codes[1:] != codes[:-1]).sum()) + (self.last is not None and self.last != keys[codes[0]])
        self.last = keys[codes[-1]]

    def number(self) -> bool:
        """Number the runs as columns.trials() does. Returns whether the numbers are chronological."""
        numbers: list[float] | None
        try:
            numbers = [float(name) for name, _ in self.first]
        except ValueError:
            numbers = None
        timed = True
        if numbers is not None and len({name for name, _ in self.first}) == len(self.first):
            in_time = [key for _, _, key in sorted(zip(numbers, self.first.values(), self.first, strict=True))]
        else:
            in_time = list(self.first)
            in_time.sort(key=self.first.__getitem__)
            timed = self.changes + 1 == len(in_time)
        self.rank = {key: number for number, key in enumerate(in_time)}
        return timed

    def codes(self, column: Column, random: Flags) -> Codes:
        keys, _, codes = self._keys(column, random)
        return np.asarray(np.array([self.rank[key] for key in keys], dtype=np.int32)[codes])

    def _keys(
        self, column: Column, random: Flags
    ) -> tuple[list[tuple[float | str, bool]], NDArray[np.intp], NDArray[Any]]:
        names: Sequence[float | str]
        if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            if column.dtype.kind == "f" and np.isnan(column).any():
                raise ColumnError("run", int(np.flatnonzero(np.isnan(column))[0]), "is empty")
            found, codes = unique(column)
            names = [float(each) for each in found.tolist()]
        else:
            run = coded("run", column)
            names, codes = run.names, run.codes
        keys, codes = unique(codes.astype(np.int64) * 2 + random)
        first = first_rows(codes, keys.size)
        return [(names[key // 2], bool(key % 2)) for key in keys.tolist()], first, codes


def is_large(table: ParquetSet, metrics: Sequence[str]) -> bool:
    """Whether a table is analyzed out of core: never with a column `host` or with --value."""
    return sum(table.rows) > IN_MEMORY and not metrics and "host" not in table.names


def map_trials(table: ParquetSet, progress: Progress) -> MappedTrials:
    """The trials of a table, grouped by series. Raises UsageError for unusable content, and if there is no space for
    the temporary file.
    """
    wanted = [name for name in read.present(table.files[0], table.names, ("value",)) if name != "position"]
    rows = sum(table.rows)
    count = _Count("run" in wanted)
    _scan(
        table, [name for name in wanted if name != "value"], count.add, lambda done: progress("reading", done, 2 * rows)
    )
    timed = count.runs.number()
    room = _Room.of(rows, "run" in wanted)
    fill = _Fill.of(count, room)
    _scan(table, wanted, fill.add, lambda done: progress("reading", rows + done, 2 * rows))
    room.release()
    kinds, test_names = tuple(count.metrics.numbers) or ("",), tuple(count.tests.numbers)
    of_series = tuple(kinds[key % WIDTH] for key in fill.series.tolist())
    tests = (fill.series // WIDTH).astype(np.int32)
    trials = Trials(
        names=tuple(named(test_names[at], kind) for at, kind in zip(tests.tolist(), of_series, strict=True)),
        tests=tests,
        test_names=test_names,
        series=room.series,
        random=room.random,
        value=room.value,
        run=room.run,
        timed=timed if room.run is not None else False,
        metrics=of_series if "metric" in wanted else (),
        release=room.release,
    )
    warnings = [] if timed or room.run is None else [UNTIMED]
    if "position" in table.names:
        warnings.append(NO_POSITIONS.format(rows=rows))
    return MappedTrials(trials, warnings + read.missing(fill.failed, rows, trials.metrics), room.ordered)


def _scan(
    table: ParquetSet,
    columns: Sequence[str],
    add: Callable[[Columns, int], int],
    progress: Callable[[int], None],
) -> None:
    """Pass each batch of rows, and the number of its first row, to `add`, which returns the number of the batch's rows.
    Raises UsageError for unusable content.
    """
    begin = 0
    for batch in table.batches(columns):
        try:
            begin += add(batch, begin)
        except ColumnError as error:
            row = None if error.row is None else error.row + begin
            raise table.placed(ColumnError(error.column, row, error.why)) from None
        progress(begin)


@dataclass(slots=True)
class _Count:
    """The results of the first scan: names, runs, and the number of rows of each series by its key (see WIDTH)."""

    with_runs: bool
    tests: _Names = field(default_factory=_Names)
    metrics: _Names = field(default_factory=_Names)
    runs: _RunRanks = field(default_factory=_RunRanks)
    rows: dict[int, int] = field(default_factory=dict)

    def series(self, batch: Columns) -> NDArray[np.int64]:
        codes = self.tests.codes("test", batch["test"]).astype(np.int64) * WIDTH
        return codes + self.metrics.codes("metric", batch["metric"], blank=True) if "metric" in batch else codes

    def add(self, batch: Columns, begin: int) -> int:
        series, random = self.series(batch), orders_of(batch["order"])
        keys, numbers = np.unique(series, return_counts=True)
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
            self.rows[key] = self.rows.get(key, 0) + number
        if self.with_runs:
            self.runs.add(batch["run"], random, begin)
        return series.size


@dataclass(slots=True)
class _Fill:
    """The state of the second scan. `place`: the next free row of each series; `failed`: the number of missing
    values.
    """

    count: _Count
    room: _Room
    series: NDArray[np.int64]
    place: NDArray[np.int64]
    failed: int = 0
    since: int = 0

    @classmethod
    def of(cls, count: _Count, room: _Room) -> _Fill:
        series = np.array(sorted(count.rows), dtype=np.int64)
        sizes = np.array([count.rows[key] for key in series.tolist()], dtype=np.int64)
        ends = np.cumsum(sizes)
        for number, (start, end) in enumerate(zip((ends - sizes).tolist(), ends.tolist(), strict=True)):
            room.series[start:end] = number
        room.release()
        return cls(count, room, series, ends - sizes)

    def add(self, batch: Columns, _begin: int) -> int:
        number = np.searchsorted(self.series, self.count.series(batch)).astype(np.int32)
        order = np.argsort(number.astype(np.uint16) if self.series.size <= 2**16 else number, kind="stable")
        here = np.bincount(number, minlength=self.series.size)
        ordered = number[order]
        to = (self.place - np.cumsum(here) + here)[ordered] + np.arange(order.size)
        self.place += here
        value, random = numbers_of("value", batch["value"]), orders_of(batch["order"])
        self.failed += int(np.isnan(value).sum())
        self.room.value[to], self.room.random[to] = value[order], random[order]
        if self.room.run is not None:
            self.room.run[to] = self.count.runs.codes(batch["run"], random)[order]
        self.since += order.size
        if self.since > RELEASE:
            self.since = 0
            self.room.release()
        return order.size


@dataclass(frozen=True, slots=True)
class _Room:
    """The memory-mapped columns in the temporary file."""

    file: mmap.mmap
    value: Values
    ordered: Values
    series: Codes
    run: Codes | None
    random: Flags

    def release(self) -> None:
        """Release the memory of the pages; their content stays in the file."""
        self.file.madvise(mmap.MADV_DONTNEED)

    @classmethod
    def of(cls, rows: int, with_runs: bool) -> _Room:
        """Create the file in $TMPDIR, or else in /var/tmp, because /tmp may be in memory. Raises UsageError if the file
        cannot be created, for example for lack of space.
        """
        folder = os.environ.get("TMPDIR", "/var/tmp")  # noqa: S108 - the file has no name
        size = rows * (8 + 12 + 4 + (4 if with_runs else 0) + 1) + 16
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, size)
                mapped = mmap.mmap(file.fileno(), size)
        except OSError as error:
            why = (
                f"cannot store {size / 1e9:.1f} GB of temporary data: {error.strerror}; set TMPDIR to another directory"
            )
            raise UsageError(f"{folder}: {why}") from None

        at = 0

        def column(kind: type[np.generic], size: int = rows) -> NDArray[Any]:
            nonlocal at
            found = np.frombuffer(mapped, kind, size, at)
            at += found.nbytes
            return found

        value, ordered, series = column(np.float64), column(np.float64, rows + rows // 2), column(np.int32)
        return cls(mapped, value, ordered, series, column(np.int32) if with_runs else None, column(np.bool_))
