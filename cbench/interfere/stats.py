"""Estimate the difference between a condition and the unloaded one, from numbers alone.

Trials of one visit (one measuring process) are alike, so an interval comes from resampling visits first and trials
within them second: the two-stage bootstrap of A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their
Application" (1997), section 3.8. With few visits, this interval tends to be too narrow.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cbench.stats.summary import floor

RESAMPLES = 1000
CONFIDENCE = 0.95
STEADY_PCT = 5.0
"""If the unloaded visits differ by more than this (%), the absence of an effect proves nothing."""
LOWEST = 0.05
"""The quantile that replaces the floor if no value repeats."""

Visits = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences in floor and in median, in % of the unloaded values, and the interval of the difference in
    median.
    """

    floor_pct: float
    median_pct: float
    low_pct: float
    high_pct: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """The differences among the unloaded visits, in %.

    `drift_pct`: the difference of the last visit's median from the first visit's median. `noise_pct`: the largest
    distance of a visit's median from the median of all visits together.
    """

    drift_pct: float
    noise_pct: float


def pooled(visits: Visits) -> list[int]:
    return [value for visit in visits for value in visit]


def lowest(values: Sequence[int]) -> tuple[int, bool]:
    """The floor or, if no value repeats, the LOWEST quantile of the values; and whether the result is a floor.

    The minimum is not used, because calibrated cycles are too low if both chains of a trial were interrupted for the
    same time.
    """
    repeated = floor(values)
    return (sorted(values)[int(LOWEST * len(values))], False) if repeated is None else (repeated, True)


def percent(value: float, base: float) -> float:
    return 100 * (value - base) / base if base else 0.0


def baseline(visits: Visits) -> Baseline:
    """The baseline from the unloaded visits, in the order in which they were made."""
    middle = median(pooled(visits))
    medians = [median(visit) for visit in visits]
    noise = max(abs(percent(each, middle)) for each in medians)
    return Baseline(percent(medians[-1], medians[0]), noise)


def difference(loaded: Visits, unloaded: Visits, seed: int) -> Difference:
    """The differences between loaded and unloaded visits, with the 95 % bootstrap percentile interval of the
    difference in medians.
    """
    dice = random.Random(seed)
    drawn = sorted(percent(_resampled(loaded, dice), _resampled(unloaded, dice) or 1) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    ours, theirs = pooled(loaded), pooled(unloaded)
    return Difference(
        floor_pct=percent(lowest(ours)[0], lowest(theirs)[0]),
        median_pct=percent(median(ours), median(theirs)),
        low_pct=drawn[tail],
        high_pct=drawn[-1 - tail],
    )


def _resampled(visits: Visits, dice: random.Random) -> float:
    values: list[int] = []
    for visit in dice.choices(visits, k=len(visits)):
        values += dice.choices(visit, k=len(visit))
    return median(values)


def doubt(loaded: Visits, unloaded: Visits, base: Baseline) -> str:
    """The reason why an effect may exist although none was detected; "" if there is no such reason."""
    if min(len(visit) for visit in (*loaded, *unloaded)) < 2:
        return "one trial per visit is too few: increase --trials"
    if base.noise_pct > STEADY_PCT:
        return f"unloaded visits differ by up to {base.noise_pct:.2f} %, which would hide an effect"
    return ""


def disturbs(effect: Difference, base: Baseline) -> bool:
    """Whether the condition is shown to be slower: its whole interval is above the differences between unloaded
    visits.
    """
    return effect.low_pct > base.noise_pct
