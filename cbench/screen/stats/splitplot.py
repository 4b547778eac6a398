"""Split-plot analysis of variance: hard factors against the batches, easy ones against what is within batches.

y = mu + A + w + B + AB + e with a batch's error w and, within batches, e. G. E. P. Box, J. S. Hunter, W. G. Hunter,
Statistics for Experimenters (2nd ed. 2005), section 9.1; D. C. Montgomery, Design and Analysis of Experiments, "The
split-plot design". Each effect is what it has beyond all others of as many factors or fewer; where all cells have
equally many values that is the effect itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cbench.screen.design.testability import SEVERAL
from cbench.screen.stats.effects import Levels, Values
from cbench.stats.distributions import f_sf
from cbench.stats.interval import exponent, scaled

WHOLE, WITHIN = "whole plots", "within plots"
WHOLE_ERROR, WITHIN_ERROR, TOTAL = "whole-plot error", "within-plot error", "total"
HIGHER = "higher orders"
"""The effects of more factors than are asked for, of the stratum in its row."""
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class AnovaRow:
    """A line of the table. `factors`: numbers of an effect's factors, () for errors, the total and higher orders;
    `stratum`: WHOLE or WITHIN, "" for the total. `f` and `p` are None for errors and where there is no error to compare
    with, or one of 0: values are coarse then, and say nothing of how much others would differ. An effect that is 0 too
    has the `p` 1."""

    source: str
    factors: tuple[int, ...]
    stratum: str
    ss: float
    df: int
    ms: float | None
    f: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class SplitPlot:
    """`rows`: hard effects, whole-plot error, easy effects and those of both, within-plot error, total. `refused`: in
    words what cannot be tested and why; `plots`: batches that were used; `dropped`: batches (their labels) that lack a
    treatment which another batch of the same hard levels has."""

    rows: tuple[AnovaRow, ...]
    refused: tuple[str, ...]
    plots: int
    dropped: tuple[int, ...]

    def row(self, source: str, stratum: str | None = None) -> AnovaRow:
        """By its source, such as "os" or WHOLE_ERROR, and the stratum where both have it. KeyError for another."""
        for each in self.rows:
            if each.source == source and stratum in (None, each.stratum):
                return each
        raise KeyError(source)


def split_plot(
    names: Sequence[str], levels: Levels, plots: NDArray[np.intp], values: Values, hard: Sequence[int], order: int = 2
) -> SplitPlot:
    """One row for each value, or several for each treatment of a batch (their means are taken).

    `levels`: shape (rows, factors); `plots`: the batch of each row, any whole numbers; `values`: shape (rows,), NaN
    left out; `hard`: numbers of the factors that are constant in a batch; effects of up to `order` factors have rows of
    their own, the others one together. ValueError where a hard factor varies within a batch or shapes do not fit.
    """
    levels, plots, y = _means(np.asarray(levels), np.asarray(plots), np.asarray(values, dtype=np.float64))
    for plot in np.unique(plots):
        for each in hard:
            if np.unique(levels[plots == plot, each]).size > 1:
                raise ValueError(f"{names[each]} changes within batch {plot}, so it is not hard to change")
    dropped = _incomplete(levels, plots, hard)
    keep = ~np.isin(plots, dropped)
    levels, plots, y = levels[keep], plots[keep], y[keep]
    if not y.size:
        return SplitPlot((), ("no values are left",), 0, dropped)
    power = exponent(y)
    y = np.ldexp(y, -power)
    scale = float(np.abs(y).max())
    y = y - y.mean()
    if float(np.abs(y).max()) <= 1e-14 * scale:  # rounding is no variance
        y = np.zeros_like(y)
    table = _Table(names, levels, y, order)
    _, at = np.unique(plots, return_inverse=True)
    whole = [each for each in table.effects if set(each) <= set(hard)]
    table.take(whole, WHOLE)
    if whole:
        table.rest(WHOLE, _codes(levels[:, list(hard)]))
    table.batches(at)
    table.take([each for each in table.effects if each not in whole], WITHIN)
    hard_codes, easy = _codes(levels[:, list(hard)]), [each for each in range(levels.shape[1]) if each not in hard]
    table.rest(WITHIN, _codes(np.column_stack([hard_codes, levels[:, easy]])))
    table.within()
    rows = table.finished(2 * power)
    refused = [
        f"{', '.join(lost)} cannot be tested{_alike(stratum, hard) if found.df else words}"
        for stratum, error, words in (
            (WHOLE, WHOLE_ERROR, _no_batches(names, hard)),
            (WITHIN, WITHIN_ERROR, _no_rest(names, hard)),
        )
        if (found := next(row for row in rows if row.source == error)) and (lost := _lost(rows, stratum, found))
    ]
    return SplitPlot(rows, tuple(refused), int(at.max()) + 1, dropped)


def _lost(rows: Sequence[AnovaRow], stratum: str, error: AnovaRow) -> list[str]:
    """Effects in a stratum that has nothing to compare them with."""
    ours = [row for row in rows if row.stratum == stratum and row.factors and row.p is None]
    return [row.source for row in ours if row.df or not error.df]


def _no_batches(names: Sequence[str], hard: Sequence[int]) -> str:
    each = ", ".join(names[at] for at in hard)
    return f": one batch per level of {each}; {SEVERAL}"


def _no_rest(names: Sequence[str], hard: Sequence[int]) -> str:
    each = f" per level of {', '.join(names[at] for at in hard)}" if hard else ""
    return f" against the batches: one batch{each}; its iterations can tell of effects in this batch only"


def _alike(stratum: str, hard: Sequence[int]) -> str:
    if stratum == WHOLE:
        return ": the batches of a level are exactly alike, so the whole-plot error is 0; values are too coarse for it"
    batches = "the batches of a level" if hard else "all batches"
    return f" against the batches: effects are exactly alike in {batches}, so the within-plot error is 0"


class _Table:
    """Takes the sums of squares of one source after the other out of the values (their mean is 0)."""

    def __init__(self, names: Sequence[str], levels: Levels, y: Values, order: int) -> None:
        self._names, self._levels = names, levels
        some = [each for each in range(levels.shape[1]) if np.unique(levels[:, each]).size > 1]
        self.effects = [each for size in range(1, order + 1) for each in combinations(some, size)]
        self._basis = np.full((y.size, 1), y.size**-0.5)
        self._y = y
        self._found: list[tuple[str, tuple[int, ...], str, float, int]] = []
        self._scale = float(y @ y)

    def take(self, effects: Sequence[tuple[int, ...]], stratum: str) -> None:
        """Effects, each after all others of as many factors or fewer."""
        made = {effect: _columns(_codes(self._levels[:, list(effect)])) for effect in effects}
        for size in sorted({len(effect) for effect in effects}):
            group = [effect for effect in effects if len(effect) == size]
            for effect in group:
                others = [made[other] for other in group if other != effect]
                basis = np.hstack([self._basis, _beyond(self._basis, np.hstack(others))]) if others else self._basis
                new = _beyond(basis, made[effect])
                self._keep(TIMES.join(self._names[each] for each in effect), effect, stratum, new)
            every = np.hstack([made[effect] for effect in group])
            self._basis = np.hstack([self._basis, _beyond(self._basis, every)])

    def rest(self, stratum: str, codes: NDArray[np.intp]) -> None:
        """What all these combinations of levels have beyond the effects."""
        self._add(HIGHER, stratum, codes)

    def batches(self, codes: NDArray[np.intp]) -> None:
        """The whole-plot error: what the batches have beyond everything before."""
        if not self._add(WHOLE_ERROR, WHOLE, codes):
            self._found.append((WHOLE_ERROR, (), WHOLE, 0.0, 0))

    def within(self) -> None:
        """The error within plots: all that is left."""
        left = self._y - self._basis @ (self._basis.T @ self._y)
        df = self._y.size - self._basis.shape[1]
        self._found.append((WITHIN_ERROR, (), WITHIN, self._told(float(left @ left)) if df else 0.0, df))

    def finished(self, power: int) -> tuple[AnovaRow, ...]:
        """The rows with F and p by their stratum's error, sums of squares times 2^power."""
        errors = {stratum: (ss, df) for name, _, stratum, ss, df in self._found if name in (WHOLE_ERROR, WITHIN_ERROR)}
        rows = []
        for source, effect, stratum, ss, df in self._found:
            error_ss, error_df = errors.get(stratum, (0.0, 0))
            f, p = None, None
            if source not in (WHOLE_ERROR, WITHIN_ERROR) and error_df and df:
                if error_ss > 0:
                    f = ss / df / (error_ss / error_df)
                    p = f_sf(f, df, error_df)
                elif not ss:
                    p = 1.0
            ms = scaled(ss / df, power) if df else None
            rows.append(AnovaRow(source, effect, stratum, scaled(ss, power), df, ms, f, p))
        total = AnovaRow(TOTAL, (), "", scaled(self._scale, power), self._y.size - 1, None, None, None)
        return (*rows, total)

    def _add(self, name: str, stratum: str, codes: NDArray[np.intp]) -> int:
        new = _beyond(self._basis, _columns(codes))
        self._basis = np.hstack([self._basis, new])
        if new.shape[1]:
            self._keep(name, (), stratum, new)
        return int(new.shape[1])

    def _keep(self, name: str, effect: tuple[int, ...], stratum: str, new: Values) -> None:
        part = new.T @ self._y
        self._found.append((name, effect, stratum, self._told(float(part @ part)), int(new.shape[1])))

    def _told(self, ss: float) -> float:
        """Rounding is no variance."""
        return ss if ss > 1e-24 * self._scale else 0.0


