"""Count the pairs of runs that differ, if the estimate of the difference describes none of them.

An effect that is either on or off, such as a cache hit, changes some pairs by 90 % and others not at all. The
Hodges-Lehmann estimate, a median of means of two differences, may then lie between them, at a value that no pair has.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p

import numpy as np

from cbench.stats.trials import Values

NEAR = 0.5
"""A difference (of logarithms, if they are compared) is near the estimate if it deviates from it by at most this share
of the estimate.
"""
EPSILON = 1e-15
"""A decrease by more than 1 - EPSILON is rounded to a decrease to 0, which has no logarithm."""
DIGITS = 6
"""Differences that agree in this many decimals are equal."""


@dataclass(frozen=True, slots=True)
class PairChanges:
    """The numbers of pairs whose value in random order is higher than, lower than, or equal to that in fixed order;
    `higher_pct`, `lower_pct`: the smallest and the largest size of these differences, in %; None if there are none.
    """

    higher: int
    lower: int
    equal: int
    higher_pct: tuple[float, float] | None
    lower_pct: tuple[float, float] | None


def pair_changes(away: Values, ratio: bool, delta_pct: float) -> PairChanges | None:
    """The changes of pairs; None if the estimate describes them: if there are more distinct differences than half the
    number of pairs, or if one of them is near the estimate. `away`: as in SeriesResult; `ratio`: whether these are
    logarithms of ratios. `delta_pct`: the estimate, as in ShiftInterval.
    """
    away = np.round(away, DIGITS)
    kinds = np.unique(away)
    share = -delta_pct / 100
    estimate = log1p(max(share, -1 + EPSILON)) if ratio else share
    if 2 * kinds.size > away.size or (np.abs(kinds - estimate) <= NEAR * abs(estimate) + 10.0**-DIGITS).any():
        return None
    shares = np.expm1(np.minimum(away, 700.0)) if ratio else away
    up, down = shares[shares > 0], -shares[shares < 0]
    ends = [(100 * float(each.min()), 100 * float(each.max())) if each.size else None for each in (up, down)]
    return PairChanges(up.size, down.size, shares.size - up.size - down.size, ends[0], ends[1])
