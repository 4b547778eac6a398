"""What the factors do to one response: main effects, interactions, their tests in blocks, block plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.verdict import RANKS
from cbench.screen.data.data import Data, ResponseSeries, Values
from cbench.screen.design.factorial import effect_name
from cbench.screen.design.testability import Assessment
from cbench.screen.stats.block_tests import Blocked, EffectTest, blocked
from cbench.screen.stats.blockplot import BlockPlot, block_plot
from cbench.screen.stats.effects import Interaction, MainEffect, interaction, main_effect

MOST_INTERACTIONS = 200
ROUNDING = 1e-14
"""Of the values' magnitude: what least squares leave of nothing."""


@dataclass(frozen=True, slots=True)
class ResponseSlice:
    """One response with the treatments of a filter. `numbers`: those that have values; `levels`, `means`: theirs."""

    data: Data
    series: ResponseSeries
    numbers: NDArray[np.intp]
    levels: NDArray[np.intp]
    means: Values
    alpha: float
    assessed: Assessment

    @property
    def names(self) -> list[str]:
        """Of the factors."""
        return [factor.name for factor in self.data.factors]

    @property
    def hard(self) -> list[int]:
        """Numbers of the factors that change between batches only."""
        return [number for number, factor in enumerate(self.data.factors) if factor.hard]


def part(data: Data, series: ResponseSeries, means: Values, alpha: float, assessed: Assessment) -> ResponseSlice:
    """`means`: of all treatments, NaN for those without values."""
    numbers = np.flatnonzero(~np.isnan(means))
    levels = np.array(data.treatments, dtype=np.intp).reshape(len(data.treatments), len(data.factors))
    return ResponseSlice(data, series, numbers, levels[numbers], means[numbers], alpha, assessed)


def effects(found: ResponseSlice) -> dict[str, Any]:
    """By the factors' names; those with one level only have a reason in place of numbers."""
    made: dict[str, Any] = {}
    for number, name in enumerate(found.names):
        each = main_effect(found.levels, found.means, number)
        judged = found.assessed.effect(number)
        made[name] = _main(found, number, each) | {"why": judged.words or None, "testable": judged.ok}
    return made


def _main(found: ResponseSlice, number: int, each: MainEffect | None) -> dict[str, Any]:
    names = found.data.factors[number].levels
    if each is None:
        return {"levels": [], "effect": None, "magnitude": None, "signed": False, "adjusted": None}
    rows = zip(each.levels, each.means.tolist(), each.counts, strict=True)
    return {
        "levels": [{"level": names[level], "mean": mean, "treatments": count} for level, mean, count in rows],
        "effect": each.effect,
        "magnitude": abs(each.effect),
        "signed": each.signed,
        "adjusted": _adjusted(each),
    }


def _adjusted(each: MainEffect) -> float | None:
    """The plain effect itself where both are one but for rounding."""
    if each.adjusted is None or abs(each.adjusted - each.effect) > ROUNDING * float(np.abs(each.means).max()):
        return each.adjusted
    return each.effect


def interactions(found: ResponseSlice) -> list[dict[str, Any]]:
    """Each two factors; at most MOST_INTERACTIONS of them."""
    many = len(found.names)
    pairs = [(first, second) for first in range(many) for second in range(first + 1, many)][:MOST_INTERACTIONS]
    return [
        _pair(found, first, second, interaction(found.levels, found.means, first, second)) for first, second in pairs
    ]


def _pair(found: ResponseSlice, first: int, second: int, each: Interaction | None) -> dict[str, Any]:
    judged = found.assessed.effect(first, second)
    made: dict[str, Any] = {
        "name": effect_name(found.names, (first, second)),
        "factors": [found.names[first], found.names[second]],
        "why": judged.words or None,
        "testable": judged.ok,
    }
    if each is None:
        return made | {
            "levels": [[], []],
            "cells": [],
            "residuals": [],
            "effect": None,
            "magnitude": None,
            "signed": False,
        }
    names = [found.data.factors[number].levels for number in (first, second)]
    return made | {
        "levels": [[names[0][level] for level in each.first_levels], [names[1][level] for level in each.second_levels]],
        "cells": each.cells.tolist(),
        "residuals": each.residuals.tolist(),
        "effect": each.effect,
        "magnitude": None if each.effect is None else abs(each.effect),
        "signed": each.signed,
    }


def matrix(found: ResponseSlice) -> Values:
    """Values by block and treatment, shape (blocks, treatments with values), NaN where there is none."""
    series = found.series
    column = np.full(len(found.data.treatments), -1, dtype=np.intp)
    column[found.numbers] = np.arange(found.numbers.size)
    rows = np.flatnonzero(column[series.treatment] >= 0)
    key = series.batch[rows].astype(np.int64) * (int(series.iteration.max(initial=0)) + 1) + series.iteration[rows]
    blocks, at = np.unique(key, return_inverse=True)
    values = np.full((blocks.size, found.numbers.size), np.nan)
    values[at, column[series.treatment[rows]]] = series.value[rows]
    return values


def tested(found: ResponseSlice) -> Blocked:
    """Every effect against the blocks."""
    return blocked(found.levels, matrix(found), found.hard, found.alpha)


def shown_test(each: EffectTest) -> dict[str, Any]:
    """The test of one effect as a plain object."""
    return {
        "by": RANKS,
        "estimate": each.estimate,
        "se": each.se,
        "statistic": each.statistic,
        "df": each.df,
        "p": each.p,
        "p_plain": each.p_plain,
        "p_within": each.p,
    }


def block_plots(found: ResponseSlice, exclude: bool) -> dict[str, Any]:
    """By the primary factor's name; None with fewer than two of its levels."""
    place = {int(number): at for at, number in enumerate(found.numbers)}
    doubtful = [place[number] for number in found.data.questionable if number in place]
    made = {}
    for number, name in enumerate(found.names):
        each = block_plot(found.levels, found.means, number, doubtful, exclude, found.alpha)
        made[name] = None if each is None else _block_plot(found, each)
    return made


def _block_plot(found: ResponseSlice, each: BlockPlot) -> dict[str, Any]:
    factors = found.data.factors
    names = factors[each.factor].levels
    boxes = []
    for box in each.boxes:
        others = [
            f"{factors[at].name}={factors[at].levels[level]}" for at, level in enumerate(box.others) if level >= 0
        ]
        boxes.append(
            {
                "others": " ".join(others),
                "means": list(box.means),
                "order": None if box.ordering is None else [names[level] for level in box.ordering],
                "tied": box.tied,
                "missing": box.missing,
                "questionable": list(box.questionable),
            }
        )
    return {
        "levels": [names[level] for level in each.levels],
        "boxes": boxes,
        "n": each.n,
        "tied": each.tied,
        "left_out": len(each.boxes) - each.n,
        "together": [factors[at].name for at in each.together],
        "consistent": each.consistent,
        "order": None if each.ordering is None else [names[level] for level in each.ordering],
        "agreeing": each.agreeing,
        "chance": each.chance,
        "p_one": each.p_one,
        "p_two": each.p_two,
        "p": each.p,
        "needed": each.needed,
        "able": each.able,
    }
