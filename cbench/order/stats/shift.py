"""Estimate the shift between the two orders, with an interval (Hodges and Lehmann).

For two samples, the estimate is the median of the differences of all pairs; for paired differences, the median of the
means of any two of them. The interval is the set of shifts that the rank test of the same values does not reject. For
two samples, it is the wider of two intervals: that of the rank-sum test, and that of the studentized test (Brunner and
Munzel), with the variance of the samples shifted onto each other. If all values are positive, their logarithms are
compared, so the shift is a ratio.

J. L. Hodges, E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963) 598-611.
E. L. Lehmann, Ann. Math. Statist. 34 (1963) 1507-1512, and J. W. Tukey's interval from Walsh averages: the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb, exp, floor, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.order.stats.brunner_munzel import MANY, middle, variance
from cbench.stats.distributions import t_quantile
from cbench.stats.kruskal import placements
from cbench.stats.trials import Values

POINTS = 64
"""A larger sample is represented by this many quantiles, whose differences suffice to compute the estimate and both
ends.
"""


@dataclass(frozen=True, slots=True)
class ShiftInterval:
    """The estimate and interval of Δ, (fixed - random)/fixed, in %; an end is None if there is no interval."""

    delta_pct: float
    low: float | None
    high: float | None


def of_samples(fixed: Values, random: Values, level: float) -> ShiftInterval | None:
    """The shift between two sorted samples; None if one is empty, or if the fixed median is 0, so that no share of it
    can be computed.
    """
    if not fixed.size or not random.size:
        return None
    ratio = bool(fixed[0] > 0 and random[0] > 0)
    scale = 1.0 if ratio else float(np.median(fixed))
    if not scale:
        return None
    some = [np.log(_thinned(each)) if ratio else _thinned(each) for each in (fixed, random)]
    away = (some[1][None, :] - some[0][:, None]).ravel()
    center = middle(away)
    share = _half_width(some[0], some[1] - center, (fixed.size, random.size), level)
    ends = None
    if share is not None:
        skip = floor(away.size * (0.5 - share) + 1e-9)
        if skip >= 1 or (skip == 0 and share <= 0.5):
            at = max(skip, 1) - 1
            ends = _both_ends(away, at)
    return _shift(center, ends, ratio, scale)


def of_pairs(fixed: Values, random: Values, level: float, away: Values | None = None) -> ShiftInterval | None:
    """The shift of paired values; None in the same cases as of_samples(). `away`: the pairs' differences(), sorted, if
    known.
    """
    if not fixed.size:
        return None
    ratio = bool(fixed.min() > 0 and random.min() > 0)
    scale = 1.0 if ratio else float(np.median(fixed))
    if not scale:
        return None
    away = np.sort(differences(fixed, random)) if away is None else away
    some = _thinned(away)
    first, second = _with_itself(some.size)
    walsh = (some[first] + some[second]) / 2
    skip = _fewest_ranks(away.size, level)
    ends = None
    if skip:
        at = max(1, round(skip / (away.size * (away.size + 1) / 2) * walsh.size)) - 1
        ends = _both_ends(walsh, at)
    return _shift(middle(walsh), ends, ratio, scale)


@lru_cache(maxsize=POINTS)
def _with_itself(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(size)


def _both_ends(values: Values, at: int) -> tuple[float, float]:
    """The values at place `at` from each end of the sorted values."""
    parted = np.partition(values, (at, values.size - 1 - at))
    return float(parted[at]), float(parted[values.size - 1 - at])


def differences(fixed: Values, random: Values) -> Values:
    """The difference random minus fixed of each pair, of logarithms if all values are positive."""
    if fixed.size and fixed.min() > 0 and random.min() > 0:
        return np.asarray(np.log(random) - np.log(fixed))
    return random - fixed


def relative(fixed: Values, random: Values, away: Values | None = None) -> Values:
    """The differences() as shares of the fixed order's median (approximately, for logarithms); empty if that median is
    0. `away`: the differences, if known.
    """
    if fixed.min() > 0 and random.min() > 0:
        return differences(fixed, random) if away is None else away
    scale = abs(float(np.median(fixed)))
    return (random - fixed) / scale if scale else np.empty(0)


def _shift(center: float, ends: tuple[float, float] | None, ratio: bool, scale: float) -> ShiftInterval:
    def percent(away: float) -> float:
        return 100 * (1 - exp(min(away, 700.0))) if ratio else -100 * away / scale

    if ends is None:
        return ShiftInterval(percent(center), None, None)
    low, high = sorted(percent(end) for end in ends)
    return ShiftInterval(percent(center), low, high)


def _thinned(ordered: Values, most: int = POINTS) -> Values:
    if ordered.size <= most:
        return ordered
    return ordered[((np.arange(most) + 0.5) / most * ordered.size).astype(np.intp)]


def _half_width(first: Values, second: Values, sizes: tuple[int, int], level: float) -> float | None:
    """The largest distance of P(first < second) from 1/2 that the test does not reject; None if it never rejects, or if
    a sample has a single value.

    It is the larger of two distances: one for the rank-sum test, one for the studentized test. `sizes`: the sizes of
    the samples that these values represent.
    """
    m, n = sizes
    if 1 / comb(m + n, min(m, n)) * 2 > 1 - level if m + n < 60 else False:
        return None
    if min(m, n) < 2:
        return None
    alike = t_quantile((1 + level) / 2, 1e6) * sqrt((m + n + 1) / (12 * m * n)) + 0.5 / (m * n)
    above, below = placements(first, second)
    above, below = above / second.size, below / first.size
    parts = variance(above) / m, variance(below) / n
    if not sum(parts):
        return min(alike, 0.5)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (n - 1))
    return min(max(alike, _quantile(level, freedom) * sqrt(sum(parts))), 0.5)


def _quantile(level: float, freedom: float) -> float:
    """The quantile of Student's t distribution for a two-sided interval at this level.

    Exact, except for rounding, below MANY degrees of freedom; otherwise, the first two terms of the expansion around
    the normal quantile, with a relative error below 2e-4 at the level 0.95, and below 1e-3 for levels up to 0.999.
    """
    if freedom < MANY:
        return t_quantile((1 + level) / 2, freedom)
    z = t_quantile((1 + level) / 2, 1e6)
    return z + z * (z * z + 1) / (4 * freedom)


def _fewest_ranks(n: int, level: float) -> int:
    """One more than the number of Walsh averages omitted at each end; 0 if no interval has this level."""
    wanted = (1 - level) / 2
    if n <= 30:
        ways = np.zeros(n * (n + 1) // 2 + 1)
        ways[0] = 1.0
        for rank in range(1, n + 1):
            ways[rank:] += ways[:-rank].copy()
        return int(np.count_nonzero(np.cumsum(ways) / 2.0**n <= wanted))
    z = t_quantile((1 + level) / 2, 1e6)
    return max(0, ceil(n * (n + 1) / 4 - z * sqrt(n * (n + 1) * (2 * n + 1) / 24)))
