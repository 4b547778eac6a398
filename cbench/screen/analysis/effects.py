"""Compute the factors' effects on one response: main effects, interactions, values by block, block plots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.result import EffectResult, InteractionResult, LevelMean, MainEffectResult
from cbench.screen.data.data import Data, ResponseSeries, Values
from cbench.screen.design.factorial import effect_name
from cbench.screen.design.testability import Assessment
from cbench.screen.stats.block_means import block_means, even
from cbench.screen.stats.blockplot import BlockPlot, block_plot
from cbench.screen.stats.effects import Interaction, MainEffect, interaction, main_effect

MOST_INTERACTIONS = 200
ROUNDING = 1e-14
"""An adjusted effect counts as equal to the plain effect, or as 0, up to this share of the largest magnitude of a mean.
"""
SUMMED = 1e-13
"""The same share for the estimate of a test, which is a mean of single values."""
E = TypeVar("E", bound=EffectResult)


@dataclass(frozen=True, slots=True)
class ResponseSlice:
    """One response with the treatments of a filter. `numbers`: the treatments that have values; `levels`, `means`: the
    levels and means of these treatments. `adjusted`: whether the means are adjusted for iterations that lack a value.
    """

    data: Data
    series: ResponseSeries
    numbers: NDArray[np.intp]
    levels: NDArray[np.intp]
    means: Values
    alpha: float
    assessed: Assessment
    adjusted: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the factors."""
        return [factor.name for factor in self.data.factors]

    @property
    def hard(self) -> list[int]:
        """The numbers of the factors that change only between batches."""
        return [number for number, factor in enumerate(self.data.factors) if factor.hard]


def part(data: Data, series: ResponseSeries, means: Values, alpha: float, assessed: Assessment) -> ResponseSlice:
    """The slice of a response for these means, one per treatment (NaN for treatments without values). If treatments
    have their values in different iterations, their means are adjusted for the iterations.
    """
    numbers = np.flatnonzero(~np.isnan(means))
    levels = np.array(data.treatments, dtype=np.intp).reshape(len(data.treatments), len(data.factors))
    plain = ResponseSlice(data, series, numbers, levels[numbers], means[numbers], alpha, assessed)
    if data.randomised or not numbers.size:
        return plain
    _, counts, values = blocks(plain)
    return plain if even(counts) else replace(plain, means=block_means(values), adjusted=True)


def effects(part: ResponseSlice) -> dict[str, MainEffectResult]:
    """The main effects by factor name; a factor with only one level has a reason instead of numbers."""
    return {
        name: _main(part, number, main_effect(part.levels, part.means, number))
        for number, name in enumerate(part.names)
    }


def _main(part: ResponseSlice, number: int, each: MainEffect | None) -> MainEffectResult:
    names, judged = part.data.factors[number].levels, part.assessed.effect(number)
    rows = zip(each.levels, each.means.tolist(), each.counts, strict=True) if each else ()
    return MainEffectResult(
        levels=tuple(LevelMean(names[level], mean, count) for level, mean, count in rows),
        effect=each.effect if each else None,
        magnitude=abs(each.effect) if each else None,
        signed=each is not None and each.signed,
        adjusted=_adjusted(each) if each else None,
        means_adjusted=part.adjusted,
        why=judged.words or None,
        testable=judged.ok,
    )


def _adjusted(each: MainEffect) -> float | None:
    """The adjusted effect by least squares; None if there is none."""
    largest = float(np.abs(each.means).max())
    return None if each.adjusted is None else _unrounded(each.adjusted, each.effect, ROUNDING * largest, largest)


def _unrounded(value: float, plain: float, tolerance: float, largest: float) -> float:
    """The adjusted effect without a residue of rounding: the plain effect if both are equal, 0 if it is 0."""
    if abs(value - plain) <= max(tolerance, 1e-9 * abs(plain)):
        return plain
    return value if abs(value) > ROUNDING * largest else 0.0


