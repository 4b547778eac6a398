"""Compute p-values of two samples' rank sums from the distribution of H under permutation of the labels.

The chi-squared distribution is only the limit: in the tail that Bonferroni's correction uses, H of 20 + 20 values
reaches p < 0.0025 in only 0.20 % of cases; with ties and unequal samples, the error is far larger, in either direction.
Therefore, p is computed in one of three ways:

- The permutations are counted, ties included, if that takes at most WORK additions, or if there are so few distinct
  values that they have at most TABLES tables (two values: the hypergeometric distribution). This p is exact.
- Otherwise, if the rank sum is nearly symmetric, its square is treated as a beta variable with the exact variance and
  kurtosis for these ranks, because the rank sum's tails are lighter than those of the normal distribution.
- Otherwise, the ranks are rounded to a grid that is coarse enough for counting. If the grid would have fewer steps than
  the smaller sample has values, p comes from the chi-squared distribution after all.

E. J. G. Pitman, "Significance tests which may be applied to samples from any populations. III", Biometrika 29 (1938)
322-335, and G. E. P. Box, S. L. Andersen, "Permutation theory in the derivation of robust criteria", J. R. Statist.
Soc. B 17 (1955) 1-26: the beta approximation by moments. B. Streitberg, J. Roehmel, "Exact distributions for
permutation and rank tests", Statist. Software Newsletter 12 (1986) 10-17: counting by shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.distributions import beta_sf, chi2_sf

WORK = 4_000_000
"""The maximum number of additions for counting one test, which take a few milliseconds."""
COARSE = 20_000_000
"""The maximum number of additions if the rank sum is too skewed for the beta approximation."""
TABLES = 50_000
MOST_KINDS = 17
"""With more distinct values, there are too many tables, because each value may or may not be in the sample."""
SKEWED = 0.1
"""Up to this skewness, the two tails of the rank sum are similar enough to approximate the distribution of its
square.
"""

Values = NDArray[np.float64]


def p_value(h: float, lengths: Values | None, first: int, second: int, work: int = WORK) -> float:
    """P(H' >= h) over all ways to divide the pooled values into samples of sizes `first` and `second`.

    `h`: the Kruskal-Wallis statistic, corrected for ties. `lengths`: the number of equal values at each place, in
    ascending order of the values; None if there are no ties. `work`: the maximum number of additions, instead of WORK.
    """
    n, k = first + second, min(first, second)
    if (lengths is not None and lengths.size == 1) or not k:
        return 1.0
    different = n if lengths is None else lengths.size
    if different * (k + 1) * min(k, different) ** 2 <= 2 * work:  # otherwise, the cost exceeds `work` anyway
        whole = np.ones(n, dtype=np.int64) if lengths is None else lengths.astype(np.int64)
        if different <= MOST_KINDS and different < n and _tables(_counts(lengths, n), k) <= min(TABLES, work):
            return _tail(h, *_enumerated(_counts(lengths, n), k))
        step, most = _scale(whole, k)
        if _cost(whole, k) * (most + 1) <= work:
            return _tail(h, *_distribution(_counts(lengths, n), k, step))
    square, third, fourth = _sums(lengths, n)
    excess = _excess(square, fourth, k, n)
    freedom = -6 / excess - 3 if excess < 0 else 0.0
    if freedom > 0 and abs(_skewness(square, third, k, n)) <= SKEWED:
        return beta_sf(h / (freedom + 1), 0.5, freedom / 2)
    ties = _counts(lengths, n)
    step, most = _scale(np.array(ties), k)
    cells = COARSE * work // WORK // _cost(np.array(ties), k)
    if cells < k:
        return chi2_sf(h, 1)
    return _tail(h, *_distribution(ties, k, step * most / cells))


def scored_p(square: float, lengths: Values, scores: Values, first: int, second: int) -> float | None:
    """The permutation p for a sum of scores other than ranks, one score per place: P(square' >= square), where square
    is the squared distance of the sum from its mean, divided by its variance. None if the distinct values have more
    tables than TABLES.
    """
    if lengths.size > MOST_KINDS:
        return None
    n, k = first + second, min(first, second)
    ties = _counts(lengths, n)
    if _tables(ties, k) > TABLES:
        return None
    return _tail(square, *_enumerated(ties, k, tuple(scores.tolist())))


def _counts(lengths: Values | None, n: int) -> tuple[int, ...]:
    return (1,) * n if lengths is None else tuple(lengths.astype(np.int64).tolist())


def _cost(ties: NDArray[np.int64], k: int) -> int:
    """The number of additions needed to count the ways to reach each possible rank sum."""
    return int(np.minimum(ties, k).sum()) * (k + 1)


def _sums(lengths: Values | None, n: int) -> tuple[float, float, float]:
    """The sums of the second, third and fourth powers of the ranks' distances to the mean rank."""
    if lengths is None:
        return n * (n * n - 1) / 12, 0.0, n * (n * n - 1) * (3 * n * n - 7) / 240
    away = np.cumsum(lengths) - (lengths - 1) / 2 - (n + 1) / 2
    square = away * away
    return float(lengths @ square), float(lengths @ (square * away)), float(lengths @ (square * square))


def _skewness(square: float, third: float, k: int, n: int) -> float:
    """The skewness of the sum of k of n numbers with mean 0, drawn without replacement."""
    variance = k * (n - k) / (n * (n - 1)) * square
    return k * (n - k) * (n - 2 * k) / (n * (n - 1) * (n - 2)) * third / (variance * sqrt(variance))


def _excess(square: float, fourth: float, k: int, n: int) -> float:
    """The excess kurtosis of the sum of k of n numbers with mean 0, drawn without replacement.

    `square`, `fourth`: the sums of the numbers' second and fourth powers, from which the sums of a^3 b, a^2 b^2, a^2 b
    c and a b c d over different numbers follow.
    """
    two, three = k * (k - 1) / (n * (n - 1)), k * (k - 1) * (k - 2) / (n * (n - 1) * (n - 2))
    four = three * (k - 3) / (n - 3)
    pairs = square * square - fourth
    triples = fourth - pairs
    moment = k / n * fourth - 4 * two * fourth + 3 * two * pairs + 6 * three * triples - 3 * four * triples
    variance = k * (n - k) / (n * (n - 1)) * square
    return float(moment / (variance * variance) - 3)


def _doubled(ties: tuple[int, ...]) -> list[int]:
    """Twice the average rank of each distinct value; the doubled ranks are integers."""
    ranks, start = [], 0
    for length in ties:
        ranks.append(2 * start + length + 1)
        start += length
    return ranks


def _scale(ties: NDArray[np.int64], k: int) -> tuple[int, int]:
    """The largest common step of the doubled ranks, and the range of the rank sum in such steps."""
    ends = np.cumsum(ties)
    above = 2 * ends - ties - ties[0]  # the doubled ranks, above the lowest
    step = int(np.gcd.reduce(above)) or 1
    taken = np.minimum(np.maximum(k - (ends[-1] - ends), 0), ties)  # the number taken of the highest values
    return step, int((taken * above).sum()) // step


def _tables(ties: tuple[int, ...], k: int) -> int:
    """An upper bound on the number of tables, which are the ways to split the count of each value between the
    samples.
    """
    if len(ties) > MOST_KINDS:
        return TABLES + 1
    found = 1
    for length in sorted(ties)[:-1]:
        found *= min(length, k) + 1
        if found > TABLES:
            break
    return found


@lru_cache(maxsize=1024)
@np.errstate(over="ignore", invalid="ignore")
def _binomial(length: int, most: int, share: float) -> Values:
    """The probability that x of `length` values are in the sample, for x up to `most`, if each value is in the sample
    with probability `share`; relative to the largest of these. For a given total, every `share` gives the same
    distribution of tables.
    """
    ways = np.ones(most + 1)
    for x in range(most):
        ways[x + 1] = ways[x] * (length - x) / (x + 1) * share / (1 - share)
    if not np.isfinite(ways[-1]):  # too many equal values: use logarithms
        steps = np.log(length - np.arange(most)) - np.log(np.arange(1, most + 1)) + np.log(share / (1 - share))
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        return np.asarray(np.exp(logs - logs.max()))
    return np.asarray(ways / ways.max())


@lru_cache(maxsize=256)
def _enumerated(ties: tuple[int, ...], k: int, scores: tuple[float, ...] = ()) -> tuple[Values, Values]:
    """The distribution of the sum over all tables, for the doubled ranks or for these scores. A table states how often
    each value, except the most frequent one, is in the sample.
    """
    share = k / sum(ties)
    ranks: Sequence[float] = scores or _doubled(ties)
    rest = ties.index(max(ties))
    count, sums, weight = np.zeros(1, dtype=np.int64), np.zeros(1), np.ones(1)
    for at, length in enumerate(ties):
        if at == rest:
            continue
        x = np.arange(min(length, k) + 1)
        count = (count[:, None] + x).ravel()
        sums = (sums[:, None] + x * (ranks[at] - ranks[rest])).ravel()
        weight = (weight[:, None] * _binomial(length, x.size - 1, share)).ravel()
    left = k - count
    possible = (left >= 0) & (left <= ties[rest])
    of_rest = _binomial(ties[rest], min(ties[rest], k), share)
    weight = weight[possible] * of_rest[left[possible]]
    return _ordered(sums[possible] + k * ranks[rest], weight, _moments(ties, ranks, k))


@lru_cache(maxsize=4096)
def _distribution(ties: tuple[int, ...], k: int, step: float) -> tuple[Values, Values]:
    """All possible values of H in ascending order, each with the probability of this value or a larger one. `step`:
    ranks are rounded to multiples of this.
    """
    share = k / sum(ties)
    ranks = _doubled(ties)
    base = ranks[ties.index(max(ties))]  # round all ranks except the rank of the largest tie
    lowest = round((ranks[0] - base) / step)
    scores = [round((rank - base) / step) - lowest for rank in ranks]
    most, left = 0, k
    for score, length in zip(reversed(scores), reversed(ties), strict=True):
        most, left = most + min(left, length) * score, left - min(left, length)
    ways = np.zeros((k + 1, most + 1))
    ways[0, 0] = 1
    end = 1  # number of sums so far
    for score, length in zip(scores, ties, strict=True):
        before = ways[:, :end].copy()
        chances = _binomial(length, min(length, k), share)
        ways[:, :end] *= chances[0]
        for x in range(1, chances.size):
            first, width = x * score, min(end, most + 1 - x * score)
            if width > 0:
                ways[x:, first : first + width] += chances[x] * before[: k + 1 - x, :width]
        end = min(end + min(length, k) * score, k * score + 1, most + 1)  # an upper bound on the sums
    found = np.flatnonzero(ways[k])
    sums = np.asarray((found + k * lowest) * step + k * base, dtype=np.float64)
    return _ordered(sums, ways[k][found], _moments(ties, ranks, k))


def _moments(ties: tuple[int, ...], scores: Sequence[float], k: int) -> tuple[float, float]:
    """The mean and variance of the sum of k scores."""
    lengths, every, n = np.array(ties, dtype=np.float64), np.array(scores, dtype=np.float64), sum(ties)
    mean = float(lengths @ every) / n
    return k * mean, k * (n - k) / (n * (n - 1)) * float(lengths @ (every - mean) ** 2)


def _ordered(sums: Values, weight: Values, moments: tuple[float, float]) -> tuple[Values, Values]:
    mean, variance = moments
    every = (sums - mean) ** 2 / variance
    order = np.argsort(every, kind="stable")
    upward = np.cumsum(weight[order][::-1])[::-1]
    return np.asarray(every[order]), np.asarray(upward / upward[0])


def _tail(h: float, every: Values, upward: Values) -> float:
    at = int(np.searchsorted(every, h * (1 - 1e-9) - 1e-12))  # finds h itself despite rounding
    return min(1.0, float(upward[at])) if at < upward.size else 0.0
