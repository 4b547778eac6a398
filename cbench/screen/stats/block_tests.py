"""Tests of effects in randomised complete blocks, by signed ranks of the differences within blocks.

A block plot asks in how many boxes the levels have the same order; this asks the same of the single values. Differences
of matched treatments within a block (pairs.py) are ranked by magnitude over all blocks, somewhat as D. Quade does with
blocks of any number of levels ("Using weighted rankings in the analysis of complete blocks with additive block
effects", J. Amer. Statist. Assoc. 74 (1979) 680-683); a long tail counts by its rank only. What is within a block may
depend on each other, so each block is one observation: where the effect is nothing, its scores are as likely with all
their signs turned (signed_rank.py). The number of effects: Holm 1979 (cbench.stats.multiple_testing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.screen.stats.effects import Levels, Values, interaction, main_effect
from cbench.screen.stats.pairs import Differences, differences
from cbench.screen.stats.signed_rank import flip_test, signed_ranks
from cbench.stats.interval import deviation
from cbench.stats.multiple_testing import HOLM, adjusted


@dataclass(frozen=True, slots=True)
class EffectTest:
    """One effect: numbers of its factors, one or two.

    `estimate`: of two levels each the mean of the differences of matched treatments (half of it for an interaction),
    with `se`, its standard error over the blocks; else what MainEffect.effect or Interaction.effect has (None where a
    cell is missing), without `se`. `statistic`, `df`, `p`: the test by signed ranks; `p_holm`: over all effects of the
    call; `significant`: p_holm is below alpha. `p_plain`: the same with the differences themselves in place of their
    ranks: a test of the means, which a long tail blunts.
    """

    factors: tuple[int, ...]
    estimate: float | None
    se: float | None
    statistic: float
    df: int
    p: float
    p_holm: float
    significant: bool
    p_plain: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """`blocks` that were used, and `dropped`: those with a value missing. `untested`: effects that cannot be tested
    here and why, in words (of hard factors always: they do not vary within blocks)."""

    blocks: int
    dropped: int
    effects: tuple[EffectTest, ...]
    untested: tuple[tuple[tuple[int, ...], str], ...]


def blocked(
    levels: Levels, values: Values, hard: Sequence[int] = (), alpha: float = 0.05, interactions: bool = True
) -> Blocked:
    """`levels`: shape (treatments, factors); `values`: shape (blocks, treatments), one row an iteration, NaN where
    there is no value. A block has all treatments (that have any values) of one combination of the `hard` factors'
    levels, or it is dropped. Iterations of several batches are blocks alike: what is found holds for these batches.

    ValueError for shapes that do not fit.
    """
    levels, values = np.asarray(levels), np.asarray(values, dtype=np.float64)
    if levels.ndim != 2 or values.ndim != 2 or values.shape[1] != levels.shape[0]:
        raise ValueError("one row of levels and one column of values for each treatment are needed")
    known = ~np.isnan(values)
    some = known.any(axis=0)
    levels, values, known = levels[some], values[:, some], known[:, some]
    batch = np.zeros(levels.shape[0], dtype=np.intp)
    if hard and levels.shape[0]:
        batch = np.unique(levels[:, list(hard)], axis=0, return_inverse=True)[1].ravel()
    # A block belongs to the combination it has all treatments of, and nothing else.
    groups = np.full(values.shape[0], -1)
    for group in np.unique(batch):
        groups[(known == (batch == group)).all(axis=1)] = group
    keep = groups >= 0
    values, groups = values[keep], groups[keep]
    means = np.array([each[~np.isnan(each)].mean() if not np.isnan(each).all() else np.nan for each in values.T])
    size = levels.shape[1]
    wanted = [(each,) for each in range(size)] + ([*combinations(range(size), 2)] if interactions else [])
    made: list[EffectTest] = []
    untested: list[tuple[tuple[int, ...], str]] = []
    for effect in wanted:
        if any(np.unique(levels[:, each]).size < 2 for each in effect):
            continue
        if set(effect) & set(hard):
            untested.append((effect, "it does not vary within blocks; the batches test it, where there are several"))
            continue
        found = differences(levels, effect, batch)
        if found is None:
            untested.append((effect, "no differences of treatments show it and nothing else"))
            continue
        tested = _tested(effect, found, values, groups, _size(levels, means, effect))
        if tested is None:
            untested.append((effect, f"{values.shape[0]} blocks are too few"))
        else:
            made.append(tested)
    holm = adjusted([each.p for each in made], HOLM).tolist()
    effects = tuple(
        replace(each, p_holm=p_holm, significant=p_holm < alpha) for each, p_holm in zip(made, holm, strict=True)
    )
    return Blocked(int(keep.sum()), int((~keep).sum()), effects, tuple(untested))


def _size(levels: Levels, means: Values, effect: Sequence[int]) -> float | None:
    """The size of an effect from the treatments' means, whatever its number of levels."""
    found = main_effect(levels, means, *effect) if len(effect) == 1 else interaction(levels, means, *effect)
    return None if found is None else found.effect


def _tested(
    effect: tuple[int, ...], found: Differences, values: Values, groups: NDArray[np.intp], estimate: float | None
) -> EffectTest | None:
    apart = sum(weight * values[:, at] for weight, at in zip(found.weights, found.at.T, strict=True))  # NaN elsewhere
    assert isinstance(apart, np.ndarray)
    used = ~np.isnan(apart).all(axis=1)
    apart, groups = apart[used], groups[used]
    if not apart.size:
        return None
    least = _rounding(found, values[used])
    # Each batch counts the same, however many blocks it has.
    share = 1 / np.bincount(groups)[groups]
    ranked = flip_test((signed_ranks(apart, least) * share[:, np.newaxis]) @ found.shows)
    plain = np.where(np.isnan(apart) | (np.abs(apart) < least), 0.0, apart)
    means = flip_test((plain * share[:, np.newaxis]) @ found.shows)
    if ranked is None or means is None:
        return None
    se = None
    if found.signed:
        each = np.nanmean(apart, axis=1) / 2 ** (len(effect) - 1)
        estimate, se = _mean(each, groups)
    return EffectTest(effect, estimate, se, ranked.statistic, ranked.df, ranked.p, ranked.p, False, means.p)


def _rounding(found: Differences, values: Values) -> Values:
    """Below which each difference is rounding, and taken for 0: its values are known to a unit in the last place of the
    largest of them, and each sum beyond the first rounds by half of one. Shape (blocks, differences)."""
    units = float(np.abs(found.weights).sum()) + (found.weights.size - 2) / 2
    largest = np.zeros((values.shape[0], found.at.shape[0]))
    for at in found.at.T:
        largest = np.fmax(largest, np.abs(values[:, at]))
    return np.asarray(units * np.spacing(largest))


def _mean(each: Values, groups: NDArray[np.intp]) -> tuple[float, float | None]:
    """The mean of the batches' means and its standard error; None where a batch has but one block."""
    parts = [each[groups == group] for group in np.unique(groups)]
    estimate = float(np.mean([part.mean() for part in parts]))
    if min(part.size for part in parts) < 2:
        return estimate, None
    return estimate, hypot(*((deviation(part) or 0.0) / sqrt(part.size) for part in parts)) / len(parts)
