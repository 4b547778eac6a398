"""Test effects in randomized complete blocks, by signed ranks of the differences within blocks.

A block plot counts the boxes in which the levels have the same order; these tests use the single values instead. If two
treatments differ only in the level of one factor, their difference is free of block effects and of all other factors;
if the factor is inert, the difference is as often positive as negative, for any noise distribution. For an interaction,
the difference of two such differences of four treatments is used. If no two treatments differ in only one factor
(fractions), all treatments of a block form one difference.

Differences are ranked by magnitude over all blocks, similar to D. Quade's method for blocks with any number of levels
("Using weighted rankings in the analysis of complete blocks with additive block effects", J. Amer. Statist. Assoc. 74
(1979) 680-683). Values in a long tail therefore count only by their rank. Values within a block may depend on each
other, so each block is one observation: without an effect, its scores are equally likely with all signs flipped
(signed_rank.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.screen.stats.block_means import block_means, even
from cbench.screen.stats.effects import Levels, Values, interaction, main_effect
from cbench.screen.stats.signed_rank import flip_test, signed_ranks
from cbench.stats.interval import deviation

RANKS = "signed ranks in blocks"

Effect = tuple[int, ...]
"""The numbers of the one or two factors of an effect."""


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """The difference of a factor's level from the first level, with its standard error."""

    estimate: float
    se: float


@dataclass(frozen=True, slots=True)
class EffectTest:
    """The test of one effect. `by`: RANKS, or the name of another method (ANOVA, LENTH, PLOTS). `statistic`, `df`, `p`:
    the statistic of this method (None if it has none), the degrees of freedom of the effect, and the p-value.

    `estimate`: for factors with two levels, the mean of the differences of matched treatments (half of it for an
    interaction), with `se`, its standard error over the blocks; otherwise MainEffect.effect or Interaction.effect (None
    if a cell is missing), without `se`. `p_plain`: for RANKS, the p-value from the differences themselves, a test of
    means that loses power with long tails; for other methods, `p`. `p_within`: the p-value by ranks, for RANKS and
    PLOTS; None for other methods, and if ranks cannot test the effect. `error_df`: degrees of freedom of `se`.
    `differences`: for a factor with more than two levels, the difference of each further level from the first.
    `p_family`: for contrasts that are judged against each other, the probability of a contrast this large anywhere
    among them.
    """

    by: str
    estimate: float | None
    se: float | None
    statistic: float | None
    df: int
    p: float
    p_plain: float
    p_within: float | None
    error_df: int | None = None
    differences: tuple[LevelDifference, ...] = ()
    p_family: float | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The result of blocked(). `blocks`: the number of blocks used; `partial`: the number of these blocks that lack a
    value (their other differences count); `dropped`: blocks without any value, or with treatments of several batches.
    `untested`: effects that cannot be tested within blocks, with the reason as text; effects of hard factors are always
    among these, because hard factors do not vary within blocks.
    """

    blocks: int
    dropped: int
    effects: Mapping[Effect, EffectTest]
    untested: Mapping[Effect, str]
    partial: int = 0


def blocked(levels: Levels, values: Values, hard: Sequence[int] = ()) -> Blocked:
    """Test all effects within blocks. `levels`: shape (treatments, factors); `values`: shape (blocks, treatments), one
    row per iteration, NaN if missing. A block with several combinations of the `hard` factors' levels is dropped; a
    missing value drops the differences that use it. Iterations of all batches are blocks, so results hold for these
    batches only.
    """
    some = ~np.isnan(values).all(axis=0)
    levels, values = levels[some], values[:, some]
    batch = np.zeros(levels.shape[0], dtype=np.intp)
    if hard and levels.shape[0]:
        batch = np.unique(levels[:, list(hard)], axis=0, return_inverse=True)[1].ravel()
    # A block belongs to the one combination of hard levels whose treatments it contains.
    there = ~np.isnan(values)
    groups = np.full(values.shape[0], -1)
    full = np.zeros(values.shape[0], dtype=bool)
    for group in np.unique(batch):
        ours = there.any(axis=1) & ~there[:, batch != group].any(axis=1)
        groups[ours] = group
        full[ours] = there[np.ix_(ours, batch == group)].all(axis=1)
    keep = groups >= 0
    values, groups, partial = values[keep], groups[keep], int((keep & ~full).sum())
    means = _means(values)
    varied = [each for each in range(levels.shape[1]) if np.unique(levels[:, each]).size > 1]
    tests: dict[Effect, EffectTest] = {}
    untested: dict[Effect, str] = {}
    for effect in [*((each,) for each in varied), *combinations(varied, 2)]:
        if set(effect) & set(hard):
            untested[effect] = "it does not vary within blocks; the batches test it, if there are several"
            continue
        matched = differences(levels, effect, batch)
        if matched is None:
            untested[effect] = "no difference between treatments isolates it"
            continue
        test = _tested(effect, matched, values, groups, _size(levels, means, effect), levels)
        if test is None:
            untested[effect] = f"{values.shape[0]} blocks are too few"
        else:
            tests[effect] = test
    return Blocked(int(keep.sum()), int((~keep).sum()), tests, untested, partial)


def _means(values: Values) -> Values:
    """The mean of each treatment, adjusted for the blocks in which it has no value; NaN without values."""
    known = ~np.isnan(values)
    some = known.any(axis=0)
    means = np.full(values.shape[1], np.nan)
    if even(known.astype(np.intp)):
        means[some] = [each[~np.isnan(each)].mean() for each in values.T[some]]
    else:
        means[some] = block_means(values[:, some])
    return means


def _size(levels: Levels, means: Values, effect: Effect) -> float | None:
    """The size of an effect from the treatments' means, for any number of levels."""
    size = main_effect(levels, means, *effect) if len(effect) == 1 else interaction(levels, means, *effect)
    return None if size is None else size.effect


