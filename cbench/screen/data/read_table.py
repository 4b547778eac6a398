"""A screen's data from a file: its store, or a CSV or Parquet file with a column for each factor, `iteration`, and the
responses' columns, or one of `response` beside `value`. `batch` (or `boot`), `position`, `workload`, `unit` and
`questionable` are optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cbench.screen.data.data import Codes, Column, Columns, Data, Values
from cbench.screen.data.read_series import numbers, series
from cbench.screen.design.factorial import Factor
from cbench.store.kind import is_store
from cbench.tables import read as table
from cbench.tables.columns import Coded, ColumnError, coded
from quiet import UsageError

BATCHES = ("batch", "boot")
KNOWN = ("iteration", *BATCHES, "position", "workload", "response", "value", "unit", "questionable")
IGNORED = ("failure", "begun_ns", "ended_ns", "treatment", "trial", "run", "test", "order", "metric", "seed")
OWN = ("workload", "run", "batch", "iteration", "position", "treatment", "questionable")
"""Columns of `cbench export`, in their order."""
MOST_LEVELS = 50
MOST_TREATMENTS = 4096
FEW_LEVELS = 3
"""A column with more levels, each in fewer than two rows on average, is taken for values that were measured."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the command line says of a table: names of columns. `hard`: factors that change between batches only."""

    factors: Sequence[str] = ()
    values: Sequence[str] = ()
    hard: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.factors or self.values or self.hard)


def read(path: Path, chosen: Chosen | None = None) -> Data:
    """From a screen's store, or a CSV or Parquet file (`chosen`: which columns are what). Raises UsageError."""
    chosen = chosen or Chosen()
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if not is_store(path):
        data = _table(path, chosen)
    elif chosen:
        raise UsageError(f"--factor, --value, --hard: choose a table's columns, and {path} is a store")
    else:
        from cbench.screen.data import read_store

        data = read_store.read(path)
    if not any(each.value.size for each in data.series):
        raise UsageError(f"{path}: no values in it")
    return replace(data, series=tuple(each for each in data.series if each.value.size))


def _table(path: Path, chosen: Chosen) -> Data:
    """The data of a table. Raises UsageError, which names the line and the column."""
    parquet = path.suffix.lower() in table.PARQUET
    try:
        return _data(path, columns(path, parquet), chosen)
    except ColumnError as error:
        raise table.placed(path, parquet, error) from None


def columns(path: Path, parquet: bool) -> Columns:
    """Every column of a file. Raises UsageError."""

    def once(names: list[str]) -> list[str]:
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise UsageError(f"{path}: column {twice[0] or '(without a name)'} is there twice")
        return names

    return table.parquet_columns(path, once) if parquet else table.plain(path, once(table.header(path)))


def exported(names: Sequence[str]) -> Chosen | None:
    """What is what in a file of `cbench export`, which has the factors first and the responses after its own columns;
    None for another file."""
    places = [names.index(each) for each in OWN if each in names]
    if len(places) < len(OWN) or places[0] == 0 or places != list(range(places[0], places[0] + len(OWN))):
        return None
    end = names.index("failure") if "failure" in names else len(names)
    values = names[places[-1] + 1 : end]
    return Chosen(tuple(names[: places[0]]), tuple(values)) if values else None


def _data(path: Path, columns: Columns, chosen: Chosen) -> Data:
    chosen = chosen or exported(list(columns)) or chosen
    factors = _factors(path, columns, chosen)
    if not _rows(columns):
        raise UsageError(f"{path}: no trials in it")
    levels = {name: _levels(name, columns[name]) for name in factors}
    if not chosen.factors:
        _not_measured(levels)
    if wrong := [name for name in chosen.hard if name not in factors]:
        raise UsageError(f"--hard {wrong[0]}: no factor; the factors are {', '.join(factors)}")
    stacked = np.stack([levels[name].codes for name in factors], axis=1)
    combined, rows = np.unique(stacked, axis=0, return_inverse=True)
    treatments = tuple(tuple(int(level) for level in each) for each in combined)
    if len(treatments) > MOST_TREATMENTS:
        of = f"{len(treatments):,} treatments of {', '.join(factors)}"
        raise UsageError(f"{path}: {of}, more than {MOST_TREATMENTS:,}: is every one of these a factor?")
    treatment = rows.reshape(-1).astype(np.int32)
    batch_name = next((name for name in BATCHES if name in columns), "")
    batch = _levels(batch_name, columns[batch_name]) if batch_name else _batches(levels, chosen.hard, treatment.size)
    varied = {name: _varied_within(levels[name].codes, batch) for name in factors}
    if wrong := [name for name in chosen.hard if varied[name] is not None]:
        name = wrong[0]
        raise UsageError(f"--hard {name}: {name} changes within batch {varied[name]}, so it is not hard to change")
    plots = {name for name in factors if len(batch.names) > 1 and len(levels[name].names) > 1 and varied[name] is None}
    typed_factors = tuple(Factor(name, levels[name].names, name in plots or name in chosen.hard) for name in factors)
    workload = coded("workload", columns["workload"], blank=True) if "workload" in columns else None
    iteration = _whole("iteration", numbers("iteration", columns["iteration"])) if "iteration" in columns else None
    warnings: tuple[str, ...] = ()
    if iteration is None and np.bincount(treatment).max(initial=0) > 1:
        warnings = ("no column iteration: the n-th trials of all treatments are taken for the n-th iteration",)
    position = _whole("position", numbers("position", columns["position"])) if "position" in columns else None
    made_series = series(columns, chosen.values, treatment, iteration, batch.codes, position, workload)
    return Data(
        path.stem,
        typed_factors,
        treatments,
        made_series,
        batch.names,
        _questionable(columns, treatment),
        warnings=warnings,
        excluded=int(np.prod([len(each.levels) for each in typed_factors])) - len(treatments),
    )


