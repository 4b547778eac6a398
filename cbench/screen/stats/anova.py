"""Analyze the variance of single values, for experiments with few, incomplete or unknown iterations.

Signed ranks treat a whole iteration as one observation, so a handful of iterations cannot reject. This analysis treats
each value as one observation and assumes normal noise of equal variance: R. A. Fisher, Statistical Methods for Research
Workers (1925). With groups of equal size, F approximates the permutation test (G. E. P. Box, S. L. Andersen, J. R.
Statist. Soc. B 17 (1955) 1-26). The error is the variation between values of one treatment (and block). If no treatment
has two values, effects of more than two factors serve as the error; if there are none, two-factor interactions do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan

import numpy as np
from numpy.typing import NDArray

from cbench.screen.design.detectable import MOST_VALUES
from cbench.screen.stats.anova_table import (
    HIGHER,
    REPLICATES,
    WITHIN,
    AnovaRow,
    AnovaTable,
    EffectEstimate,
    codes,
)
from cbench.screen.stats.block_tests import Effect, EffectTest, LevelDifference
from cbench.screen.stats.effects import Levels, Values
from cbench.stats.interval import exponent

ANOVA = "analysis of variance"
REPEATS, ORDERS, INTERACTIONS = "values of one treatment", "effects of three factors or more", "interactions"
"""The possible sources of the error term."""


@dataclass(frozen=True, slots=True)
class Anova:
    """The result of anova(). `rows`: blocks, effects, higher orders, error, total; `error`: the source of the error
    term (REPEATS, ORDERS or INTERACTIONS), "" if there is none; `effects`: the tests; `untested`: the untested effects,
    with reasons.
    """

    rows: tuple[AnovaRow, ...]
    error: str
    effects: Mapping[Effect, EffectTest]
    untested: Mapping[Effect, str]


def anova(names: Sequence[str], levels: Levels, values: Values, blocks: NDArray[np.intp] | None = None) -> Anova:
    """Analyze the variance of values. `levels`: shape (rows, factors); `values`: shape (rows,), NaN omitted; `blocks`:
    the block of each row, None for a completely randomized experiment, whose rows may be in any order. Differences
    between blocks are not part of the error.
    """
    some = ~np.isnan(values)
    levels, values = levels[some], values[some]
    blocks = None if blocks is None else blocks[some]
    varied = [each for each in range(levels.shape[1]) if np.unique(levels[:, each]).size > 1]
    every: list[Effect] = [*((each,) for each in varied), *combinations(varied, 2)]
    if not every or (blocks is not None and values.size > MOST_VALUES):
        why = f"an analysis of variance with iterations supports at most {MOST_VALUES:,} values"
        return Anova((), "", {}, dict.fromkeys(every, why))
    power = exponent(values)
    y = np.ldexp(values, -power)
    scale = float(np.abs(y).max())
    y = y - y.mean()
    y = np.zeros_like(y) if float(np.abs(y).max()) <= 1e-14 * scale else y  # ignore variance due to rounding
    weights, repeats = None, (0.0, 0)
    if blocks is None:
        levels, y, weights, repeats = _cells(levels, y)
    for error in (REPEATS, ORDERS, INTERACTIONS):
        effects = [each for each in every if error != INTERACTIONS or len(each) == 1]
        if error == REPEATS and blocks is None and not repeats[1]:
            continue
        table = AnovaTable(names, levels, y, weights, repeats)
        if blocks is not None:
            table.add(REPLICATES, WITHIN, blocks)
        table.take(effects, WITHIN)
        if error == REPEATS and blocks is not None:
            table.add(HIGHER, WITHIN, codes(levels))
        table.within()
        if table.error_df:
            break
    else:
        return Anova(
            (), "", {}, dict.fromkeys(every, "there is one value of each treatment, so there is no error term")
        )
    rows, by_effect = table.finished(2 * power)
    estimates = table.with_errors(dict.fromkeys(effects, WITHIN), power)
    tests, untested = {}, dict.fromkeys(every, "interactions serve as the error term, since there is no other")
    for effect, row in by_effect.items():
        if row.p is None or row.f is None:
            alike = "the error is 0: the values are too coarse to show the variation that a test requires"
            untested[effect] = alike if row.df else "it cannot be separated from other effects or from the blocks"
            continue
        untested.pop(effect)
        tests[effect] = tested(ANOVA, row, estimates.get(effect), table.error_df)
    left = {effect: why for effect, why in untested.items() if effect not in tests}
    return Anova(rows, error, tests, left)


def _cells(levels: Levels, y: Values) -> tuple[Levels, Values, Values, tuple[float, int]]:
    """Four results. Three have an entry per treatment: its levels, its mean times the square root of its number of
    values, and this square root. The fourth is the sum of squares within treatments, with its degrees of freedom.
    """
    cells, at, counts = np.unique(levels, axis=0, return_inverse=True, return_counts=True)
    at = at.ravel()
    means = np.bincount(at, weights=y) / counts
    left = y - means[at]
    weights = np.sqrt(counts)
    return cells, weights * means, weights, (float(left @ left), y.size - counts.size)


def tested(by: str, row: AnovaRow, estimate: EffectEstimate | None, df: int) -> EffectTest:
    """The test of an effect, from its row of an analysis of variance. `by`: the name of the method; `estimate`: None if
    the effect has no estimate; `df`: the degrees of freedom of the error.
    """
    size, se = None, None
    differences: tuple[LevelDifference, ...] = ()
    if estimate is not None and len(estimate.estimates) == 1:
        size, se = estimate.estimates[0], None if isnan(estimate.errors[0]) else estimate.errors[0]
    elif estimate is not None and not any(isnan(each) for each in estimate.errors):
        pairs = zip(estimate.estimates, estimate.errors, strict=True)
        differences = tuple(LevelDifference(*pair) for pair in pairs)
    assert row.p is not None
    return EffectTest(by, size, se, row.f, row.df, row.p, row.p, None, df, differences)
