"""Compare the etalon with an independent clock, and check whether the first run of a series is like the others.

D. Flater, NIST TN 1855 (2014), sections 3.2 to 3.4 and 3.8: an etalon waits busily until its time has elapsed on a
clock, and a wristwatch shows whether that clock is right. For one metric, the only outliers were the first values
of series.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.bca import bca
from cbench.stats.distributions import student_p, t_quantile
from cbench.stats.interval import Interval, checked, deviation, no_squares, t_interval

FIRST_ALPHA = 0.001
"""A first value that is less probable than this among normal values is flagged. TN 1855 has no number, only "an order
of magnitude" of the sd. The threshold here is the ratio of sds that a first value of this probability causes, which
depends on n. Dozens of series are examined, and one false alarm in a thousand is rare enough.
"""

FIRST_LEAST = 5
"""The minimum number of values for this check."""


@dataclass(frozen=True, slots=True)
class Etalon:
    """`n` values compared with the `wanted` value, in its unit: `mean`, `median`, `sd` and `sem` (None for fewer than 2
    values), `cv` (sd/mean, None if the mean is 0). `t`, `p`: Student's t and two-sided p-value for mean = wanted; None
    if `sd` is 0 or None. `t_mean`, `bca_mean`: intervals of the mean. `why`: the reason why results are missing, None
    if none are.
    """

    n: int
    wanted: float
    mean: float | None
    median: float | None
    sd: float | None
    sem: float | None
    cv: float | None
    t: float | None
    p: float | None
    t_mean: Interval
    bca_mean: Interval
    why: str | None = None


def etalon(
    values: ArrayLike, wanted: float = 10.0, level: float = 0.95, replicates: int = 50_000, seed: int = 0
) -> Etalon:
    """Compare measured durations of an etalon with the duration `wanted` that each should have, in the same unit.
    Raises ValueError for an invalid level or fewer than 1 replicate.
    """
    row = checked(values)
    ends = t_interval(row, level), bca(row, level, replicates, seed)
    why = no_squares(row) or (None if row.size else "there are no values")
    if why is not None:
        return Etalon(row.size, wanted, None, None, None, None, None, None, None, *ends, why)
    mean, middle = float(row.mean()), float(np.median(row))
    sd = deviation(row)
    if sd is None:
        why = "2 values are needed for a spread, but there is 1"
        return Etalon(row.size, wanted, mean, middle, None, None, None, None, None, *ends, why)
    sem = sd / sqrt(row.size)
    cv = sd / mean if mean else None
    if not sd:
        why = f"all {row.size:,} values are equal: there is no spread to compare a difference with"
        return Etalon(row.size, wanted, mean, middle, sd, sem, cv, None, None, *ends, why)
    t = (mean - wanted) / sem
    return Etalon(row.size, wanted, mean, middle, sd, sem, cv, t, student_p(t, row.size - 1), *ends)


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The sd of all n values and of all except the first, and the `ratio` of the two (infinite if all others are
    equal).

    `flagged`: whether the first value looks like a warm-up, because the ratio is above the `threshold` and no other
    value is as far from the others' median. `p`: the probability of a first value at least this far off among normal
    values. `why`: the reason why the result is unknown, or a note.
    """

    n: int
    sd: float | None
    sd_without: float | None
    ratio: float | None
    threshold: float | None
    p: float | None
    flagged: bool
    why: str | None = None


def first_run(values: ArrayLike, alpha: float = FIRST_ALPHA) -> FirstRun:
    """Check the first value of one series, whose values are in the order of measurement. Raises ValueError if `alpha`
    is not within (0, 1).

    The first value's distance to the others' mean in units of their sd, d/(s sqrt(n/(n - 1))), is distributed as
    Student's t with n - 2 degrees of freedom if the first value is like the others, and ratio^2 = (n - 2 + t^2)/(n -
    1); so each probability corresponds to a ratio.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha}: must be above 0 and below 1")
    row = checked(values)
    n = row.size
    why = no_squares(row)
    if why is None and n < FIRST_LEAST:
        why = f"{FIRST_LEAST} values are needed, but there {'is' if n == 1 else 'are'} {n}"
    if why is not None:
        return FirstRun(n, None, None, None, None, None, False, why)
    others = row[1:]
    sd, without = deviation(row), deviation(others)
    assert sd is not None
    assert without is not None
    threshold = sqrt((n - 2 + t_quantile(1 - alpha / 2, n - 2) ** 2) / (n - 1))
    if not sd:
        return FirstRun(n, sd, without, None, threshold, None, False, f"all {n:,} values are equal")
    if not without:
        return FirstRun(n, sd, without, inf, threshold, 0.0, True, "all values but the first are equal")
    t = (float(row[0]) - float(others.mean())) / (without * sqrt(n / (n - 1)))
    ratio = sd / without
    away = np.abs(row - np.median(others))
    farthest = bool(away[0] > away[1:].max())
    rare = ratio > threshold
    why = "the first is far from the others, but not the farthest" if rare and not farthest else None
    return FirstRun(n, sd, without, ratio, threshold, student_p(t, n - 2), rare and farthest, why)
