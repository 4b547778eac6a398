"""Whether fixed and random runs were mixed in time. Where they were not, order and time are confounded.

A. Wald, J. Wolfowitz, "On a test whether two samples are from the same population", Ann. Math. Statist. 11 (1940)
147-162: the number of stretches of equal orders is compared with what a random sequence would have. Its distribution is
counted out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

FEW = 0.001
"""A sequence with so few stretches that chance makes it more rarely than this is called blocked."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Runs of both orders in time: how many stretches of equal orders, and P(that few or fewer) by chance."""

    fixed: int
    random: int
    stretches: int
    p_few: float

    @property
    def interleaved(self) -> bool:
        """Whether both orders were spread over the same time."""
        if not self.fixed or not self.random:
            return False
        if self.stretches == 2 and self.fixed + self.random > 2:
            return False
        return self.p_few >= FEW


def sequence(random: NDArray[np.bool_]) -> Sequence:
    """From the order of each run, in time."""
    ones = int(random.sum())
    stretches = int((random[1:] != random[:-1]).sum()) + 1 if random.size else 0
    return Sequence(random.size - ones, ones, stretches, few(random.size - ones, ones, stretches))


def few(a: int, b: int, stretches: int) -> float:
    """P(at most so many stretches) of a + b places, each sequence equally likely; 1 where there is one kind only."""
    if not a or not b:
        return 1.0
    total = 0
    for count in range(2, stretches + 1):
        half = count // 2
        if count % 2:
            total += comb(a - 1, half) * comb(b - 1, half - 1) + comb(a - 1, half - 1) * comb(b - 1, half)
        else:
            total += 2 * comb(a - 1, half - 1) * comb(b - 1, half - 1)
    return total / comb(a + b, a)
