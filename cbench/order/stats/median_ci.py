"""Confidence intervals of a median by ranks, and how those of two orders lie to each other: OrderSage's three cases.

An interval lies between the j-th and the k-th smallest of n values. j is the largest with
P(B <= j - 1) <= (1 - level)/2 for B ~ Binomial(n, 1/2), and k = n + 1 - j (J.-Y. Le Boudec, Performance Evaluation of
Computer and Communication Systems (2010), theorem 2.1). There is none where these ranks are not 1 <= j < k <= n.

As OrderSage's tool has them, the ranks are Le Boudec's normal approximation with both one higher, clamped to the
sample.

Case 1: the intervals do not overlap (touching ends do). 2: they overlap, and the medians lie inside. 3: anything else.
D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb, exp, floor, lgamma, log, sqrt
from statistics import NormalDist

_FAR = 40  # standard deviations from the middle: what lies beyond is below 1e-300


@lru_cache(maxsize=4096)
def ranks(n: int, level: float, published: bool = False) -> tuple[int, int] | None:
    """The ranks (j, k), from 1 to n; None where no such interval exists. `published`: those of OrderSage's tool."""
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
    """P(B = i)."""
    if n < 1000:
        return float(comb(n, i) / 2**n)
    return exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2))


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """A median and its interval."""

    low: float
    median: float
    high: float


def case(fixed: MedianInterval, random: MedianInterval, published: bool = False) -> int:
    """The case: 1, 2 or 3. The paper's Algorithm 2 wants each median strictly inside the other interval for case 2.

    `published`: as OrderSage's tool, at least one, and on an end too where the random interval ends higher.
    """
    if fixed.high < random.low or random.high < fixed.low:
        return 1
    pairs = ((fixed.median, random), (random.median, fixed))
    if not published:
        inside = all(other.low < median < other.high for median, other in pairs)
    elif random.high > fixed.high:
        inside = any(other.low <= median <= other.high for median, other in pairs)
    else:
        inside = any(other.low < median < other.high for median, other in pairs)
    return 2 if inside else 3


def gap(fixed: MedianInterval, random: MedianInterval) -> float:
    """How far apart the intervals are, in widths of the wider one; negative: how much they overlap. 0 for points."""
    apart = max(fixed.low, random.low) - min(fixed.high, random.high)
    widest = max(fixed.high - fixed.low, random.high - random.low)
    return apart / widest if widest else 0.0
