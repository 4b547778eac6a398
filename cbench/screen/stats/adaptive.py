"""How many replicates are enough: the adaptive procedure of JCGM 101:2008, clause 7.9.4, for the bootstrap.

Blocks of M replicates are drawn until the estimate, the standard uncertainty and both ends of the interval, one number
a block each, have means whose doubled standard errors are all within a tolerance; then all replicates make the result.
M is 10^4, or 100/(1 - level) if that is more. The tolerance belongs to the number of digits that the uncertainty is to
be told with (clause 7.9.2), or is what a pixel of the plot stands for (D. Flater, NIST TN 1855 (2014), section 3.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from math import ceil, isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.bca import IntervalKind, generator, of_replicates, sample
from cbench.stats.interval import MID, Interval, Values, exponent, scaled

MOST_REPLICATES = 1_000_000
LEAST_BLOCK = 10_000


def block(level: float) -> int:
    """M: how many replicates a block has. ValueError for a level not within (0, 1)."""
    if not 0 < level < 1:
        raise ValueError("a level lies between 0 and 1")
    return max(LEAST_BLOCK, ceil(round(100 / (1 - level), 6)))


def written(uncertainty: float, digits: int) -> tuple[int, int]:
    """(c, l) with an uncertainty above 0 rounded to c 10^l, c of `digits` digits; 0.0996 to one digit is 1 10^-1."""
    if digits < 1:
        raise ValueError("at least one digit is needed")
    if not (uncertainty > 0 and isfinite(uncertainty)):
        raise ValueError("an uncertainty above 0 is needed")
    exact = Decimal(repr(uncertainty))
    power = exact.adjusted() - digits + 1
    c = int(exact.scaleb(-power).quantize(Decimal(1), ROUND_HALF_UP))
    return (c // 10, power + 1) if c == 10**digits else (c, power)


def tolerance(uncertainty: float, digits: int) -> float:
    """Half a unit of the last of `digits` (1 or 2) significant digits of an uncertainty, rounded with carry."""
    return 0.5 * 10.0 ** written(uncertainty, digits)[1]


def pixel(span: float, pixels: int) -> float:
    """What one pixel of a plot stands for, whose axis spans `span` in `pixels`: TN 1855's tolerance."""
    if pixels < 1 or not span > 0:
        raise ValueError("an axis has a span above 0 and at least one pixel")
    return span / pixels


def twice_error(blocks: Sequence[float]) -> float:
    """2 s of the mean of h >= 2 blocks' numbers: s = sqrt(sum (y_r - mean)^2/(h (h - 1)))."""
    h = len(blocks)
    if h < 2:
        return float("inf")
    every = np.array(blocks)
    power = exponent(every)
    every = np.ldexp(every, -power)
    return scaled(2 * sqrt(float(((every - every.mean()) ** 2).sum()) / (h * (h - 1))), power)


def stable(blocks: Sequence[Sequence[float]], delta: float) -> bool:
    """Whether all columns (estimate, uncertainty, ends) of rows, one a block, are stable within `delta`: not of one."""
    return len(blocks) >= 2 and all(twice_error(column) <= delta for column in zip(*blocks, strict=True))


def adaptive_bca(
    values: ArrayLike,
    level: float = 0.95,
    digits: int = 1,
    delta: float | None = None,
    seed: int = 0,
    ties: str = MID,
    most: int = MOST_REPLICATES,
) -> Interval:
    """The BCa interval from as many replicates as its ends need to be stable within `delta`, at most `most`.

    delta: a tolerance in the values' unit (one pixel of the plot, `pixel`); without, that of `digits` significant
    digits of the standard uncertainty. `replicates` of the result says how many it took; `why` where `most` came first.
    """
    asked = IntervalKind(level, ties)
    if digits < 1 or (delta is not None and not delta > 0):
        raise ValueError("at least one digit and a tolerance above 0 are needed")
    made = sample(values, asked)
    if isinstance(made, Interval):
        return made
    rng = generator(seed)
    size = min(block(level), most)
    drawn: list[Values] = []
    told: list[tuple[float, float, float, float]] = []
    while True:
        replicates = made.replicates(size, rng)
        found = of_replicates(made, replicates, asked)
        drawn.append(replicates)
        if found.low is None or found.high is None:
            return found
        told.append(
            (float(replicates.mean()) * made.scale, float(replicates.std()) * made.scale, found.low, found.high)
        )
        every = np.concatenate(drawn) if len(drawn) > 1 else replicates
        wanted = delta if delta is not None else _of_digits(float(every.std()) * made.scale, digits)
        if stable(told, wanted):
            return of_replicates(made, every, asked)
        if (len(drawn) + 1) * size > most:
            worst = max(twice_error(column) for column in zip(*told, strict=True))
            within = (
                f"stable within {worst:.2g}, not within {wanted:.2g}" if len(told) > 1 else "which is one block only"
            )
            why = f"after {every.size:,} replicates {within}"
            return replace(of_replicates(made, every, asked), why=why)


def _of_digits(uncertainty: float, digits: int) -> float:
    """Nothing is as stable as replicates that are all alike."""
    return tolerance(uncertainty, digits) if uncertainty > 0 else float("inf")
