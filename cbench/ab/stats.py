"""Estimate the shift of paired differences, with the interval of the signed-rank test; and rank values.

J. L. Hodges, E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963) 598-611: the
estimate is the median of the Walsh averages (d_i + d_j)/2, i <= j. The interval contains the shifts that Wilcoxon's
signed-rank test does not reject (M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed.
2014, sections 3.1 to 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from cbench.stats.rank import doubled_ranks

EXACT_UP_TO = 60
"""The largest number of differences for which the exact distribution is used instead of a normal approximation."""
MANY = 600
"""If there are more differences than this, they are represented by this many quantiles."""
STEP = 1e-12
"""The precision of Walsh averages: the 12th digit of a ratio."""


@dataclass(frozen=True, slots=True)
class Shift:
    """An estimate and its interval at `level`. `attained`: False if there are too few differences for the requested
    level.
    """

    value: float
    low: float
    high: float
    level: float
    attained: bool

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def shift(differences: Sequence[float], alpha: float) -> Shift:
    """The center of symmetrically distributed differences, with its interval at the level 1 - `alpha`. Raises
    ValueError if there are none.
    """
    if not differences:
        raise ValueError("at least one difference is needed")
    size = len(differences)
    some = _thinned(sorted(differences))
    skip, level = interval_rank(size, alpha)
    every = _pairs(len(some))
    at = max(1, round(max(skip, 1) / _pairs(size) * every))
    ends = walsh(some, at), walsh(some, every + 1 - at)
    return Shift(_middle(some), *ends, level, skip > 0)


def center(differences: Sequence[float]) -> float:
    """The estimate of shift() without an interval."""
    return _middle(_thinned(sorted(differences)))


def fewest(alpha: float) -> int:
    """The fewest differences that allow an interval at the level 1 - `alpha`."""
    size = 1
    while not interval_rank(size, alpha)[0]:
        size += 1
    return size


def interval_rank(size: int, alpha: float) -> tuple[int, float]:
    """The rank, from each end, of the Walsh averages that bound the interval, and the interval's level; rank 0 if no
    interval reaches the level 1 - `alpha`.
    """
    if size <= EXACT_UP_TO:
        cumulated = _tail(size)
        skip = sum(2 * p <= alpha for p in cumulated)
        return skip, max(0.0, 1 - 2 * cumulated[max(skip, 1) - 1])
    z = NormalDist().inv_cdf(1 - alpha / 2)
    return int(_pairs(size) / 2 - z * sqrt(size * (size + 1) * (2 * size + 1) / 24)), 1 - alpha


def walsh(ordered: Sequence[float], k: int) -> float:
    """The k-th smallest (from 1) Walsh average of sorted values, without computing all averages."""
    low, high = ordered[0], ordered[-1]
    if _count(ordered, low) >= k:
        return low
    while high - low > STEP:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _count(ordered, middle) >= k:
            high = middle
        else:
            low = middle
    return high


def ranked(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; equal values share their mean rank."""
    doubled = doubled_ranks(sorted(values))
    return [doubled[value] / 2 for value in values]


def _middle(ordered: Sequence[float]) -> float:
    """The median of the Walsh averages of sorted values."""
    every = _pairs(len(ordered))
    return (walsh(ordered, (every + 1) // 2) + walsh(ordered, every // 2 + 1)) / 2


def _pairs(size: int) -> int:
    return size * (size + 1) // 2


def _thinned(ordered: list[float]) -> list[float]:
    if len(ordered) <= MANY:
        return ordered
    return [ordered[int((at + 0.5) / MANY * len(ordered))] for at in range(MANY)]


def _count(ordered: Sequence[float], limit: float) -> int:
    """The number of Walsh averages that are at most `limit`."""
    count, last = 0, len(ordered) - 1
    for first, value in enumerate(ordered):
        while last >= first and (value + ordered[last]) / 2 > limit:
            last -= 1
        if last < first:
            break
        count += last - first + 1
    return count


@lru_cache(maxsize=64)
def _tail(size: int) -> tuple[float, ...]:
    """P(W <= w) for w = 0, 1, ..., where W is the sum of the positive ranks and both signs are equally likely."""
    ways = [1] + [0] * _pairs(size)
    for rank in range(1, size + 1):
        for total in range(_pairs(rank), rank - 1, -1):
            ways[total] += ways[total - rank]
    cumulated, found = 0, []
    for each in ways:
        cumulated += each
        found.append(cumulated / 2**size)
    return tuple(found)
