"""Compute the number of runs with which the test in use detects a shift of a given percentage.

G. E. Noether, "Sample size determination for some common nonparametric tests", J. Amer. Statist. Assoc. 82 (1987)
645-647: n = (z_alpha/2 + z_power)^2 / (6 (p - 1/2)^2) for each of two equal samples, p = P(X < Y) + P(X = Y)/2. Here, p
is estimated from the study's own values: from the share of pairs of values, one of each order and both minus their
order's median, that differ by less than the shift. For signed ranks, the number of pairs is n = (z_alpha/2 + z_power)^2
/ (3 (p - 1/2)^2), with p = P(D + D' > 0) for two differences.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import ceil, comb, floor, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
LARGEST = 10.0
"""The largest shift considered: ten times the median."""
POINTS = 32
"""A larger sample is represented by this many quantiles, or twice as many if it consists of paired differences."""


def spread(*samples: Values) -> Values:
    """The distances between values of one sample and values of the other, or of the pairs of a single sample, relative
    to the median. Samples must be sorted; the median of each is subtracted first.

    If the spreads of the samples differ, only distances between the samples correspond to the formula's X - Y. If one
    sample has a single value, and thus no spread, the pairs within the other sample are used. Empty if a median is 0,
    or if no sample has two values.
    """
    parts = []
    for sample in samples:
        if sample.size:
            middle = float(sample[(sample.size - 1) // 2] + sample[sample.size // 2]) / 2
            if not middle:
                return np.empty(0)
            some = sample if sample.size <= POINTS else sample[_places(sample.size)]
            parts.append((some - middle) / abs(middle))
    wide = [part for part in parts if part.size > 1]
    if len(wide) == 1 and wide[0].size == POINTS:  # quantiles: two values may share a quantile
        wide *= 2
    if len(wide) > 1:
        return np.asarray(np.abs(wide[0][:, np.newaxis] - wide[1]).ravel())
    if not wide:
        return np.empty(0)
    first, second = _pairs(wide[0].size)
    return np.asarray(np.abs(wide[0][first] - wide[0][second]))


def walsh(away: Values) -> Values:
    """The distances of the Walsh averages (means of two paired differences) from their median."""
    some = np.sort(away, kind="stable")  # fast if they are already sorted
    if some.size > 2 * POINTS:
        some = _quantiles_of(some, 2 * POINTS)
    first, second = _pairs(some.size)
    means = (some[first] + some[second]) / 2
    if not means.size:
        return means
    middle = (means.size - 1) // 2, means.size // 2
    parted = np.partition(means, middle)
    return np.asarray(np.abs(means - (parted[middle[0]] + parted[middle[1]]) / 2))


def _quantiles_of(ordered: Values, count: int) -> Values:
    """The quantiles in the middle of `count` equal parts, as np.quantile computes them, but several times as fast."""
    at = (np.arange(count) + 0.5) / count * (ordered.size - 1)
    below = at.astype(np.intp)
    part, low, high = at - below, ordered[below], ordered[below + 1]
    step = high - low
    return np.asarray(np.where(part < 0.5, low + step * part, high - step * (1 - part)))


def superiority(apart: Values, shift: float) -> float:
    """P(X < Y) + P(X = Y)/2, where Y is distributed like X, but increased by `shift` (0.01: 1 % of the median).

    Without the shift, X - Y is symmetric about 0, so the probability is 1/2 plus half the probability that two values
    are less than `shift` apart.
    """
    below = np.count_nonzero(apart < shift) + np.count_nonzero(apart <= shift)
    return 0.5 + float(below) / (4 * apart.size)


def runs_needed(apart: Values, shift: float, alpha: float, power: float, pairs: bool = False) -> int | None:
    """The number of runs per order, or of pairs; at least 2, the minimum for a test. None if the spread is unknown, or
    if all distances in `apart` exceed `shift`.
    """
    if not apart.size or shift <= 0:
        return None
    away = superiority(apart, shift) - 0.5
    return max(2, ceil(_quantiles(alpha, power) ** 2 / ((3 if pairs else 6) * away * away))) if away > 0 else None


def detectable(apart: Values, runs: float, alpha: float, power: float, pairs: bool = False) -> float | None:
    """The smallest shift that `runs` runs of each order, or pairs, detect, as a share of the median; None if it exceeds
    LARGEST, if the spread is unknown, or if so few runs cannot detect any shift. `runs`: for samples of unequal size,
    the harmonic mean of the sizes. The result is one of the distances in `apart`; equal distances count half, see
    superiority().
    """
    if not apart.size or runs < 2:
        return None
    wanted = 2 * _quantiles(alpha, power) / sqrt((3 if pairs else 6) * runs)
    if wanted >= 1:
        return None
    place = ceil(wanted * apart.size) - 1
    found = float(np.partition(apart, (place, min(place + 1, apart.size - 1)))[place])  # two places: see shift.py
    if np.count_nonzero(apart < found) + np.count_nonzero(apart <= found) + 1 < 2 * wanted * apart.size:
        found = float(apart[apart > found].min(initial=np.inf))  # the next larger distance
    return found if found <= LARGEST else None


def runs_for_any_shift(alpha: float, power: float, pairs: bool = False) -> int:
    """The smallest number of runs of each order, or of pairs, with which a shift can be detected at all. With fewer
    runs, even an arbitrarily large shift is missed. See detectable().
    """
    return floor((2 * _quantiles(alpha, power)) ** 2 / (3 if pairs else 6)) + 1


def runs_for_any_split(comparisons: int, alpha: float, share: float) -> int:
    """The smallest number of runs in which this share of the runs can differ from the others with p < `alpha`, after
    Bonferroni's correction for `comparisons` comparisons.
    """
    return next(n for n in count(2) if comparisons * smallest_p(n, round(share * n)) < alpha)


def smallest_p(n: int, part: int) -> float:
    """The smallest two-sided permutation p-value from a comparison of `part` of `n` different values with the others.
    If values are equal, p can be half as large, unless `part` is half of `n`.
    """
    return min(1.0, 2 / comb(n, part))


@lru_cache(maxsize=64)
def _quantiles(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


@lru_cache(maxsize=64)
def _places(size: int) -> NDArray[np.intp]:
    return np.asarray((np.arange(POINTS) + 0.5) / POINTS * size).astype(np.intp)


@lru_cache(maxsize=64)
def _pairs(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(size, 1)
