"""Estimate the shift between the two orders, with an interval (Hodges and Lehmann).

For two samples, the estimate is the median of the differences of all pairs; for paired differences, the median of the
means of any two of them. The interval is the range of the shifts that the test of the same values does not reject. For
two samples, this is the test that decides: the larger p of the permutation test and of the studentized test (Brunner
and Munzel). Up to LISTED differences, its p is computed at the shifts, by bisection; for larger samples, the ends are
differences with the ranks at which either of these tests begins to reject, with the variance of the samples at these
shifts. In both cases, p without a shift decides whether 0 is inside. If all values are positive, their logarithms are
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

from cbench.order.stats.brunner_munzel import MANY, middle, unequal_spread_p, variance
from cbench.order.stats.pairwise_sums import PairwiseSums, thinned
from cbench.order.stats.permutation import WORK, p_value
from cbench.order.stats.within_run_effects import median_of_sorted
from cbench.stats.distributions import t_quantile
from cbench.stats.kruskal import of_sorted, placements
from cbench.stats.trials import Values

LISTED = 10_000
"""Up to this many differences are listed, and the interval of two samples comes from the test itself."""
LISTED_PAIRS = 64
"""Up to this number of pairs, all means of two differences are listed."""
QUICK = 20_000
"""The maximum number of additions for a p that is not that of the verdict."""
ENOUGH = 0.5
"""A larger p is not computed exactly, because it is far from any level."""


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
    first, second = (np.log(each) if ratio else each for each in (fixed, random))
    if first.size * second.size <= LISTED:
        return _shift(*_inverted(first, second, 1 - level), ratio, scale)
    return _shift(*_ranked(first, second, level), ratio, scale)


def _deciding_p(first: Values, second: Values, shift: float, work: int) -> float:
    """The p that decides about two samples, if the second one is shifted back by `shift`."""
    second = second - shift
    placed = placements(first, second)
    studentized = unequal_spread_p(first, second, placed) or 0.0
    if studentized >= ENOUGH:
        return studentized
    test = of_sorted([first, second], placed[0])
    assert test is not None
    return max(p_value(test.h, test.lengths, first.size, second.size, work), studentized)


def _inverted(first: Values, second: Values, alpha: float) -> tuple[float, tuple[float, float] | None]:
    """The median of all differences, and the smallest and largest shift that the deciding test does not reject.

    p changes only at the differences, so it is computed between them, and at 0.
    """
    away = np.sort((second[None, :] - first[:, None]).ravel())
    center, near = median_of_sorted(away), 1e-9 * max(float(away[-1] - away[0]), abs(float(away[0])), 1e-300)
    starts = np.flatnonzero(np.append(True, np.diff(away) > near))
    lows, highs = away[starts], away[np.append(starts[1:], away.size) - 1]
    beyond = 1 + abs(away[0]) + abs(away[-1])
    gaps = np.concatenate([[lows[0] - beyond], (highs[:-1] + lows[1:]) / 2, [highs[-1] + beyond]])

    def accepted(at: int) -> bool:
        return _deciding_p(first, second, float(gaps[at]), QUICK) >= alpha * (1 - 1e-9)

    def last(inside: int, outside: int) -> int | None:
        """The last accepted gap between one at the center and one that is rejected; None if there is none."""
        if inside == outside or not accepted(inside):
            return None
        while abs(inside - outside) > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
        return inside

    def sides(value: float) -> tuple[int, int]:
        """The gaps below and above a value, or twice the gap that contains it."""
        return int(highs.searchsorted(value - near)), int(lows.searchsorted(value + near, side="right"))

    if accepted(0) or accepted(lows.size):
        return center, None
    below, above = sides(center)
    zero = sides(0.0)
    rejects_zero = _deciding_p(first, second, 0.0, WORK) < alpha * (1 - 1e-9)
    low, high = last(below, 0), last(above, lows.size)
    if rejects_zero and below > zero[0] and low is not None and low <= zero[0]:
        low = last(below, zero[0])
    if rejects_zero and above < zero[1] and high is not None and high >= zero[1]:
        high = last(above, zero[1])
    ends = center if low is None else float(highs[low - 1]), center if high is None else float(lows[high])
    return center, ends if rejects_zero else (min(ends[0], 0.0), max(ends[1], 0.0))


def _ranked(first: Values, second: Values, level: float) -> tuple[float, tuple[float, float] | None]:
    """The same as _inverted() for large samples: the ends are differences whose ranks come from the variance of the
    samples at these shifts; then p at 0 decides whether the interval contains 0.
    """
    every, some = PairwiseSums.of_differences(first, second), (thinned(first), thinned(second))
    sizes, center, ends = (first.size, second.size), every.median(), []
    for side in (-1, 1):
        end = center
        for _ in range(2):
            share = _half_width(some[0], some[1] - end, sizes, level)
            if share is None:
                return center, None
            rank = max(floor(every.size * (0.5 - share) + 1e-9), 1) - 1
            end = every.guess(rank, side) if end == center else every.at(rank if side < 0 else every.size - 1 - rank)
        ends.append(end)
    low, high = ends
    if _deciding_p(first, second, 0.0, WORK) >= 1 - level:
        return center, (min(low, 0.0), max(high, 0.0))
    if low < 0 < high and center:
        inside, outside = center, 0.0
        for _ in range(30):
            middle = (inside + outside) / 2
            rejected = _deciding_p(first, second, middle, QUICK) < 1 - level
            inside, outside = (inside, middle) if rejected else (middle, outside)
        low, high = (inside, high) if center > 0 else (low, inside)
    return center, (low, high)


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
    skip = _fewest_ranks(away.size, level)
    if away.size <= LISTED_PAIRS:
        first, second = _with_itself(away.size)
        walsh = (away[first] + away[second]) / 2
        return _shift(middle(walsh), _both_ends(walsh, skip - 1) if skip else None, ratio, scale)
    sums = PairwiseSums.of_itself(away)
    ends = (sums.at(skip - 1) / 2, sums.at(sums.size - skip) / 2) if skip else None
    return _shift(sums.median() / 2, ends, ratio, scale)


@lru_cache(maxsize=LISTED_PAIRS)
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
