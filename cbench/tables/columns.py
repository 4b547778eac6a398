"""Convert the columns of files into the columns of stats.trials.Trials.

A column is a sequence or an array. A column of names may also be dictionary-encoded (Coded), as Parquet
stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench.stats.trials import Codes, Trials

FIXED = "fixed"
RANDOM = ("random", "williams")
"""Orders that change from run to run; their effects are analyzed in the same way."""
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>")
"""The strings that stand for a missing number. Only the empty string stands for a missing name."""

UNTIMED = (
    "the order of the runs is unknown: their names are not unique numbers, and rows of different runs are mixed; drift "
    "and blocks are not analyzed"
)


class ColumnError(ValueError):
    """Raised if a column cannot be used; `why`: the reason. `row`: counted from 0, None for the whole column; `first`:
    the earlier row that `row` repeats, None if it repeats none.
    """

    def __init__(self, column: str, row: int | None, why: str, first: int | None = None) -> None:
        super().__init__(why)
        self.column, self.row, self.why, self.first = column, row, why, first


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names, coded as numbers: row `row` has the name `names[codes[row]]`, and a code below 0 stands for a
    missing name.
    """

    codes: Codes
    names: tuple[str, ...]


LARGEST = 1e150
TOO_LARGE = f"is beyond ±{LARGEST:g}, too large to be squared; use a larger unit"

Column = Coded | NDArray[Any] | Sequence[object]
"""A column of a file: names, numbers, or strings as written."""
Columns = Mapping[str, Column]