def _rows(columns: Columns) -> int:
    first = next(iter(columns.values()))
    return len(first.codes) if isinstance(first, Coded) else len(first)


def _factors(path: Path, columns: Columns, chosen: Chosen) -> list[str]:
    """The factors' columns. Raises UsageError where they or the values are not there."""
    there = ", ".join(list(columns)[:20])
    values = list(dict.fromkeys(chosen.values or ("value",)))
    for option, names in (("--factor", chosen.factors), ("--value", values)):
        for name in names:
            if name not in columns:
                hint = "; name the columns of the responses by --value" if not chosen.values and name == "value" else ""
                said = f"{option} {name}: " if option == "--factor" or chosen.values else ""
                raise UsageError(f"{path}: {said}no column {name}; it has {there or 'none'}{hint}")
    factors = list(dict.fromkeys(chosen.factors)) or [
        name for name in columns if name not in (*KNOWN, *IGNORED, *values)
    ]
    if both := [name for name in factors if name in values]:
        raise UsageError(f"--factor {both[0]}: is a response as well")
    if not factors:
        raise UsageError(f"{path}: no column of a factor; it has {there}")
    return factors


def _levels(name: str, column: Column) -> Coded:
    """Names of levels in their natural order: numbers by size, other names by their letters. Raises ColumnError."""
    if isinstance(column, np.ndarray):
        column = [f"{each:g}" if isinstance(each, float) else str(each) for each in column.tolist()]
    levels = coded(name, column)
    if len(levels.names) > MOST_LEVELS and name not in BATCHES:
        many = f"{len(levels.names):,} levels: too many for a factor"
        raise ColumnError(name, None, f"{many}; name the factors by --factor, or responses by --value")
    order = sorted(range(len(levels.names)), key=lambda at: _natural(levels.names[at]))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Coded(rank[levels.codes], tuple(levels.names[at] for at in order))


def _not_measured(levels: Mapping[str, Coded]) -> None:
    """Raises ColumnError for a column that nobody called a factor and that looks like one of a response."""
    for name, column in levels.items():
        many, rows = len(column.names), len(column.codes)
        if many > FEW_LEVELS and 2 * many > rows:
            why = f"{many:,} levels in {rows:,} rows: is it a response? taken for factors are {', '.join(levels)}"
            raise ColumnError(name, None, f"{why}; name the factors by --factor, or responses by --value")


def _batches(levels: Mapping[str, Coded], hard: Sequence[str], rows: int) -> Coded:
    """Of a table that does not tell them: one for each combination of the hard factors' levels, in the order of rows;
    else a single one."""
    names: dict[str, int] = {}
    columns = [[f"{name}={levels[name].names[code]}" for code in levels[name].codes.tolist()] for name in hard]
    codes = [names.setdefault(" ".join(each), len(names)) for each in zip(*columns, strict=True)] or [0] * rows
    return Coded(np.array(codes, dtype=np.int32), tuple(names) or ("",))


def _varied_within(level: Codes, batch: Coded) -> str | None:
    """The first batch in which a factor has several levels; None where it changes between batches only."""
    pairs = np.unique(np.stack([batch.codes, level], axis=1), axis=0)[:, 0]
    twice = pairs[1:][pairs[1:] == pairs[:-1]]
    return batch.names[int(twice[0])] if twice.size else None


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _whole(name: str, value: Values) -> Codes:
    wrong = np.flatnonzero(~(np.abs(value) < 2**31) | (value != np.floor(value)))
    if wrong.size:
        raise ColumnError(name, int(wrong[0]), "is not a whole number")
    return (value - value.min() if value.size else value).astype(np.int32)


def _questionable(columns: Columns, treatment: Codes) -> dict[int, str]:
    if "questionable" not in columns:
        return {}
    column = columns["questionable"]
    marks = column if isinstance(column, Coded) else coded("questionable", column, blank=True)
    reasons: dict[int, str] = {}
    for code, reason in enumerate(marks.names):
        if reason.strip().lower() not in ("", "0", "no", "false", "none", "nan", "0.0"):
            for each in np.unique(treatment[marks.codes == code]).tolist():
                reasons.setdefault(each, "" if reason.strip().lower() in ("1", "yes", "true", "1.0") else reason)
    return reasons
