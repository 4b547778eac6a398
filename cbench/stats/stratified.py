"""Compare two samples within strata, such as hosts, without ranking values across strata.

Ph. van Elteren, "On the combination of independent two-sample tests of Wilcoxon", Bull. Int. Statist. Inst. 37 (1960)
351-361; E. L. Lehmann, "Nonparametrics: Statistical methods based on ranks", 1975, section 3.3: the sum over strata of
the rank sums, each divided by its stratum's size + 1. The same weights combine Wilcoxon's signed ranks of pairs.

p is computed by permutation within strata: by counting, ties included, if that takes at most WORK additions on a grid
that contains every weighted sum. Otherwise, the square of the sum is treated as a beta variable with the exact variance
and kurtosis of the sum, as in cbench/order/stats/permutation.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np
from numpy.typing import NDArray

from cbench.stats.distributions import beta_sf, chi2_sf
from cbench.stats.trials import Codes, Flags, Values

WORK = 4_000_000
"""The maximum number of additions for the exact distribution of one test."""


@dataclass(frozen=True, slots=True)
class StratifiedTest:
    """The result of a test within strata. `z`: the weighted sum divided by its standard deviation; `p`: the two-sided
    p-value; `strata`: the number of strata that contribute.
    """

    z: float
    p: float
    strata: int


@dataclass(frozen=True, slots=True)
class _Stratum:
    """The contribution of one stratum. `doubled`: twice the difference of the stratum's sum from the expected sum.
    `scores`, `size`: the distribution is that of the sums of the scores over all subsets of this size or, if `size` is
    None, with all signs; `weight`: the reciprocal of the stratum's weight.
    """

    doubled: int
    scores: tuple[int, ...]
    size: int | None
    weight: int


def van_elteren(value: Values, second: Flags, stratum: Codes) -> StratifiedTest | None:
    """Test whether the values flagged `second` are larger or smaller than the others of their stratum.

    The three arrays have the same length. A stratum without values on one of the two sides does not contribute; None
    if no stratum contributes.
    """
    parts = []
    for number in np.unique(stratum).tolist():
        inside = stratum == number
        marked = second[inside]
        if marked.all() or not marked.any():
            continue
        ranks = _doubled(value[inside])
        n, k = ranks.size, int(marked.sum())
        parts.append(_Stratum(int(ranks[marked].sum()) - k * (n + 1), tuple(sorted(ranks.tolist())), k, n + 1))
    return _combined(parts)


def signed_ranks(away: Values, stratum: Codes) -> StratifiedTest | None:
    """Test whether the differences of pairs within strata lie to one side of 0; None if there is no pair."""
    parts = []
    for number in np.unique(stratum).tolist():
        inside = away[stratum == number]
        ranks = _doubled(np.abs(inside))
        signs = np.sign(inside).astype(np.int64)
        scores = tuple(sorted(ranks[signs != 0].tolist()))  # Pratt: zeros have ranks but no sign
        parts.append(_Stratum(int((signs * ranks).sum()), scores, None, inside.size + 1))
    return _combined(parts)


def _combined(parts: Sequence[_Stratum]) -> StratifiedTest | None:
    if not parts:
        return None
    total = sum(part.doubled / part.weight for part in parts)
    moments = [_cumulants(part.scores, part.size) for part in parts]
    variance = sum(second / part.weight**2 for part, (second, _) in zip(parts, moments, strict=True))
    if variance <= 0:
        return StratifiedTest(0.0, 1.0, len(parts))
    z = total / variance**0.5
    p = _counted(parts)
    if p is None:
        excess = sum(fourth / part.weight**4 for part, (_, fourth) in zip(parts, moments, strict=True)) / variance**2
        freedom = -6 / excess - 3 if excess < 0 else 0.0
        p = beta_sf(z * z / (freedom + 1), 0.5, freedom / 2) if freedom > 0 else chi2_sf(z * z, 1)
    return StratifiedTest(z, p, len(parts))


def _doubled(value: Values) -> NDArray[np.int64]:
    """Twice the average ranks, which are integers."""
    ordered = np.sort(value)
    return np.asarray(ordered.searchsorted(value) + ordered.searchsorted(value, side="right") + 1, dtype=np.int64)


@lru_cache(maxsize=4096)
def _cumulants(scores: tuple[int, ...], size: int | None) -> tuple[float, float]:
    """The second and fourth cumulant of the sum of a random subset of `size`, or of the sum with random signs."""
    a = np.array(scores, dtype=np.float64)
    n = a.size
    if size is None:
        return float((a**2).sum()), -2 * float((a**4).sum())
    a -= a.mean()
    square, fourth = float((a**2).sum()), float((a**4).sum())
    variance = size * (n - size) / (n * (n - 1)) * square
    share = [1.0]
    for at in range(4):  # the probability that this many given values are in the subset
        share.append(share[-1] * (size - at) / (n - at) if n > at else 0.0)
    pairs = square * square - fourth
    moment = share[1] * fourth + share[2] * (3 * pairs - 4 * fourth) + share[3] * 6 * (2 * fourth - square * square)
    moment += share[4] * (3 * square * square - 6 * fourth)
    return variance, moment - 3 * variance * variance


def _counted(parts: Sequence[_Stratum]) -> float | None:
    """The share of all permutations within strata whose sum is at least as far from 0 as the observed one; None if
    counting takes too many additions.
    """
    common = lcm(*(part.weight for part in parts))
    spans = [_span(part) * (common // part.weight) for part in parts]
    cost = sum(len(part.scores) * (part.size or 1) * (_span(part) + 1) for part in parts)
    reached = 1
    for part, span in zip(parts, spans, strict=True):
        reached += span
        cost += (_span(part) + 1) * reached
        if cost > WORK:
            return None
    chances, seen = np.ones(1), 0
    for part in parts:
        step = common // part.weight
        of_part = _distribution(part.scores, part.size)
        wide = np.zeros((of_part.size - 1) * step + 1)
        wide[::step] = of_part
        chances = np.convolve(chances, wide)
        seen += part.doubled * step
    middle = sum(_centre(part) * (common // part.weight) for part in parts)  # in doubled sums
    sums = 2 * np.arange(chances.size) if all(part.size is None for part in parts) else np.arange(chances.size)
    far = np.abs(sums - middle) >= abs(seen)
    return min(1.0, float(chances[far].sum()))


def _least(part: _Stratum) -> int:
    return -sum(part.scores) if part.size is None else sum(part.scores[: part.size])


def _span(part: _Stratum) -> int:
    """The number of cells of the stratum's distribution, minus one; with signs, sums are 2 apart."""
    return sum(part.scores) if part.size is None else sum(part.scores[-part.size :]) - _least(part)


