"""Compute the runs test: the number of stretches of one kind in a sequence, and the probability of at most that many by
chance.

A. Wald, J. Wolfowitz, "On a test whether two samples are from the same population", Ann. Math. Statist. 11 (1940)
147-162.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, fsum, lgamma

EXACT = 1000
"""The maximum number of items for which the probability is computed from whole numbers."""
FEW = 0.001
"""A sequence is not mixed if the probability of at most its number of stretches is below this."""


def stretches(kinds: Sequence[object]) -> int:
    """The number of stretches of equal kinds."""
    return sum(one != other for one, other in pairwise(kinds)) + 1 if kinds else 0


@lru_cache(maxsize=64)
def few(a: int, b: int, count: int) -> float:
    """The probability of at most `count` stretches in sequences of `a` and `b` items, all equally likely; 1 if there is
    only one kind.
    """
    if not a or not b:
        return 1.0
    most = 2 * min(a, b) + (a != b)
    if a + b > EXACT:
        return min(fsum(_probability(a, b, number) for number in range(2, min(count, most) + 1)), 1.0)
    every = comb(a + b, a)
    if count - 1 <= most - count:
        return sum(_ways(a, b, number) for number in range(2, count + 1)) / every
    return (every - sum(_ways(a, b, number) for number in range(count + 1, most + 1))) / every


def _probability(a: int, b: int, count: int) -> float:
    """The probability of exactly this many stretches, from logarithms."""
    half = count // 2
    pairs = [(half, half - 1), (half - 1, half)] if count % 2 else [(half - 1, half - 1)] * 2
    logs = [_log_comb(a - 1, one) + _log_comb(b - 1, other) for one, other in pairs if one < a and other < b]
    return sum(exp(each - _log_comb(a + b, a)) for each in logs)


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _ways(a: int, b: int, count: int) -> int:
    """The number of sequences with exactly this many stretches."""
    half = count // 2
    if count % 2:
        return comb(a - 1, half) * comb(b - 1, half - 1) + comb(a - 1, half - 1) * comb(b - 1, half)
    return 2 * comb(a - 1, half - 1) * comb(b - 1, half - 1)


def mixed(a: int, b: int, count: int) -> bool:
    """Whether a sequence of `a` and `b` items with `count` stretches counts as mixed. It does not if the probability of
    at most `count` stretches is below FEW, or if it has two stretches and more than two items.
    """
    return not (count == 2 and a + b > 2) and few(a, b, count) >= FEW
