"""The BCa bootstrap interval of a mean or a median: bias-corrected and accelerated."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, isfinite

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats import bootstrap
from cbench.stats.bca_correction import Corrected, acceleration, corrected, place, quantiles, share_below
from cbench.stats.interval import (
    BCA,
    LINEAR,
    MEAN,
    MEDIAN,
    MID,
    QUANTILES,
    STATISTICS,
    STRICT,
    TIES,
    Interval,
    Values,
    alike,
    check_level,
    checked,
    no_numbers,
)

REPLICATES = 50_000
"""TN 1855's number for its subsampling study."""

FEWEST = 3
MOST_EXACT = 8
"""All resamples of 8 values are 6,435 different ones; of 12 there would be over a million."""


@dataclass(frozen=True, slots=True)
class CenteredSample:
    """Values without their mean, in units of the largest distance to it; `rounding`: what is equal in these units."""

    row: Values
    middle: float
    scale: float
    rounding: float
    statistic: str

    @property
    def estimate(self) -> float:
        """The statistic of the sample, in these units."""
        return float(np.median(self.row)) if self.statistic == MEDIAN else 0.0

    def replicates(self, count: int, rng: np.random.Generator) -> Values:
        """The statistic of so many bootstrap samples, in these units."""
        if self.statistic == MEDIAN:
            return bootstrap.medians(self.row, count, rng)
        return bootstrap.sums(self.row, count, rng) / self.row.size

    def back(self, value: float) -> float:
        """In the values' own unit."""
        return self.middle + self.scale * value


@dataclass(frozen=True, slots=True)
class IntervalKind:
    """What kind of interval; ValueError where there is none of the kind."""

    level: float
    statistic: str
    ties: str
    quantile: str

    def __post_init__(self) -> None:
        check_level(self.level)
        for given, known in ((self.statistic, STATISTICS), (self.ties, TIES), (self.quantile, QUANTILES)):
            if given not in known:
                raise ValueError(f"{given}: one of {', '.join(known)} is needed")

    @property
    def method(self) -> str:
        return f"{BCA} ({self.ties})"

    def none(self, why: str | None, replicates: int = 0) -> Interval:
        return Interval(None, None, self.level, self.method, replicates, why)


def bca(
    values: ArrayLike,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
    statistic: str = MEAN,
    ties: str = MID,
    quantile: str = LINEAR,
) -> Interval:
    """The BCa interval from `replicates` resamples of the values (one row, any order), drawn with `seed`.

    No interval, with its reason: fewer than 3 values, values that are no finite numbers, no or every replicate below
    the estimate. All values alike: an interval of width 0, and that is said. ValueError for a level outside (0, 1), an
    unknown statistic, convention of ties or quantile, or fewer than 1 replicate.
    """
    asked = IntervalKind(level, statistic, ties, quantile)
    if replicates < 1:
        raise ValueError("at least one replicate is needed")
    made = sample(values, asked)
    if isinstance(made, Interval):
        return made
    return of_replicates(made, made.replicates(replicates, generator(seed)), asked)


def generator(*seed: int) -> np.random.Generator:
    """The one that all draws of this package are made with."""
    return np.random.Generator(np.random.SFC64(seed))


def sample(values: ArrayLike, asked: IntervalKind) -> CenteredSample | Interval:
    """The values ready to be drawn from, or the interval that says why there is nothing to draw."""
    row = checked(values)
    why = no_numbers(row)
    if why is None and row.size < FEWEST:
        why = f"{FEWEST} values are needed, there {'is' if row.size == 1 else 'are'} {row.size}"
    if why is not None:
        return asked.none(why)
    low, high = float(row.min()), float(row.max())
    if low == high:
        return Interval(low, high, asked.level, asked.method, 0, alike(row.size))
    middle = float((row / row.size).sum())
    scale = max(high - middle, middle - low)
    if not isfinite(high - low) or scale <= 0:
        return asked.none("the values are too far apart, or too close, for numbers of 64 bits")
    return CenteredSample(
        (row - middle) / scale, middle, scale, bootstrap.rounding(row.size, middle, scale), asked.statistic
    )


def of_replicates(made: CenteredSample, replicates: Values, asked: IntervalKind) -> Interval:
    """The interval that these replicates make."""
    found, why = correction(made, share_below(replicates, made.estimate, asked.ties, made.rounding), asked.level)
    if found.why is not None:
        return asked.none(found.why, replicates.size)
    low, high = quantiles(replicates, found.low, found.high, asked.quantile)
    return Interval(made.back(low), made.back(high), asked.level, asked.method, replicates.size, why)


def correction(made: CenteredSample, below: float, level: float) -> tuple[Corrected, str | None]:
    """P, z0, a and where the ends are; and what to know of the acceleration."""
    a = acceleration(made.row, made.statistic)
    why = None if a is not None else "no single value moves the median: corrected for bias, without acceleration"
    return corrected(below, a or 0.0, level), why


def bca_exact(
    values: ArrayLike,
    level: float = 0.95,
    statistic: str = MEAN,
    ties: str = MID,
    quantile: str = LINEAR,
) -> Interval:
    """The same from all n^n resamples of at most 8 values, each counted once: no draw, nothing by chance."""
    asked = IntervalKind(level, statistic, ties, quantile)
    made = sample(values, asked)
    if isinstance(made, Interval):
        return made
    replicates, ways = enumerated(made)
    found, why = correction(made, exact_share(replicates, ways, made, ties), level)
    count = made.row.size**made.row.size
    if found.why is not None:
        return asked.none(found.why, count)
    low, high = (_weighted(replicates, ways, q, quantile) for q in (found.low, found.high))
    return Interval(made.back(low), made.back(high), level, asked.method, count, why)


def enumerated(made: CenteredSample) -> tuple[Values, list[int]]:
    """The statistic of each different resample, ascending, and in how many orders it can be drawn."""
    n = made.row.size
    if n > MOST_EXACT:
        raise ValueError(f"at most {MOST_EXACT} values can be counted out, there are {n}")
    every = np.array(list(combinations_with_replacement(range(n), n)))
    ways = []
    for chosen in every:
        orders = factorial(n)
        for count in np.bincount(chosen).tolist():
            orders //= factorial(count)
        ways.append(orders)
    resamples = made.row[every]
    found = np.median(resamples, axis=1) if made.statistic == MEDIAN else resamples.mean(axis=1)
    order = np.argsort(found, kind="stable")
    return found[order], [ways[at] for at in order.tolist()]


def exact_share(replicates: Values, ways: list[int], made: CenteredSample, ties: str) -> float:
    """P of all resamples."""
    weights = np.array(ways)
    below = int(weights[replicates < made.estimate - made.rounding].sum())
    if ties == STRICT:
        return float(below / weights.sum())
    return float((below + weights[replicates <= made.estimate + made.rounding].sum()) / (2 * weights.sum()))


def _weighted(replicates: Values, ways: list[int], q: float, quantile: str) -> float:
    upto = np.cumsum(ways)
    whole, part = place(int(upto[-1]), q, quantile)
    low = float(replicates[upto.searchsorted(whole, side="right")])
    high = float(replicates[upto.searchsorted(min(whole + 1, int(upto[-1]) - 1), side="right")])
    return low + part * (high - low)
