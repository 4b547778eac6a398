"""The runs test: the number of stretches of one kind in a sequence, and the probability of so few by chance.

A. Wald, J. Wolfowitz, "On a test whether two samples are from the same population", Ann. Math. Statist. 11 (1940)
147-162.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb

FEW = 0.001
"""A sequence with a lower probability of so few stretches was not mixed."""


def stretches(kinds: Sequence[object]) -> int:
    """So many stretches of equal kinds."""
    return sum(one != other for one, other in pairwise(kinds)) + 1 if kinds else 0


def few(a: int, b: int, count: int) -> float:
    """P(at most so many stretches) of a + b places, each sequence equally likely; 1 where there is one kind only."""
    if not a or not b:
        return 1.0
    total = 0
    for number in range(2, count + 1):
        half = number // 2
        if number % 2:
            total += comb(a - 1, half) * comb(b - 1, half - 1) + comb(a - 1, half - 1) * comb(b - 1, half)
        else:
            total += 2 * comb(a - 1, half - 1) * comb(b - 1, half - 1)
    return total / comb(a + b, a)


def mixed(a: int, b: int, count: int) -> bool:
    """Whether a + b items in this many stretches were spread over the same time."""
    return not (count == 2 and a + b > 2) and few(a, b, count) >= FEW