def _means(levels: Levels, plots: NDArray[np.intp], values: Values) -> tuple[Levels, NDArray[np.intp], Values]:
    """One value for each treatment of a batch."""
    if levels.ndim != 2 or plots.shape != values.shape or levels.shape[0] != values.size:
        raise ValueError("one batch, one value and one row of levels for each trial are needed")
    some = ~np.isnan(values)
    cells, at = np.unique(np.column_stack([plots, levels])[some], axis=0, return_inverse=True)
    counts = np.bincount(at.ravel(), minlength=cells.shape[0])
    means = np.bincount(at.ravel(), weights=values[some], minlength=cells.shape[0]) / counts
    return cells[:, 1:], cells[:, 0], means


def _incomplete(levels: Levels, plots: NDArray[np.intp], hard: Sequence[int]) -> tuple[int, ...]:
    combos = _codes(levels[:, list(hard)])
    found = []
    for combo in np.unique(combos):
        ours = combos == combo
        wanted = np.unique(levels[ours], axis=0).shape[0]
        sizes = Counter(plots[ours].tolist())
        found += [int(plot) for plot, size in sizes.items() if size < wanted]
    return tuple(sorted(found))


def _columns(codes: NDArray[np.intp]) -> Values:
    """1 where a row has the column's code."""
    found, at = np.unique(codes, return_inverse=True)
    columns = np.zeros((at.size, found.size))
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
