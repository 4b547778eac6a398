"""The chance of a sum of numbers whose signs are coins', where all of them are whole multiples of one step.

Ranks are, and so are differences that a coarse clock has read. Sums then take few values, each with a chance that no
smooth curve has; they are counted out one number after the other, as F. Wilcoxon's own tables were (Biometrics Bull. 1
(1945) 80-83).
"""

from __future__ import annotations

import numpy as np

from cbench.screen.stats.effects import Values

MOST_WORK = 2**22
"""Additions at most: 60 blocks of 12 treatments without ties take 2 million of them, some milliseconds."""
CLOSE = 1e-9
"""What is left of a division below this share of the largest number is rounding."""


def common_step(size: Values) -> float:
    """The largest number that all of these (above 0) are multiples of; 0 if it is below a millionth of the largest."""
    largest = float(size.max())
    step = largest
    while step > 1e-6 * largest:
        left = size % step
        left = np.minimum(left, step - left)
        wrong = left > CLOSE * largest
        if not wrong.any():
            return step
        step = float(left[wrong].min())  # a sum of multiples of these, so a multiple of their step
    return 0.0


def chance_of_sum(size: Values, total: float, step: float) -> float | None:
    """The chance that the sum of `size`, each with a coin's sign, is as far from 0 as `total`. None where it is too
    much work."""
    parts = np.sort(np.rint(size / step).astype(np.int64))
    whole, wanted = int(parts.sum()), round(total / step)
    if whole * parts.size > MOST_WORK:
        return None
    if not wanted:
        return 1.0
    chances = np.zeros(whole + 1)  # of each sum of those that have the sign +
    chances[0] = 1.0
    upto = 0
    for part in parts.tolist():
        half = chances[: upto + 1] / 2
        chances[: upto + 1] = half
        chances[part : upto + part + 1] += half
        upto += part
    return min(1.0, 2 * float(chances[(whole + wanted + 1) // 2 :].sum()))
