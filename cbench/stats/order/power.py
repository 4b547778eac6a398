"""How many runs it takes to see a shift of so many per cent here, with the test that is used.

G. E. Noether, "Sample size determination for some common nonparametric tests", J. Amer. Statist. Assoc. 82 (1987)
645-647: n = (z_alpha/2 + z_power)^2 / (6 (p - 1/2)^2) for each of two equal samples, p = P(X < Y) + P(X = Y)/2. Here
p is taken from the study's own values: how two of them, the second made larger by the shift, lie to each other.
"""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
LARGEST = 10.0
"""Shifts are looked for up to ten times the median."""


def residuals(*samples: Values) -> Values:
    """Values relative to their own sample's median, sorted; nothing where a median is 0."""
    parts = []
    for sample in samples:
        if sample.size:
            middle = float(np.median(sample))
            if not middle:
                return np.empty(0)
            parts.append(sample / middle)
    return np.sort(np.concatenate(parts)) if parts else np.empty(0)


def superiority(relative: Values, shift: float) -> float:
    """P(X < Y) + P(X = Y)/2 where Y is drawn like X and then made larger by `shift` (0.01: one per cent)."""
    moved = relative * (1 + shift)
    below = np.searchsorted(relative, moved).sum() + np.searchsorted(relative, moved, side="right").sum()
    return float(below) / (2 * relative.size**2)


def runs_needed(relative: Values, shift: float, alpha: float, power: float) -> int | None:
    """Runs of each order; None where nothing is known of the spread. At least the two that a test needs."""
    if relative.size < 2 or shift <= 0:
        return None
    away = superiority(relative, shift) - 0.5
    return max(2, ceil(_quantiles(alpha, power) ** 2 / (6 * away * away))) if away > 0 else None


def detectable(relative: Values, runs: float, alpha: float, power: float) -> float | None:
    """The smallest shift that so many runs of each order see; None where none up to LARGEST is seen."""
    if relative.size < 2 or runs < 2:
        return None
    wanted = _quantiles(alpha, power) / sqrt(6 * runs)
    if wanted >= 0.5 or superiority(relative, LARGEST) - 0.5 < wanted:
        return None
    low, high = 0.0, LARGEST
    while high - low > 1e-6 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (low, middle) if superiority(relative, middle) - 0.5 >= wanted else (middle, high)
    return high


def _quantiles(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
