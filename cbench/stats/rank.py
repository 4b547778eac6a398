"""Compute the rank-sum test of Wilcoxon, Mann and Whitney, and the corresponding interval of the ratio.

H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the other",
Ann. Math. Statist. 18 (1947) 50-60: U and its distribution. B. Streitberg, J. Roehmel, "Exact distributions for
permutation and rank tests", Statist. Software Newsletter 12 (1986) 10-17: the shift algorithm, exact with ties too.
E. L. Lehmann, Nonparametrics (1975), section 2.4, and M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric Statistical
Methods (3rd ed. 2014), sections 4.1 to 4.3: ties in the normal approximation, Hodges-Lehmann estimate and interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import comb, erfc, sqrt
from statistics import NormalDist
from struct import unpack

EXACT_UP_TO = 60
"""The largest total number of values for which the exact distribution is used instead of a normal approximation."""

ENUMERATED = 4
"""The search for a ratio ends when this many ratios per value remain, which are then sorted."""

Number = int | float


@dataclass(frozen=True, slots=True)
class RankSum:
    """The result of a rank-sum test. `u`: the number of pairs in which the second sample's value is larger, with ties
    counting one half; `p`: the two-sided p-value; `exact`: whether p is exact, instead of a normal approximation.
    """

    u: float
    p: float
    exact: bool


def rank_sum(a: Sequence[Number], b: Sequence[Number]) -> RankSum:
    """The two-sided test of the hypothesis that neither sample tends to have larger values. Raises ValueError for an
    empty sample.
    """
    if not a or not b:
        raise ValueError(f"two samples with values are needed, but they have {len(a)} and {len(b)} values")
    ranks = doubled_ranks(sorted([*a, *b]))
    m, n = len(a), len(b)
    total = sum(ranks[value] for value in b)  # twice the rank sum
    u = (total - n * (n + 1)) / 2
    if m + n <= EXACT_UP_TO:
        counts = Counter([*a, *b])
        each = [ranks[value] for value, count in counts.items() for _ in range(count)]
        return RankSum(u, _exact_p(each, n, total), True)
    return RankSum(u, _normal_p(u, m, n, list(Counter([*a, *b]).values())), False)


def doubled_ranks(ordered: Sequence[Number]) -> dict[Number, int]:
    """Twice the mean rank of each value, which is a whole number even with ties."""
    ranks: dict[Number, int] = {}
    start = 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end] == ordered[start]:
            end += 1
        ranks[ordered[start]] = start + 1 + end
        start = end
    return ranks


def _exact_p(ranks: Sequence[int], n: int, total: int) -> float:
    """The share of all choices of `n` of these (doubled) ranks whose sum is at least as far from its mean as
    `total`.
    """
    mean = n * sum(ranks)  # multiplied by len(ranks), so that all numbers are whole
    distance = abs(total * len(ranks) - mean)
    counts = _choices(tuple(sorted(ranks)), n)
    extreme = sum(count for value, count in enumerate(counts) if abs(value * len(ranks) - mean) >= distance)
    return extreme / comb(len(ranks), n)


@lru_cache(maxsize=64)  # without ties, the result depends only on the sample sizes
def _choices(ranks: tuple[int, ...], n: int) -> tuple[int, ...]:
    """For each sum 0, 1, ..., the number of ways to choose `n` of these ranks.

    The counts of all sums are stored in one large integer, 64 bits each, which suffices for EXACT_UP_TO values. Adding
    a rank to every sum is then a shift.
    """
    sums = [1] + [0] * n
    for rank in ranks:
        for chosen in range(n - 1, -1, -1):
            sums[chosen + 1] += sums[chosen] << (64 * rank)
    size = sum(ranks) + 1
    return unpack(f"<{size}Q", sums[n].to_bytes(8 * size, "little"))


def _normal_p(u: float, m: int, n: int, ties: Sequence[int]) -> float:
    """The two-sided p-value by the normal approximation, with the variance corrected for ties and a continuity
    correction.
    """
    total = m + n
    lost = sum(count**3 - count for count in ties) / (total * (total - 1))
    variance = m * n / 12 * (total + 1 - lost)
    if variance <= 0:
        return 1.0
    return erfc(max(abs(u - m * n / 2) - 0.5, 0) / sqrt(2 * variance))


def tail(m: int, n: int) -> list[float]:
    """P(U <= u) for u = 0, 1, ... if there are no ties and the samples do not differ (Mann and Whitney's
    recurrence).
    """
    # The number of ways is the coefficient of q^u in the Gaussian binomial of m + n over n.
    ways = [1] + [0] * (m * n)
    for k in range(1, n + 1):
        for u in range(m * n, m + k - 1, -1):
            ways[u] -= ways[u - m - k]
        for u in range(k, m * n + 1):
            ways[u] += ways[u - k]
    every = comb(m + n, n)
    return [sum_ / every for sum_ in accumulate(ways)]


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """The ratio of the second sample's values to the first's, with an interval.

    `ratio`: the median of the ratios of all pairs; `low`, `high`: the ends of its interval; `level`: the interval's
    level, which is the requested level or the next attainable one above it. `attained`: False if the samples are so
    small that they allow only a lower level.
    """

    ratio: float
    low: float
    high: float
    level: float
    attained: bool


def ratio_interval(a: Sequence[Number], b: Sequence[Number], alpha: float) -> RatioInterval:
    """The ratio of the second sample to the first, with its interval at the level 1 - `alpha`. Ratios of positive
    values are shifts of their logarithms, so the interval for a shift yields an interval for the ratio. Raises
    ValueError if a sample is empty, or a value is not positive.
    """
    if not a or not b or min(*a, *b) <= 0:
        raise ValueError("two samples are needed, with positive values only")
    first, second = sorted(a), sorted(b)
    m, n = len(a), len(b)
    skip, level, attained = interval_rank(m, n, alpha)
    low, high = (nth_ratio(first, second, k) for k in (skip, m * n + 1 - skip))
    below, above = (nth_ratio(first, second, k) for k in ((m * n + 1) // 2, m * n // 2 + 1))
    return RatioInterval(sqrt(below) * sqrt(above), low, high, level, attained)


@lru_cache(maxsize=256)
def interval_rank(m: int, n: int, alpha: float) -> tuple[int, float, bool]:
    """The rank, from each end, of the ratios that bound the interval; the interval's level; and whether the level is at
    least 1 - alpha.
    """
    if m + n <= EXACT_UP_TO:
        cumulated = tail(m, n)
        skip = sum(2 * p <= alpha for p in cumulated)
        level = 1 - 2 * cumulated[max(skip, 1) - 1]
        return max(skip, 1), max(level, 0.0), skip > 0
    z = NormalDist().inv_cdf(1 - alpha / 2)
    skip = int(m * n / 2 - z * sqrt(m * n * (m + n + 1) / 12))
    return max(skip, 1), 1 - alpha, skip > 0


def nth_ratio(a: Sequence[Number], b: Sequence[Number], k: int) -> float:
    """The k-th smallest (from 1) of all ratios b/a, without computing all of them; both samples are sorted and
    positive.
    """
    low, high = b[0] / a[-1], b[-1] / a[0]
    below, upto = _count(a, b, low), len(a) * len(b)
    if below >= k:
        return low
    while upto - below > ENUMERATED * (
        len(a) + len(b)
    ):  # fewer than k ratios are at most `low`, and k or more at most `high`
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        count = _count(a, b, middle)
        if count >= k:
            high, upto = middle, count
        else:
            low, below = middle, count
    return sorted(_between(a, b, low, high))[k - below - 1]


def _between(a: Sequence[Number], b: Sequence[Number], low: float, high: float) -> list[float]:
    """All ratios b/a above `low` and at most `high`."""
    ratios: list[float] = []
    start = 0
    for divisor in a:
        while start < len(b) and b[start] / divisor <= low:
            start += 1
        for at in range(start, len(b)):
            ratio = b[at] / divisor
            if ratio > high:
                break
            ratios.append(ratio)
    return ratios


def _count(a: Sequence[Number], b: Sequence[Number], limit: float) -> int:
    """The number of ratios b/a that are at most `limit`. One pass over both sorted samples is enough, because a larger
    value of a has at least as many such ratios as a smaller one.
    """
    count = j = 0
    for divisor in a:
        while j < len(b) and b[j] / divisor <= limit:
            j += 1
        count += j
    return count