def trials(columns: Columns, metrics: Sequence[str] = ()) -> tuple[Trials, list[str]]:
    """The trials and warnings from the columns test, order, value and, if present, metric, run, position, host.

    `metrics`: columns to use instead of `value` and `metric`, each as a separate metric. Raises ColumnError for an
    unusable column.
    """
    test = coded("test", columns["test"])
    warnings: list[str] = []
    random = orders_of(columns["order"])
    host = None if columns.get("host") is None else coded("host", columns["host"])
    if host is not None and np.unique(host.codes).size < 2:
        host = None
    run, timed = _runs_of_hosts(columns.get("run"), random, host, warnings)
    position = _positions(columns.get("position"))
    if metrics:
        if columns.get("metric") is not None:
            raise ColumnError("metric", None, "names the metric of `value` in each row; omit --value")
        _once(run, position, test.codes)
        rows, metric, value = _side_by_side(test, columns, metrics)
        test, random = Coded(test.codes[rows], test.names), random[rows]
        run, position = (None if each is None else each[rows] for each in (run, position))
        host = None if host is None else Coded(host.codes[rows], host.names)
    else:
        value = numbers_of("value", columns["value"])
        names = columns.get("metric")
        metric = Coded(np.zeros_like(test.codes), ("",)) if names is None else coded("metric", names, blank=True)
    pairs, series = unique(test.codes.astype(np.int64) * len(metric.names) + metric.codes)
    if not metrics:
        _once(run, position, series)
    tests = (pairs // len(metric.names)).astype(np.int32)
    kinds = tuple(metric.names[int(pair) % len(metric.names)] for pair in pairs)
    found = Trials(
        names=tuple(named(test.names[number], kind) for number, kind in zip(tests.tolist(), kinds, strict=True)),
        tests=tests,
        test_names=test.names,
        series=series.astype(np.int32, copy=False),
        random=random,
        value=value,
        run=run,
        position=position,
        timed=timed,
        metrics=kinds if metrics or columns.get("metric") is not None else (),
        host=None if host is None else host.codes,
        hosts=() if host is None else host.names,
    )
    if found.clash():
        found = replace(found, single=False)
        warnings.append("several tests have the same position in a run: predecessors are not analyzed")
    return found, warnings


def _once(run: Codes | None, position: Codes | None, series: NDArray[Any]) -> None:
    """Raises ColumnError if a series has two rows at the same position of a run."""
    if run is None or position is None or not series.size:
        return
    width = int(position.max()) + 1
    place = run.astype(np.int64) * width + position
    if (int(run.max()) + 1) * width <= 4 * place.size and int(np.bincount(place).max()) == 1:
        return
    order = np.lexsort((series, place))  # stable: the first of several equal rows comes first
    at, of = place[order], series[order]
    again = np.flatnonzero((at[1:] == at[:-1]) & (of[1:] == of[:-1]))
    if again.size:
        number = int(again[np.argmin(order[again + 1])])
        raise ColumnError(
            "position", int(order[number + 1]), "run, position, test and metric are the same as", int(order[number])
        )


def coded(name: str, column: Coded | Iterable[object], blank: bool = False) -> Coded:
    """A column of names as Coded, with numbers in the order of first appearance. Raises ColumnError for a missing name.

    `blank`: whether a name may be empty.
    """
    if not isinstance(column, Coded):
        numbers: dict[str, int] = {}
        codes = np.fromiter((numbers.setdefault(str(each), len(numbers)) for each in column), np.int32)
        column = Coded(codes, tuple(numbers))
    missing = np.flatnonzero(column.codes < 0)
    if not missing.size and not blank and "" in column.names:
        missing = np.flatnonzero(column.codes == column.names.index(""))
    if missing.size:
        raise ColumnError(name, int(missing[0]), "is empty")
    return column


def _side_by_side(
    test: Coded, columns: Columns, metrics: Sequence[str]
) -> tuple[NDArray[np.intp], Coded, NDArray[np.float64]]:
    """The rows, metrics and values from a table with one column per metric. A test has only those metrics that have a
    value in at least one of its rows.
    """
    parts = []
    for number, name in enumerate(metrics):
        value = numbers_of(name, columns[name])
        has = np.zeros(len(test.names), dtype=bool)
        has[np.unique(test.codes[~np.isnan(value)])] = True
        rows = np.flatnonzero(has[test.codes])
        parts.append((rows, np.full(rows.size, number, dtype=np.int32), value[rows]))
    where, codes, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return where, Coded(codes, tuple(metrics)), values


def named(test: str, metric: str) -> str:
    """The name of a series: TEST:METRIC, or TEST if `metric` is ""."""
    return f"{test}:{metric}" if metric else test


def orders_of(column: Column) -> NDArray[np.bool_]:
    """For each row, whether its order changes from run to run. Raises ColumnError for an unknown order."""
    order = coded("order", column)
    kinds = np.zeros(len(order.names), dtype=bool)
    for number, name in enumerate(order.names):
        if name not in (FIXED, *RANDOM):
            row = int(np.flatnonzero(order.codes == number)[0])
            raise ColumnError("order", row, f"{name!r}: must be fixed, random or williams")
        kinds[number] = name != FIXED
    return np.asarray(kinds[order.codes])


def numbers_of(name: str, column: Column) -> NDArray[np.float64]:
    """The numbers of a column, NaN for a missing number. Raises ColumnError for other text and for numbers beyond
    ±LARGEST.
    """
    if isinstance(column, Coded):
        first = {int(code): row for row, code in reversed(list(enumerate(column.codes)))}
        kinds = [
            _number(name, first[code], text) if code in first else np.nan for code, text in enumerate(column.names)
        ]
        return np.array([*kinds, np.nan])[column.codes]
    if not isinstance(column, np.ndarray) or column.dtype.kind == "O":
        return np.fromiter((_number(name, row, each) for row, each in enumerate(column)), np.float64)
    if column.dtype.kind not in "biuf":
        raise ColumnError(name, None, "contains no numbers")
    value = column.astype(np.float64, copy=False)
    if np.isinf(value).any():
        raise ColumnError(name, int(np.flatnonzero(np.isinf(value))[0]), "is infinite")
    if (large := np.abs(value) > LARGEST).any():
        raise ColumnError(name, int(np.flatnonzero(large)[0]), TOO_LARGE)
    return value


def _number(name: str, row: int, text: object) -> float:
    if text is None or (isinstance(text, str) and text.strip() in MISSING):
        return np.nan
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = None
    if value is None or "_" in str(text):  # Python accepts "_" as a separator
        raise ColumnError(name, row, f"{str(text)[:40]!r} is not a number")
    if value in (np.inf, -np.inf):
        raise ColumnError(name, row, "is infinite")
    if abs(value) > LARGEST:
        raise ColumnError(name, row, TOO_LARGE)
    return value


def _positions(column: Column | None) -> Codes | None:
    if column is None:
        return None
    if (
        isinstance(column, np.ndarray)
        and column.dtype.kind in "iu"
        and column.size
        and 0 <= int(column.min()) <= int(column.max()) < 2**31 - 1
    ):
        return np.asarray(column - column.min(), dtype=np.int32)
    value = numbers_of("position", column)
    wrong = np.flatnonzero(~(value >= 0) | (value != np.floor(value)) | (value > 2**31 - 2))
    if wrong.size:
        raise ColumnError("position", int(wrong[0]), f"is not a whole number from 0 to {2**31 - 2}")
    return (value - value.min() if value.size else value).astype(np.int32)


def _runs(column: Column | None, random: NDArray[np.bool_], warnings: list[str]) -> tuple[Codes | None, bool]:
    """Number the runs from 0, and report whether the numbers are chronological; None and False without a column.

    Runs are sorted by name if every name is a number and occurs in only one order. Otherwise, they are sorted by first
    row, and the numbers are chronological only if the rows of each run are consecutive. A name that occurs in both
    orders means two runs, because some files restart the numbers for each order.
    """
    if column is None:
        return None, False
    codes, numbers = _run_codes(column)
    both = codes.astype(np.int64) * 2 + random
    keys, inverse = unique(both)
    names = keys // 2
    timed = True
    if numbers is not None and np.unique(names).size == keys.size:
        order = np.argsort(names if numbers is codes else numbers[names], kind="stable")
    else:
        order = np.argsort(first_rows(inverse, keys.size), kind="stable")
        timed = int((both[1:] != both[:-1]).sum()) + 1 == keys.size
    if not timed:
        warnings.append(UNTIMED)
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return np.asarray(rank[inverse]), timed


def _runs_of_hosts(
    column: Column | None, random: NDArray[np.bool_], host: Coded | None, warnings: list[str]
) -> tuple[Codes | None, bool]:
    """Like _runs(), but number the runs of each host separately, host after host, because runs on different hosts may
    have the same name.
    """
    if host is None or column is None:
        return _runs(column, random, warnings)
    if isinstance(column, np.ndarray):
        every = column
    else:
        names = coded("run", column)
        every = np.array(names.names, dtype=np.object_)[names.codes]
    run, begin, timed, said = np.empty(random.size, dtype=np.int32), 0, True, list[str]()
    for number in range(len(host.names)):
        rows = np.flatnonzero(host.codes == number)
        if not rows.size:
            continue
        found, known = _runs(every[rows], random[rows], said)
        assert found is not None
        run[rows] = found + begin
        begin += int(found.max()) + 1
        timed = timed and known
    warnings += said[:1]
    return run, timed


def _run_codes(column: Column) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """A code for each row's run, and the run number of each code, None if a run's name is not a number. An array of
    integers within ±2^52 serves as both. Raises ColumnError for a missing name.
    """
    whole = isinstance(column, np.ndarray) and column.dtype.kind in "iu"
    if isinstance(column, np.ndarray) and whole and column.size and max(-int(column.min()), int(column.max())) < 2**52:
        return column, column
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        if column.dtype.kind == "f" and np.isnan(column).any():
            raise ColumnError("run", int(np.flatnonzero(np.isnan(column))[0]), "is empty")
        found, inverse = unique(column)
        return inverse.astype(np.int32, copy=False), found.astype(np.float64)
    run = coded("run", column)
    try:
        return run.codes, np.array([float(name) for name in run.names])
    except ValueError:
        return run.codes, None


def unique(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The distinct values in ascending order, and the index of each row's value. Integers in a narrow range are looked
    up in a table, because sorting millions of them would take longer than all other steps.
    """
    least, most = (int(values.min()), int(values.max())) if values.dtype.kind in "iu" and values.size else (0, 0)
    if values.dtype.kind not in "iu" or not values.size or most - least > 2 * values.size + 1000:
        return np.unique(values, return_inverse=True)
    away = (values - least).astype(np.int32)
    seen = np.zeros(most - least + 1, dtype=np.bool_)
    seen[away] = True
    there = np.flatnonzero(seen)
    number = np.empty(seen.size, dtype=np.int32)
    number[there] = np.arange(there.size, dtype=np.int32)
    return there + least, number[away]


def first_rows(codes: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The first row with each of `count` codes; every code must occur."""
    found = np.empty(count, dtype=np.intp)
    found[codes[::-1]] = np.arange(codes.size - 1, -1, -1)  # in reverse, so that the first row is written last
    return found