def with_estimate(each: E, largest: float) -> E:
    """The effect with the estimate of its test, so that its size, interval and p-value are about the same quantity.
    `largest`: the largest magnitude of a mean.
    """
    test, value = each.test, each.adjusted
    if test is not None and each.signed and test.estimate is not None:
        value = test.estimate
    elif test is not None and test.differences:
        ends = [0.0, *(between.estimate for between in test.differences)]
        value = max(ends) - min(ends)
    if value is None or each.effect is None:
        return each
    value = _unrounded(value, each.effect, SUMMED * largest, largest)
    if test is not None and test.estimate is not None and value != each.effect:
        test = replace(test, estimate=value)
    return replace(each, adjusted=value, magnitude=abs(value), test=test)


def interactions(part: ResponseSlice) -> list[InteractionResult]:
    """The interaction of each pair of factors; at most MOST_INTERACTIONS pairs."""
    pairs = islice(combinations(range(len(part.names)), 2), MOST_INTERACTIONS)
    return [_pair(part, first, second, interaction(part.levels, part.means, first, second)) for first, second in pairs]


def _pair(part: ResponseSlice, first: int, second: int, each: Interaction | None) -> InteractionResult:
    judged = part.assessed.effect(first, second)
    first_factor, second_factor = part.data.factors[first], part.data.factors[second]
    return InteractionResult(
        name=effect_name(part.names, (first, second)),
        factors=(first_factor.name, second_factor.name),
        why=judged.words or None,
        testable=judged.ok,
        levels=(
            tuple(first_factor.levels[level] for level in (each.first_levels if each else ())),
            tuple(second_factor.levels[level] for level in (each.second_levels if each else ())),
        ),
        cells=each.cells.tolist() if each else (),
        residuals=each.residuals.tolist() if each else (),
        effect=each.effect if each else None,
        magnitude=None if each is None or each.effect is None else abs(each.effect),
        signed=each is not None and each.signed,
        means_adjusted=part.adjusted,
    )


def matrix(part: ResponseSlice) -> Values:
    """The values by block and treatment, shape (blocks, treatments with values); NaN if missing. If a design repeats a
    treatment within a block, its cell has the mean of its values.
    """
    return blocks(part)[2]


def blocks(part: ResponseSlice) -> tuple[NDArray[np.intp], NDArray[np.intp], Values]:
    """The batch of each block, the numbers of values by block and treatment, and the values as matrix() returns
    them.
    """
    series = part.series
    column = np.full(len(part.data.treatments), -1, dtype=np.intp)
    column[part.numbers] = np.arange(part.numbers.size)
    rows = np.flatnonzero(column[series.treatment] >= 0)
    width = int(series.iteration.max(initial=0)) + 1
    keys, at = np.unique(series.batch[rows].astype(np.int64) * width + series.iteration[rows], return_inverse=True)
    batch = np.asarray(keys // width, dtype=np.intp)
    shape = (keys.size, part.numbers.size)
    cells = at.ravel() * part.numbers.size + column[series.treatment[rows]]
    known = ~np.isnan(series.value[rows])
    counts = np.bincount(cells[known], minlength=keys.size * part.numbers.size)
    if counts.max(initial=0) <= 1:
        values = np.full(shape, np.nan)
        values.ravel()[cells[known]] = series.value[rows][known]
        return batch, counts.reshape(shape), values
    sums = np.bincount(cells[known], series.value[rows][known], minlength=counts.size)
    return batch, counts.reshape(shape), np.where(counts, sums / np.maximum(counts, 1), np.nan).reshape(shape)


def block_plots(part: ResponseSlice, exclude: bool) -> dict[str, BlockPlot | None]:
    """The block plots by the primary factor's name; None if fewer than two levels of that factor have values."""
    place = {int(number): at for at, number in enumerate(part.numbers)}
    doubtful = [place[number] for number in part.data.questionable if number in place]
    return {
        name: block_plot(part.data.factors, part.levels, part.means, number, doubtful, exclude, part.alpha)
        for number, name in enumerate(part.names)
    }
