"""Split-plot analysis of variance: hard factors against the batches, easy ones against what is within batches.

y = mu + A + w + B + AB + e with a batch's error w and, within batches, e. G. E. P. Box, J. S. Hunter, W. G. Hunter,
Statistics for Experimenters (2nd ed. 2005), section 9.1; D. C. Montgomery, Design and Analysis of Experiments, "The
split-plot design". Each effect is what it has beyond all others of as many factors or fewer; where all cells have
equally many values that is the effect itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cbench.screen.design.factorial import effect_name
from cbench.screen.design.testability import SEVERAL
from cbench.screen.stats.block_tests import Effect
from cbench.screen.stats.effects import Levels, Values
from cbench.stats.distributions import f_sf
from cbench.stats.interval import exponent, scaled

WHOLE, WITHIN = "whole plots", "within plots"
WHOLE_ERROR, WITHIN_ERROR, TOTAL = "whole-plot error", "within-plot error", "total"
HIGHER = "higher orders"
"""The effects of more than two factors, of the stratum in its row."""


@dataclass(frozen=True, slots=True)
class AnovaRow:
    """A line of the table. `stratum`: WHOLE or WITHIN, None for the total. `f` and `p` are None for errors and where
    there is no error to compare with, or one of 0: values are coarse then, and say nothing of how much others would
    differ. An effect that is 0 too has the `p` 1."""

    source: str
    stratum: str | None
    ss: float
    df: int
    ms: float | None
    f: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class SplitPlot:
    """`rows`: hard effects, whole-plot error, easy effects and those of both, within-plot error, total. `refused`: in
    words what cannot be tested and why; `batches`: how many were used; `dropped`: batches (their labels) that lack a
    treatment which another batch of the same hard levels has."""

    rows: tuple[AnovaRow, ...]
    refused: tuple[str, ...]
    batches: int
    dropped: tuple[int, ...]

    @property
    def errors(self) -> dict[str, AnovaRow]:
        """By stratum."""
        errors = ((WHOLE, WHOLE_ERROR), (WITHIN, WITHIN_ERROR))
        return {stratum: row for stratum, source in errors for row in self.rows if row.source == source}


def split_plot(
    names: Sequence[str], levels: Levels, plots: NDArray[np.intp], values: Values, hard: Sequence[int]
) -> tuple[SplitPlot, dict[Effect, AnovaRow]]:
    """The analysis, and the row of each effect. One row for each value, or several for each treatment of a batch (their
    means are taken).

    `levels`: shape (rows, factors); `plots`: the batch of each row, any whole numbers; `values`: shape (rows,), NaN
    left out; `hard`: numbers of the factors that are constant in a batch. Effects of up to two factors have rows of
    their own, the others one together.
    """
    levels, plots, y = _means(levels, plots, values)
    dropped = _incomplete(levels, plots, hard)
    keep = ~np.isin(plots, dropped)
    levels, plots, y = levels[keep], plots[keep], y[keep]
    if not y.size:
        return SplitPlot((), ("no values are left",), 0, dropped), {}
    power = exponent(y)
    y = np.ldexp(y, -power)
    scale = float(np.abs(y).max())
    y = y - y.mean()
    if float(np.abs(y).max()) <= 1e-14 * scale:  # rounding is no variance
        y = np.zeros_like(y)
    varied = [each for each in range(levels.shape[1]) if np.unique(levels[:, each]).size > 1]
    effects = [*((each,) for each in varied), *combinations(varied, 2)]
    whole = [each for each in effects if set(each) <= set(hard)]
    table = _Table(names, levels, y)
    table.take(whole, WHOLE)
    if whole:
        table.add(HIGHER, WHOLE, _codes(levels[:, list(hard)]))
    table.add(WHOLE_ERROR, WHOLE, plots)
    table.take([each for each in effects if each not in whole], WITHIN)
    table.add(HIGHER, WITHIN, _codes(levels))
    table.within()
    rows, effect_rows = table.finished(2 * power)
    split = SplitPlot(rows, (), np.unique(plots).size, dropped)
    refused = []
    for stratum, error in split.errors.items():
        ours = [row for row in effect_rows.values() if row.stratum == stratum and row.p is None]
        if lost := [row.source for row in ours if row.df or not error.df]:
            refused.append(f"{', '.join(lost)} cannot be tested{_why(stratum, error.df, [names[at] for at in hard])}")
    return replace(split, refused=tuple(refused)), effect_rows


def _why(stratum: str, df: int, names: Sequence[str]) -> str:
    """Why effects of a stratum have nothing to compare them with; `names` of the hard factors."""
    each = ", ".join(names)
    if stratum == WHOLE and df:
        return ": the batches of a level are exactly alike, so the whole-plot error is 0; values are too coarse for it"
    if stratum == WHOLE:
        return f": one batch per level of {each}; {SEVERAL}"
    if df:
        batches = "the batches of a level" if names else "all batches"
        return f" against the batches: effects are exactly alike in {batches}, so the within-plot error is 0"
    level = f" per level of {each}" if names else ""
    return f" against the batches: one batch{level}; its iterations can tell of effects in this batch only"


class _Table:
    """Takes the sums of squares of one source after the other out of the values (their mean is 0)."""

    def __init__(self, names: Sequence[str], levels: Levels, y: Values) -> None:
        self._names, self._levels, self._y = names, levels, y
        self._basis = np.full((y.size, 1), y.size**-0.5)
        self._parts: list[tuple[str, Effect, str, float, int]] = []

    def take(self, effects: Sequence[Effect], stratum: str) -> None:
        """Effects, each after all others of as many factors or fewer."""
        columns = {effect: _columns(_codes(self._levels[:, list(effect)])) for effect in effects}
        for size in sorted({len(effect) for effect in effects}):
            group = [effect for effect in effects if len(effect) == size]
            for effect in group:
                others = [columns[other] for other in group if other != effect]
                basis = np.hstack([self._basis, _beyond(self._basis, np.hstack(others))]) if others else self._basis
                part = _beyond(basis, columns[effect]).T @ self._y
                self._keep(effect_name(self._names, effect), effect, stratum, part)
            self._extend(np.hstack([columns[effect] for effect in group]))

    def add(self, source: str, stratum: str, codes: NDArray[np.intp]) -> None:
        """What all rows with one code have beyond everything before; the error also where that is nothing."""
        new = self._extend(_columns(codes))
        if new.shape[1] or source == WHOLE_ERROR:
            self._keep(source, (), stratum, new.T @ self._y)

    def within(self) -> None:
        """The error within plots: all that is left."""
        left = self._y - self._basis @ (self._basis.T @ self._y)
        self._keep(WITHIN_ERROR, (), WITHIN, left, self._y.size - self._basis.shape[1])

    def finished(self, power: int) -> tuple[tuple[AnovaRow, ...], dict[Effect, AnovaRow]]:
        """The rows with F and p by their stratum's error, sums of squares times 2^power; and those of the effects."""
        errors = {stratum: (ss, df) for name, _, stratum, ss, df in self._parts if name in (WHOLE_ERROR, WITHIN_ERROR)}
        rows, effects = [], {}
        for source, effect, stratum, ss, df in self._parts:
            error_ss, error_df = errors[stratum]
            f, p = None, None
            if source not in (WHOLE_ERROR, WITHIN_ERROR) and error_df and df:
                if error_ss > 0:
                    f = ss / df / (error_ss / error_df)
                    p = f_sf(f, df, error_df)
                elif not ss:
                    p = 1.0
            rows.append(AnovaRow(source, stratum, scaled(ss, power), df, scaled(ss / df, power) if df else None, f, p))
            if effect:
                effects[effect] = rows[-1]
        rows.append(AnovaRow(TOTAL, None, scaled(float(self._y @ self._y), power), self._y.size - 1, None, None, None))
        return tuple(rows), effects

    def _extend(self, columns: Values) -> Values:
        new = _beyond(self._basis, columns)
        self._basis = np.hstack([self._basis, new])
        return new

    def _keep(self, source: str, effect: Effect, stratum: str, part: Values, df: int | None = None) -> None:
        df = part.size if df is None else df
        ss = float(part @ part)
        least = 1e-24 * float(self._y @ self._y)  # rounding is no variance
        self._parts.append((source, effect, stratum, ss if df and ss > least else 0.0, df))