def _tested(
    effect: Effect,
    matched: Differences,
    values: Values,
    groups: NDArray[np.intp],
    estimate: float | None,
    levels: Levels,
) -> EffectTest | None:
    # NaN if a value is missing.
    apart = np.sum([weight * values[:, at] for weight, at in zip(matched.weights, matched.at.T, strict=True)], axis=0)
    used = ~np.isnan(apart).all(axis=1)
    apart, groups = apart[used], groups[used]
    if not apart.size:
        return None
    least = _rounding(matched, values[used])
    # All batches have equal weight, however many blocks they have.
    share = 1 / np.bincount(groups)[groups]
    ranked = flip_test((signed_ranks(apart, least) * share[:, np.newaxis]) @ matched.shows)
    plain = np.where(np.isnan(apart) | (np.abs(apart) < least), 0.0, apart)
    means = flip_test((plain * share[:, np.newaxis]) @ matched.shows)
    if ranked is None or means is None:
        return None
    se, between = None, tuple[LevelDifference, ...]()
    if matched.signed:
        estimate, se = _mean(np.nanmean(apart, axis=1) / 2 ** (len(effect) - 1), groups)
    elif len(effect) == 1:
        between = _level_differences(apart, groups, levels[matched.at, effect[0]])
    df = groups.size - np.unique(groups).size
    return EffectTest(RANKS, estimate, se, ranked.statistic, ranked.df, ranked.p, means.p, ranked.p, df, between)


def tested_contrast(signs: Values, values: Values) -> EffectTest | None:
    """The test of a contrast of all treatments, such as the sum of aliased interactions; None if there are too few
    blocks. `signs`: shape (treatments,); `values`: shape (blocks, treatments); blocks with a missing value do not
    contribute.
    """
    every = Differences(np.arange(signs.size)[np.newaxis], signs * (2 / signs.size), np.ones((1, 1)))
    groups = np.zeros(values.shape[0], dtype=np.intp)
    return _tested((0,), every, values, groups, None, np.zeros((signs.size, 1), dtype=np.intp))


def _level_differences(
    apart: Values, groups: NDArray[np.intp], levels: NDArray[np.intp]
) -> tuple[LevelDifference, ...]:
    """The difference of each level from the first, from treatments that differ only in this factor; () if a level has
    too few blocks. `levels`: shape (differences, 2), the levels of the minuend and of the subtrahend.
    """
    first = int(levels.min())
    found = []
    for level in np.unique(levels)[1:].tolist():
        mine = apart[:, (levels[:, 0] == level) & (levels[:, 1] == first)]
        some = ~np.isnan(mine).all(axis=1)
        if not some.any():
            return ()
        estimate, se = _mean(np.nanmean(mine[some], axis=1), groups[some])
        if se is None:
            return ()
        found.append(LevelDifference(estimate, se))
    return tuple(found)


def _rounding(matched: Differences, values: Values) -> Values:
    """The threshold below which each difference counts as rounding error and so as 0: values are accurate to one unit
    in the last place of the largest value, and each further sum adds half a unit. Shape (blocks, differences).
    """
    units = float(np.abs(matched.weights).sum()) + (matched.weights.size - 2) / 2
    largest = np.zeros((values.shape[0], matched.at.shape[0]))
    for at in matched.at.T:
        largest = np.fmax(largest, np.abs(values[:, at]))
    return np.asarray(units * np.spacing(largest))


