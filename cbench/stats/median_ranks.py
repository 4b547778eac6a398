"""Compute the interval of a median by ranks, without assumptions about the distribution.

The interval lies between the j-th and the k-th smallest of n values. j is the largest number with P(B <= j - 1) <= (1 -
level)/2 for B ~ Binomial(n, 1/2), and k = n + 1 - j (J.-Y. Le Boudec, Performance Evaluation of Computer and
Communication Systems (2010), theorem 2.1). There is no interval unless 1 <= j < k <= n.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, comb, exp, floor, lgamma, log, sqrt
from statistics import NormalDist

_FAR = 40  # standard deviations from the middle; probabilities beyond are below 1e-300


@lru_cache(maxsize=4096)
def ranks(n: int, level: float, published: bool = False) -> tuple[int, int] | None:
    """The ranks (j, k), from 1 to n; None if there is no such interval. `published`: use the ranks that OrderSage
    uses.
    """
    if published:
        half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(n) / 2
        low, high = floor(n / 2 - half), ceil(n / 2 + half) + 1
        return (max(low, 0) + 1, min(high, n - 1) + 1) if n else None
    tail, j = 0.0, 0
    first = max(0, floor(n / 2 - _FAR * sqrt(n) / 2))
    for i in range(first, n // 2 + 1):
        tail += _chance(n, i)
        if tail > (1 - level) / 2:
            break
        j = i + 1
    return (j, n + 1 - j) if 1 <= j < n + 1 - j else None


def _chance(n: int, i: int) -> float:
    """P(B = i) for B ~ Binomial(n, 1/2)."""
    if n < 1000:
        return float(comb(n, i) / 2**n)
    return exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2))
