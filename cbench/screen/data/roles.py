"""Determine the role of each column of a table and describe it as text.

A column with a reserved name (`batch`, `seed`, `run` ...) is still a factor if its levels are crossed with the levels
of the other factors. `iteration` is a factor only if, in addition, every treatment has several rows in each iteration.
In a table with iterations, as written by `cbench export`, `batch`, `boot`, `position` and `workload` keep their
reserved meaning. A column whose levels match those of an earlier factor one to one is not a second factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cbench.screen.data.data import Codes
from cbench.tables.columns import Coded, ColumnError, Columns, coded
from quiet import UsageError

BATCHES = ("batch", "boot")
SHARED = (*BATCHES, "position", "workload")
MARK = "questionable"
KNOWN = ("iteration", *SHARED, "response", "value", "unit", MARK)
IGNORED = ("failure", "begun_ns", "ended_ns", "treatment", "trial", "run", "test", "order", "metric", "seed")
MOST_CROSSED = 10
"""The maximum number of levels of a factor with a reserved name."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns named on the command line. `hard`: factors that change only between batches; `block`: the column
    with the names of blocks; `batch`: the column with the batches between resets; `by_order`: whether the n-th rows of
    all treatments are one iteration.
    """

    factors: Sequence[str] = ()
    values: Sequence[str] = ()
    hard: Sequence[str] = ()
    block: str = ""
    batch: str = ""
    by_order: bool = False

    def __bool__(self) -> bool:
        return bool(self.factors or self.values or self.hard or self.block or self.batch or self.by_order)


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the columns with each role, "" if there is none. `words`: the role of each column as text;
    `repeats`: the columns that repeat a factor, with this factor.
    """

    factors: tuple[str, ...]
    batch: str
    iteration: str
    position: str
    workload: str
    words: Mapping[str, str]
    repeats: Mapping[str, str]


def roles(columns: Columns, chosen: Chosen) -> Roles:
    """The roles of all columns. Raises UsageError for a column that is missing or has two roles."""
    values = list(dict.fromkeys(chosen.values or ("value",)))
    iteration = "iteration" if "iteration" in columns and "iteration" not in chosen.factors else ""
    named = [each for each in (chosen.block, chosen.batch) if each]
    for option, name in (("--block", chosen.block), ("--batch", chosen.batch)):
        if name and name not in columns:
            raise UsageError(f"{option} {name}: no column {name}; the columns are {', '.join(list(columns)[:20])}")
        if name and (name in values or name in chosen.factors or named.count(name) > 1):
            raise UsageError(f"{option} {name}: already has another role")
    codes = {name: _codes(name, columns) for name in columns if name not in (*values, "unit", "response", "value")}
    factors, repeats = list(dict.fromkeys(chosen.factors)), dict[str, str]()
    if not factors:
        factors = [name for name in columns if name not in (*KNOWN, *IGNORED, *values, *named)]
        if iteration and iteration not in named and _repeated(columns, codes, factors):
            iteration = ""
        within = [codes[each] for each in (*BATCHES, iteration) if each in codes] if iteration else []
        for name in columns:
            other = name in (*IGNORED, MARK) or (not iteration and name in ("iteration", *SHARED))
            if other and name not in named and _crossed(codes[name], [codes[each] for each in factors], within):
                factors.append(name)
        factors.sort(key=list(columns).index)
        repeats = _repeats({name: codes[name] for name in factors if name not in chosen.hard})
        factors = [name for name in factors if name not in repeats]
    free = [each for each in columns if each not in factors and each not in values]
    batch = chosen.batch or next((name for name in BATCHES if name in free and name != chosen.block), "")
    position = "position" if "position" in free and "position" not in named else ""
    workload = "workload" if "workload" in free and "workload" not in named else ""
    meaning = {
        "response": "name of the response",
        "unit": "unit of the response",
        MARK: "mark of questionable treatments",
        batch: "batch, between two resets",
        iteration: "iteration, whose rows belong together",
        chosen.block: "block",
        position: "position in the iteration",
        workload: "workload, each with separate responses",
        **{name: f"ignored (its levels match those of the factor {of} one to one)" for name, of in repeats.items()},
        **dict.fromkeys(values, "response"),
        **dict.fromkeys(factors, "factor"),
        **dict.fromkeys(chosen.hard, "factor, changes only between batches"),
    }
    words = {}
    for name in columns:
        words[name] = meaning.get(name) or f"ignored ({_why(name, codes.get(name), bool(chosen.factors))})"
    return Roles(tuple(factors), batch, iteration, position, workload, words, repeats)


def _codes(name: str, columns: Columns) -> Codes:
    column = columns[name]
    try:
        if isinstance(column, np.ndarray):
            return np.unique(column, return_inverse=True)[1].ravel().astype(np.int32)
        return coded(name, column, blank=True).codes if not isinstance(column, Coded) else column.codes
    except (ColumnError, TypeError):
        return np.zeros(0, dtype=np.int32)


def _crossed(column: Codes, factors: Sequence[Codes], within: Sequence[Codes]) -> bool:
    """Whether each combination of the factors' levels occurs with each level of `column`. False if the column is
    constant within each combination of the `within` columns, such as an iteration.
    """
    levels = np.unique(column).size
    if not 2 <= levels <= MOST_CROSSED or any(each.size != column.size for each in factors):
        return False
    if not factors and column.size < 2 * levels:
        return False
    if within and _combined([*within, column])[1] == _combined(within)[1]:
        return False
    combos = _combined(factors)[1] if factors else 1
    return _combined([*factors, column])[1] == combos * levels


def _repeated(columns: Columns, codes: Mapping[str, Codes], factors: Sequence[str]) -> bool:
    """Whether each combination of the factors' levels occurs with each level of `iteration`, and always in several rows
    of one response.
    """
    iteration = codes["iteration"]
    if not factors or not _crossed(iteration, [codes[each] for each in factors], []):
        return False
    apart = [_codes(name, columns) for name in ("response", "workload", *BATCHES) if name in columns]
    cells, many = _combined([iteration, *(codes[each] for each in factors), *apart])
    return int(np.bincount(cells, minlength=many).min()) > 1


def _repeats(factors: Mapping[str, Codes]) -> dict[str, str]:
    """The columns whose levels match those of an earlier column one to one, with this column."""
    found: dict[str, str] = {}
    for one, other in combinations(factors, 2):
        pair = factors[one], factors[other]
        levels = {np.unique(each).size for each in pair}
        if one not in found and pair[0].size == pair[1].size and levels == {_combined(pair)[1]} and min(levels) > 1:
            found.setdefault(other, one)
    return found


def _combined(columns: Sequence[Codes]) -> tuple[Codes, int]:
    cells, at = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return at.ravel().astype(np.int32), int(cells.shape[1])


def _why(name: str, codes: Codes | None, named: bool) -> str:
    if named:
        return "not named with --factor"
    levels = np.unique(codes).size if codes is not None else 0
    if levels < 2:
        return "it has only one value"
    return "its levels are not crossed with those of the factors; --factor makes it a factor"
