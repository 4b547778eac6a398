"""Confidence intervals of a median by ranks: between the j-th and the k-th smallest of n values.

exact      j is the largest with P(B <= j - 1) <= (1 - level)/2 for B ~ Binomial(n, 1/2), and k = n + 1 - j.
narrowest  the smallest k - j with P(j <= B <= k - 1) >= level; of several the one with most coverage, then lowest j.
normal     j = floor(n/2 - eta sqrt(n)/2), k = ceil(n/2 + eta sqrt(n)/2) + 1, eta the normal quantile of (1 + level)/2.
published  what OrderSage's code takes: `normal` with both ranks one higher, clamped to the sample.

J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems (2010), theorem 2.1 and section 2.2. The
first three have no interval where the ranks are not 1 <= j < k <= n.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, comb, exp, floor, fsum, lgamma, log, sqrt
from statistics import NormalDist

EXACT, NARROWEST, NORMAL, PUBLISHED = "exact", "narrowest", "normal", "published"
RULES = (EXACT, NARROWEST, NORMAL, PUBLISHED)

_FAR = 40  # standard deviations from the middle: what lies beyond is below 1e-300


@lru_cache(maxsize=4096)
def ranks(n: int, level: float, rule: str = EXACT) -> tuple[int, int] | None:
    """The ranks (j, k), from 1 to n; None where no such interval exists. ValueError for a level not within (0, 1)."""
    if not 0 < level < 1:
        raise ValueError("a level lies between 0 and 1")
    if rule == EXACT:
        return _symmetric(n, level)
    if rule == NARROWEST:
        return _narrowest(n, level)
    half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(n) / 2
    low, high = floor(n / 2 - half), ceil(n / 2 + half) + 1
    if rule == NORMAL:
        return (low, high) if 1 <= low < high <= n else None
    if rule != PUBLISHED:
        raise ValueError(f"no such rule: {rule}")
    return (max(low, 0) + 1, min(high, n - 1) + 1) if n else None


@lru_cache(maxsize=4096)
def coverage(n: int, j: int, k: int) -> float:
    """P(j <= B <= k - 1): how often the interval holds the median of a continuous distribution."""
    return fsum(_chance(n, i) for i in range(max(j, 0), min(k - 1, n) + 1))


def _chance(n: int, i: int) -> float:
    if n < 1000:
        return _whole(n, i)
    return exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2))


def _whole(n: int, i: int) -> float:
    return float(comb(n, i) / 2**n)


def _symmetric(n: int, level: float) -> tuple[int, int] | None:
    tail, j = 0.0, 0
    first = max(0, floor(n / 2 - _FAR * sqrt(n) / 2))
    for i in range(first, n // 2 + 1):
        tail += _chance(n, i)
        if tail > (1 - level) / 2:
            break
        j = i + 1
    return (j, n + 1 - j) if 1 <= j < n + 1 - j else None


def _narrowest(n: int, level: float) -> tuple[int, int] | None:
    """The chances fall on both sides of n/2, so that the best `width` of them lie around it."""
    widest = min(n - 1, 2 * ceil(_FAR * sqrt(n) / 2))
    low, high = 1, widest
    if n < 2 or _best(n, widest) < level:
        return None
    while low < high:
        width = (low + high) // 2
        low, high = (low, width) if _best(n, width) >= level else (width + 1, high)
    j = (n + 1 - low) // 2
    return j, j + low


def _best(n: int, width: int) -> float:
    j = (n + 1 - width) // 2
    return coverage(n, j, j + width)