def _mean(each: Values, groups: NDArray[np.intp]) -> tuple[float, float | None]:
    """The mean of the batches' means, and its standard error, which is None if a batch has only one block."""
    parts = [each[groups == group] for group in np.unique(groups)]
    estimate = float(np.mean([part.mean() for part in parts]))
    if min(part.size for part in parts) < 2:
        return estimate, None
    return estimate, hypot(*((deviation(part) or 0.0) / sqrt(part.size) for part in parts)) / len(parts)


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of treatments that show one effect. `at`: shape (differences, corners), numbers of treatments;
    `weights`: shape (corners,), the weights of the corners, which add up to 0; `shows`: shape (differences, df), the
    coefficients of each difference for the effect's degrees of freedom.
    """

    at: NDArray[np.intp]
    weights: Values
    shows: Values

    @property
    def signed(self) -> bool:
        """Whether all differences estimate the same quantity, so that their mean is the effect."""
        return bool((self.shows == self.shows[0]).all())


def differences(levels: Levels, effect: Sequence[int], batch: NDArray[np.intp]) -> Differences | None:
    """The differences that show an effect of one or two factors; None if there are none. `levels`: shape (treatments,
    factors); `batch`: the batch number of each treatment; treatments with different batch numbers are never in one
    block.
    """
    matched = _matched(levels, effect, batch)
    return _contrast(levels, effect) if matched is None and np.unique(batch).size == 1 else matched


def _matched(levels: Levels, effect: Sequence[int], batch: NDArray[np.intp]) -> Differences | None:
    codes = [np.unique(levels[:, each], return_inverse=True) for each in effect]
    shape = [parts.size for parts, _ in codes]
    places = np.column_stack([at for _, at in codes])
    others = np.column_stack([np.delete(levels, list(effect), axis=1), batch])
    _, groups = np.unique(others, axis=0, return_inverse=True)
    table = np.full((int(groups.max()) + 1, int(np.prod(shape))), -1)
    table[groups.ravel(), np.ravel_multi_index(tuple(places.T), shape)] = np.arange(levels.shape[0])
    parts, cells = [], []
    for corners in _corners(shape):
        at = np.column_stack([table[:, int(np.ravel_multi_index(corner, shape))] for corner, _ in corners])
        at = at[(at >= 0).all(axis=1)]
        cell = np.zeros(shape)
        for corner, sign in corners:
            cell[corner] = sign
        parts.append(at)
        cells.append(np.tile(cell.ravel(), (at.shape[0], 1)))
    every = np.concatenate(cells)
    if not every.size:
        return None
    # An orthonormal basis of the space that the cells' signs span, with one column per degree of freedom.
    _, sizes, right = np.linalg.svd(np.unique(every, axis=0), full_matrices=False)
    signs = np.array([sign for _, sign in _corners(shape)[0]], dtype=np.float64)
    return Differences(np.concatenate(parts), signs, every @ right[sizes > 1e-8 * sizes[0]].T)


def _corners(shape: Sequence[int]) -> list[list[tuple[tuple[int, ...], int]]]:
    """Each pair of levels of one factor, or each pair of pairs for two factors, with the signs of the difference."""
    if len(shape) == 1:
        return [[((b,), 1), ((a,), -1)] for a, b in combinations(range(shape[0]), 2)]
    return [
        [((b, d), 1), ((a, d), -1), ((b, c), -1), ((a, c), 1)]
        for a, b in combinations(range(shape[0]), 2)
        for c, d in combinations(range(shape[1]), 2)
    ]


def _contrast(levels: Levels, effect: Sequence[int]) -> Differences | None:
    """One difference of all treatments, if all factors have two levels, and the effect is balanced and orthogonal to
    all other effects of the same or a lower order; otherwise None.
    """
    mains: dict[int, Values] = {}
    for factor in range(levels.shape[1]):
        present = np.unique(levels[:, factor])
        if present.size > 2:
            return None
        if present.size == 2:
            mains[factor] = np.where(levels[:, factor] == present[1], 1.0, -1.0)
    every: dict[tuple[int, ...], Values] = {(each,): column for each, column in mains.items()}
    if len(effect) == 2:
        every |= {(a, b): mains[a] * mains[b] for a, b in combinations(mains, 2)}
    signs = every.pop(tuple(effect))
    if abs(signs.sum()) > 0.5 or any(abs(float(signs @ other)) > 0.5 for other in every.values()):
        return None
    half = 2 ** (len(effect) - 1)
    return Differences(np.arange(signs.size)[np.newaxis], signs * (2 * half / signs.size), np.ones((1, 1)))