def _means(levels: Levels, plots: NDArray[np.intp], values: Values) -> tuple[Levels, NDArray[np.intp], Values]:
    """One value for each treatment of a batch."""
    some = ~np.isnan(values)
    cells, at = np.unique(np.column_stack([plots, levels])[some], axis=0, return_inverse=True)
    counts = np.bincount(at.ravel(), minlength=cells.shape[0])
    means = np.bincount(at.ravel(), weights=values[some], minlength=cells.shape[0]) / counts
    return cells[:, 1:], cells[:, 0], means


def _incomplete(levels: Levels, plots: NDArray[np.intp], hard: Sequence[int]) -> tuple[int, ...]:
    combos = _codes(levels[:, list(hard)])
    labels = []
    for combo in np.unique(combos):
        ours = combos == combo
        wanted = np.unique(levels[ours], axis=0).shape[0]
        sizes = Counter(plots[ours].tolist())
        labels += [int(plot) for plot, size in sizes.items() if size < wanted]
    return tuple(sorted(labels))


def _columns(codes: NDArray[np.intp]) -> Values:
    """1 where a row has the column's code."""
    values, at = np.unique(codes, return_inverse=True)
    columns = np.zeros((at.size, values.size))
    columns[np.arange(at.size), at] = 1.0
    return columns


def _beyond(basis: Values, columns: Values) -> Values:
    """An orthonormal basis of what the columns have beyond an orthonormal one."""
    for _ in range(2):  # once leaves rounding in it
        columns = columns - basis @ (basis.T @ columns)
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-8])


def _codes(levels: Levels) -> NDArray[np.intp]:
    """One number for each different row."""
    if not levels.shape[1]:
        return np.zeros(levels.shape[0], dtype=np.intp)
    _, at = np.unique(levels, axis=0, return_inverse=True)
    return np.asarray(at.ravel(), dtype=np.intp)
