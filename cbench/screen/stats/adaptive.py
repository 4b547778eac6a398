"""Choose the number of bootstrap replicates by the adaptive procedure of JCGM 101:2008, clause 7.9.4.

Each block of M replicates yields an estimate, a standard uncertainty and both ends of the interval. Blocks are drawn
until twice the standard error of the mean of each of these numbers is within a tolerance; the result is then computed
from all replicates. M is 10^4, or 100/(1 - level) if that is more. The tolerance is the size of a pixel of the plot (D.
Flater, NIST TN 1855 (2014), section 3.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.bca import IntervalKind, generator, of_replicates, sample
from cbench.stats.interval import MID, Interval, Values, exponent, scaled

MOST_REPLICATES = 200_000
LEAST_BLOCK = 10_000


def block(level: float) -> int:
    """M, the number of replicates in a block."""
    return max(LEAST_BLOCK, ceil(round(100 / (1 - level), 6)))


def twice_error(blocks: Sequence[float]) -> float:
    """Twice the standard error of the mean of h numbers, s = sqrt(sum (y_r - mean)^2/(h (h - 1))); infinite for one
    block.
    """
    h = len(blocks)
    if h < 2:
        return inf
    every = np.array(blocks)
    power = exponent(every)
    every = np.ldexp(every, -power)
    return scaled(2 * sqrt(float(((every - every.mean()) ** 2).sum()) / (h * (h - 1))), power)


def adaptive_bca(
    values: ArrayLike,
    level: float = 0.95,
    delta: float = inf,
    seed: int = 0,
    ties: str = MID,
    most: int = MOST_REPLICATES,
) -> Interval:
    """The BCa interval of the mean. Blocks of replicates are drawn until the mean, its uncertainty and both ends of the
    interval are stable within `delta`, in the values' unit, or until a further block would exceed `most` replicates.

    In the result, `replicates` is the number of replicates. `why` gives the reason if there is no interval, or if the
    interval is not stable within `delta`.
    """
    kind = IntervalKind(level, ties)
    centered = sample(values, kind)
    if isinstance(centered, Interval):
        return centered
    rng = generator(seed)
    size = min(block(level), most)
    drawn: list[Values] = []
    rows: list[tuple[float, float, float, float]] = []
    while True:
        replicates = centered.replicates(size, rng)
        interval = of_replicates(centered, replicates, kind)
        drawn.append(replicates)
        if interval.low is None or interval.high is None:
            return interval
        middle, spread = (float(each) * centered.scale for each in (replicates.mean(), replicates.std()))
        rows.append((middle, spread, interval.low, interval.high))
        worst = max(twice_error(column) for column in zip(*rows, strict=True))
        stable = len(rows) > 1 and worst <= delta
        if stable or (len(drawn) + 1) * size > most:
            every = np.concatenate(drawn)
            interval = of_replicates(centered, every, kind)
            if stable:
                return interval
            within = (
                f"stable within {worst:.2g}, not within {delta:.2g}"
                if len(rows) > 1
                else "in one block, whose stability is unknown"
            )
            return replace(interval, why=f"after {every.size:,} replicates {within}")
