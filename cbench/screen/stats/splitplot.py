"""Analyze split plots: test hard factors against the batches and easy factors against the variation within batches.

The model is y = mu + A + w + B + AB + e, with the error w of a batch and the error e within batches: G. E. P. Box, J.
S. Hunter, W. G. Hunter, Statistics for Experimenters (2nd ed. 2005), section 9.1; D. C. Montgomery, Design and Analysis
of Experiments, "The split-plot design". Each effect is adjusted for all other effects of the same or a lower
order; if all cells have equally many values, the adjustment changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cbench.screen.design.testability import SEVERAL
from cbench.screen.stats.anova_table import (
    HIGHER,
    REPLICATES,
    WHOLE,
    WHOLE_ERROR,
    WITHIN,
    WITHIN_ERROR,
    AnovaRow,
    AnovaTable,
    EffectEstimate,
    codes,
)
from cbench.screen.stats.block_tests import Effect
from cbench.screen.stats.effects import Levels, Values
from cbench.stats.interval import exponent


@dataclass(frozen=True, slots=True)
class SplitPlot:
    """The table of a split-plot analysis. `rows`: hard effects, whole-plot error, easy effects and their interactions
    with hard ones, within-plot error, total. `refused`: untestable effects with the reason, as text; `batches`: the
    number of batches used; `dropped`: labels of batches that lack a treatment that another batch with the same hard
    levels has.
    """

    rows: tuple[AnovaRow, ...]
    refused: tuple[str, ...]
    batches: int
    dropped: tuple[int, ...]

    @property
    def errors(self) -> dict[str, AnovaRow]:
        """The rows of the error terms by stratum."""
        errors = ((WHOLE, WHOLE_ERROR), (WITHIN, WITHIN_ERROR))
        return {stratum: row for stratum, source in errors for row in self.rows if row.source == source}


def split_plot(
    names: Sequence[str],
    levels: Levels,
    plots: NDArray[np.intp],
    values: Values,
    hard: Sequence[int],
    replicates: NDArray[np.intp] | None = None,
) -> tuple[SplitPlot, dict[Effect, AnovaRow], dict[Effect, EffectEstimate]]:
    """The analysis, the row of each effect, and its size with a standard error. A treatment of a batch may have several
    rows, whose means are used.

    `levels`: shape (rows, factors); `plots`: the batch of each row, as arbitrary integers; `values`: shape (rows,), NaN
    omitted; `hard`: numbers of the factors that are constant in a batch; `replicates`: the block of whole plots of each
    batch, indexed by the batch's number, or None. Differences between these blocks are not part of the error. Effects
    of one or two factors have separate rows; all others share one row per stratum.
    """
    levels, plots, y = _means(levels, plots, values)
    dropped = _incomplete(levels, plots, hard)
    keep = ~np.isin(plots, dropped)
    levels, plots, y = levels[keep], plots[keep], y[keep]
    if not y.size:
        return SplitPlot((), ("no values are left",), 0, dropped), {}, {}
    power = exponent(y)
    y = np.ldexp(y, -power)
    scale = float(np.abs(y).max())
    y = y - y.mean()
    if float(np.abs(y).max()) <= 1e-14 * scale:  # ignore variance due to rounding
        y = np.zeros_like(y)
    varied = [each for each in range(levels.shape[1]) if np.unique(levels[:, each]).size > 1]
    effects = [*((each,) for each in varied), *combinations(varied, 2)]
    whole = [each for each in effects if set(each) <= set(hard)]
    table = AnovaTable(names, levels, y)
    if replicates is not None:
        table.add(REPLICATES, WHOLE, replicates[plots])
    table.take(whole, WHOLE)
    if whole:
        table.add(HIGHER, WHOLE, codes(levels[:, list(hard)]))
    table.add(WHOLE_ERROR, WHOLE, plots)
    table.take([each for each in effects if each not in whole], WITHIN)
    table.add(HIGHER, WITHIN, codes(levels))
    table.within()
    rows, effect_rows = table.finished(2 * power)
    split = SplitPlot(rows, (), np.unique(plots).size, dropped)
    refused = []
    for stratum, error in split.errors.items():
        ours = [row for row in effect_rows.values() if row.stratum == stratum and row.p is None]
        if lost := [row.source for row in ours if row.df or not error.df]:
            refused.append(f"{', '.join(lost)} cannot be tested{_why(stratum, error.df, [names[at] for at in hard])}")
    estimates = table.with_errors({row: effect_rows[row].stratum or "" for row in effect_rows}, power)
    return replace(split, refused=tuple(refused)), effect_rows, estimates


def _why(stratum: str, df: int, names: Sequence[str]) -> str:
    """The reason why effects of a stratum have no error to compare with; `names`: the names of the hard factors."""
    each = ", ".join(names)
    if stratum == WHOLE and df:
        return ": the batches of a level are identical, so the whole-plot error is 0; values are too coarse for a test"
    if stratum == WHOLE:
        return f": one batch per level of {each}; {SEVERAL}"
    if df:
        batches = "the batches of a level" if names else "all batches"
        return f" against the batches: effects are identical in {batches}, so the within-plot error is 0"
    level = f" per level of {each}" if names else ""
    return f" against the batches: one batch{level}; its iterations show effects in this batch only"


def _means(levels: Levels, plots: NDArray[np.intp], values: Values) -> tuple[Levels, NDArray[np.intp], Values]:
    """The mean value of each treatment of a batch, with its levels and its batch."""
    some = ~np.isnan(values)
    cells, at = np.unique(np.column_stack([plots, levels])[some], axis=0, return_inverse=True)
    counts = np.bincount(at.ravel(), minlength=cells.shape[0])
    means = np.bincount(at.ravel(), weights=values[some], minlength=cells.shape[0]) / counts
    return cells[:, 1:], cells[:, 0], means


def _incomplete(levels: Levels, plots: NDArray[np.intp], hard: Sequence[int]) -> tuple[int, ...]:
    combos = codes(levels[:, list(hard)])
    labels = []
    for combo in np.unique(combos):
        ours = combos == combo
        wanted = np.unique(levels[ours], axis=0).shape[0]
        sizes = Counter(plots[ours].tolist())
        labels += [int(plot) for plot, size in sizes.items() if size < wanted]
    return tuple(sorted(labels))
