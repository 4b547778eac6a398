"""Read a screen's data from its store, or from a CSV or Parquet file.

A table has a column for each factor, and a column for each response, or the columns `response` and `value`.
`iteration`, `batch` (or `boot`), `position`, `workload`, `unit` and `questionable` are optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cbench.formats.registry import refuse_without
from cbench.screen.data.data import Codes, Data, Values
from cbench.screen.data.read_series import series
from cbench.screen.data.roles import MARK, Chosen, roles
from cbench.screen.design.factorial import Factor
from cbench.store.kind import is_store
from cbench.tables import read as table
from cbench.tables.columns import Coded, Column, ColumnError, Columns, coded, numbers_of
from cbench.tables.separators import other_separator
from quiet import UsageError

OWN = ("workload", "run", "batch", "iteration", "position", "treatment", MARK)
"""Columns of `cbench export`, in their order."""
SIGNS = {"-": -1.0, "+": 1.0}
"""The levels - and + that textbooks use, as numbers."""
NO_TREATMENTS = (
    "run them with `cbench screen run`, or give a CSV file with the column value and a column for each factor"
)
MOST_LEVELS = 50
MOST_TREATMENTS = 4096
FEW_LEVELS = 3
"""A column with more levels than this, each in fewer than two rows on average, is rejected as a probable response."""


def read(path: Path, chosen: Chosen | None = None) -> Data:
    """Read a screen's store, or a CSV or Parquet file (`chosen`: the roles of its columns). Raises UsageError for an
    unusable file.
    """
    chosen = chosen or Chosen()
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    refuse_without(path, "treatments", NO_TREATMENTS)
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not is_store(path):
        data = _table(path, chosen)
    elif chosen:
        raise UsageError(
            "--factor, --value, --hard, --block, --batch and --iteration-by-order apply only to a table, but "
            f"{path} is a store: omit them"
        )
    else:
        from cbench.screen.data import read_store

        data = read_store.read(path)
    if not any(each.value.size for each in data.series):
        raise UsageError(f"{path}: contains no values")
    return replace(data, series=tuple(each for each in data.series if each.value.size))


def _table(path: Path, chosen: Chosen) -> Data:
    """The data of a table. Raises UsageError, with the line and the column, for invalid content."""
    parquet = path.suffix.lower() in table.PARQUET
    try:
        return _data(path, columns(path, parquet), chosen)
    except ColumnError as error:
        raise table.placed(path, parquet, error) from None


def columns(path: Path, parquet: bool) -> Columns:
    """All columns of a file. Raises UsageError if the file cannot be read, or if a column appears twice."""

    def once(names: list[str]) -> list[str]:
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise UsageError(f"{path}: column {twice[0] or '(without a name)'} appears twice")
        return names

    if parquet:
        return table.parquet_columns(path, once)
    names = once(table.header(path))
    if other := other_separator(names):
        raise UsageError(f"{path}: {other}")
    return table.plain(path, names)


def exported(names: Sequence[str]) -> Chosen | None:
    """The roles of the columns if `cbench export` wrote the file: first factors, then the fixed columns of `cbench
    export`, then responses. None for other files.
    """
    places = [names.index(each) for each in OWN if each in names]
    if len(places) < len(OWN) or places[0] == 0 or places != list(range(places[0], places[0] + len(OWN))):
        return None
    end = names.index("failure") if "failure" in names else len(names)
    values = names[places[-1] + 1 : end]
    return Chosen(tuple(names[: places[0]]), tuple(values)) if values else None


def _data(path: Path, columns: Columns, chosen: Chosen) -> Data:
    known = exported(list(columns))
    if known and not (chosen.factors or chosen.values):
        chosen = replace(chosen, factors=known.factors, values=known.values)
    _check(path, columns, chosen)
    role = roles(columns, chosen)
    factors = list(role.factors)
    if not factors:
        raise UsageError(f"{path}: no factor column; it has {', '.join(list(columns)[:20])}")
    if not _rows(columns):
        raise UsageError(f"{path}: contains no trials")
    levels = {name: _levels(name, columns[name]) for name in factors}
    if not chosen.factors:
        _not_measured(levels)
    if wrong := [name for name in chosen.hard if name not in factors]:
        raise UsageError(f"--hard {wrong[0]}: not a factor; the factors are {', '.join(factors)}")
    stacked = np.stack([levels[name].codes for name in factors], axis=1)
    combined, rows = np.unique(stacked, axis=0, return_inverse=True)
    treatments = tuple(tuple(int(level) for level in each) for each in combined)
    if len(treatments) > MOST_TREATMENTS:
        of = f"{len(treatments):,} treatments of {', '.join(factors)}"
        raise UsageError(f"{path}: {of}, more than {MOST_TREATMENTS:,}: name only the factors with --factor")
    treatment = rows.reshape(-1).astype(np.int32)
    block = coded(chosen.block, _texts(columns[chosen.block])) if chosen.block else None
    batch = _levels(role.batch, columns[role.batch], True) if role.batch else None
    if batch is None:
        batch = _batches(levels, chosen.hard, treatment.size, block)
    varied = {name: _varied_within(levels[name].codes, batch) for name in factors}
    if wrong := [name for name in chosen.hard if varied[name] is not None]:
        name = wrong[0]
        raise UsageError(f"--hard {name}: {name} changes within batch {varied[name]}, so it is not hard to change")
    plots = {name for name in factors if len(batch.names) > 1 and len(levels[name].names) > 1 and varied[name] is None}
    typed_factors = tuple(Factor(name, levels[name].names, name in plots or name in chosen.hard) for name in factors)
    hard = any(factor.hard for factor in typed_factors)
    work = coded("workload", columns["workload"], blank=True) if role.workload else None
    iteration = _whole("iteration", numbers_of("iteration", columns["iteration"])) if role.iteration else None
    if iteration is None and block is not None and not hard:
        iteration = block.codes
    position = _whole("position", numbers_of("position", columns["position"])) if role.position else None
    return Data(
        path.stem,
        typed_factors,
        treatments,
        series(columns, chosen.values, treatment, iteration, batch.codes, position, work),
        batch.names,
        _questionable(columns, treatment) if MARK not in factors else {},
        warnings=(
            *(f"{name} repeats {of}: an effect of {of} may be that of {name}" for name, of in role.repeats.items()),
            *(_warnings(chosen, iteration, treatment) if len(batch.names) < 2 else ()),
        ),
        excluded=int(np.prod([len(each.levels) for each in typed_factors])) - len(treatments),
        randomised=iteration is None and not chosen.by_order,
        plot_blocks=_plot_blocks(batch, block) if block is not None and hard else (),
        columns=tuple(role.words.items()),
    )


def _warnings(chosen: Chosen, iteration: Codes | None, treatment: Codes) -> tuple[str, ...]:
    if iteration is not None or np.bincount(treatment).max(initial=0) < 2:
        return ()
    if chosen.by_order:
        return ("--iteration-by-order: the n-th rows of all treatments are treated as the n-th iteration",)
    return (
        "no column iteration: the rows are treated as completely randomized, whatever their order; "
        "--block COLUMN or --iteration-by-order pairs them",
    )


def _plot_blocks(batch: Coded, block: Coded) -> tuple[int, ...]:
    """The block of each batch. Raises UsageError if a batch is in two blocks."""
    numbers = []
    for code, name in enumerate(batch.names):
        mine = np.unique(block.codes[batch.codes == code])
        if mine.size != 1:
            raise UsageError(f"--block: batch {name} is in {mine.size} blocks, but each batch must be in one block")
        numbers.append(int(mine[0]))
    return tuple(numbers)


def _texts(column: Column) -> Coded | Sequence[object]:
    return column if isinstance(column, Coded) else list(column)


def _rows(columns: Columns) -> int:
    first = next(iter(columns.values()))
    return len(first.codes) if isinstance(first, Coded) else len(first)


def _check(path: Path, columns: Columns, chosen: Chosen) -> None:
    """Raise UsageError if a named column is missing, or if the file has no column of values."""
    there = ", ".join(list(columns)[:20])
    values = list(dict.fromkeys(chosen.values or ("value",)))
    for option, names in (("--factor", chosen.factors), ("--value", values)):
        for name in names:
            if name not in columns:
                hint = "; name the response columns with --value" if not chosen.values and name == "value" else ""
                said = f"{option} {name}: " if option == "--factor" or chosen.values else ""
                raise UsageError(f"{path}: {said}no column {name}; it has {there or 'none'}{hint}")
    if both := [name for name in chosen.factors if name in values]:
        raise UsageError(f"--factor {both[0]}: is also a response; omit it from --factor or --value")


def _levels(name: str, column: Column, any_number: bool = False) -> Coded:
    """A column as level names in natural order: numbers by size, other names alphabetically. Raises ColumnError for
    invalid levels.
    """
    if isinstance(column, np.ndarray):
        column = [f"{each:g}" if isinstance(each, float) else str(each) for each in column.tolist()]
    levels = coded(name, column)
    if len(levels.names) > MOST_LEVELS and not any_number:
        many = f"{len(levels.names):,} levels: too many for a factor"
        raise ColumnError(name, None, f"{many}; name the factors with --factor, or responses with --value")
    order = sorted(range(len(levels.names)), key=lambda at: _natural(levels.names[at]))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Coded(rank[levels.codes], tuple(levels.names[at] for at in order))


def _not_measured(levels: Mapping[str, Coded]) -> None:
    """Raise ColumnError for a column that was not named as a factor and looks like a response."""
    for name, column in levels.items():
        many, rows = len(column.names), len(column.codes)
        if many > FEW_LEVELS and 2 * many > rows:
            why = f"{many:,} levels in {rows:,} rows: is it a response? Treated as factors: {', '.join(levels)}"
            raise ColumnError(name, None, f"{why}; name the factors with --factor, or responses with --value")


def _batches(levels: Mapping[str, Coded], hard: Sequence[str], rows: int, block: Coded | None) -> Coded:
    """The batches of a table without a batch column: one for each combination of the hard factors' levels (in each
    block), in the order of rows; a single batch if no factor is hard.
    """
    names: dict[str, int] = {}
    columns = [[f"{name}={levels[name].names[code]}" for code in levels[name].codes.tolist()] for name in hard]
    if columns and block is not None:
        columns.insert(0, [f"{block.names[code]}:" for code in block.codes.tolist()])
    codes = [names.setdefault(" ".join(each), len(names)) for each in zip(*columns, strict=True)] or [0] * rows
    return Coded(np.array(codes, dtype=np.int32), tuple(names) or ("",))


def _varied_within(level: Codes, batch: Coded) -> str | None:
    """The first batch in which a factor has several levels; None if the factor changes only between batches."""
    pairs = np.unique(np.stack([batch.codes, level], axis=1), axis=0)[:, 0]
    twice = pairs[1:][pairs[1:] == pairs[:-1]]
    return batch.names[int(twice[0])] if twice.size else None


def _natural(name: str) -> tuple[int, float, str]:
    if name in SIGNS:
        return (0, SIGNS[name], name)
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _whole(name: str, value: Values) -> Codes:
    wrong = np.flatnonzero(~(np.abs(value) < 2**31) | (value != np.floor(value)))
    if wrong.size:
        raise ColumnError(name, int(wrong[0]), "is not a whole number below 2^31 in magnitude")
    return (value - value.min() if value.size else value).astype(np.int32)


def _questionable(columns: Columns, treatment: Codes) -> dict[int, str]:
    if MARK not in columns:
        return {}
    column = columns[MARK]
    marks = column if isinstance(column, Coded) else coded(MARK, column, blank=True)
    reasons: dict[int, str] = {}
    for code, reason in enumerate(marks.names):
        if reason.strip().lower() not in ("", "0", "no", "false", "none", "nan", "0.0"):
            for each in np.unique(treatment[marks.codes == code]).tolist():
                reasons.setdefault(each, "" if reason.strip().lower() in ("1", "yes", "true", "1.0") else reason)
    return reasons