def _centre(part: _Stratum) -> int:
    """The expected sum minus the lowest one; twice the mean rank is the stratum's size + 1."""
    return sum(part.scores) if part.size is None else part.size * part.weight - _least(part)


@lru_cache(maxsize=256)
def _distribution(scores: tuple[int, ...], size: int | None) -> Values:
    """The probability of each sum of `size` scores (None: with random signs), beginning with the smallest."""
    if size is None:
        return sign_distribution(scores)
    base, n = scores[0], len(scores)
    most = sum(scores[-size:]) - size * base
    ways = np.zeros((size + 1, most + 1))
    ways[0, 0] = 1.0
    for score in scores:
        by = score - base
        ways[1:, by:] += ways[:-1, : most + 1 - by].copy()
        if n > 500:  # otherwise the number of subsets is a finite float
            ways /= ways.max()
    found = ways[size, sum(scores[:size]) - size * base :]
    return np.asarray(found / found.sum())


def sign_distribution(scores: Sequence[int]) -> Values:
    """The probability of each sum of the scores with a positive sign, from 0 to sum(scores), if all signs are random.

    The shift algorithm: each score adds the distribution, shifted by the score, to the distribution.
    """
    chances = np.zeros(sum(scores) + 1)
    chances[0] = 1.0
    upto = 0
    for score in scores:
        half = chances[: upto + 1] / 2
        chances[: upto + 1] = half
        chances[score : upto + score + 1] += half
        upto += score
    return chances
