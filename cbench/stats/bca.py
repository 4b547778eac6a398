"""Compute the BCa (bias-corrected and accelerated) bootstrap interval of a mean.

B. Efron, "Better bootstrap confidence intervals", J. Amer. Statist. Assoc. 82 (1987) 171-185; T. J. DiCiccio, B. Efron,
"Bootstrap confidence intervals", Statist. Sci. 11 (1996) 189-228, section 2. z0 = Phi^-1(P), where P is the share of
replicates below the estimate; a = sum d^3/(6 (sum d^2)^(3/2)), where d_i is the mean of the jackknife values minus the
i-th one; for means, a is the skewness divided by 6 sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import ceil, factorial, floor, isfinite, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats import bootstrap
from cbench.stats.interval import BCA, MID, STRICT, TIES, Interval, Values, alike, check_level, checked, no_numbers

REPLICATES = 50_000
"""The number of replicates in the subsampling study of D. Flater, NIST Technical Note 1855 (2014)."""

FEWEST = 3
MOST_EXACT = 8
"""The maximum number of values for exact intervals: 8 values have 6,435 different resamples; 12 would have over a
million.
"""

_NORMAL = NormalDist()
_SORTED = 4096
"""The maximum number of replicates that are sorted completely."""

_PROBE = 1024
"""With more replicates, a probe of this many of them locates a quantile roughly."""

_FAR = 4
"""The safety margin of the guess, in standard deviations of the probe's rank."""


@dataclass(frozen=True, slots=True)
class CenteredSample:
    """Values minus their mean `middle`, in units of `scale`, the largest distance from the mean. `rounding`: the
    distance from 0 below which replicates count as equal to the estimate, in these units.
    """

    row: Values
    middle: float
    scale: float
    rounding: float

    def replicates(self, count: int, rng: np.random.Generator) -> Values:
        """The means of bootstrap samples, in these units, in which the estimate is 0."""
        return bootstrap.sums(self.row, count, rng) / self.row.size

    def back(self, value: float) -> float:
        """The value converted back to the values' own unit."""
        return self.middle + self.scale * value


@dataclass(frozen=True, slots=True)
class IntervalKind:
    """The confidence level of an interval and its convention for ties. Raises ValueError if either is invalid."""

    level: float
    ties: str

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.ties not in TIES:
            raise ValueError(f"ties = {self.ties!r}: must be one of {', '.join(TIES)}")

    @property
    def method(self) -> str:
        return f"{BCA} ({self.ties})"

    def none(self, why: str | None, replicates: int = 0) -> Interval:
        return Interval(None, None, self.level, self.method, replicates, why)


def bca(
    values: ArrayLike, level: float = 0.95, replicates: int = REPLICATES, seed: int = 0, ties: str = MID
) -> Interval:
    """The BCa interval from `replicates` resamples of the values (a one-dimensional array in any order), drawn with
    `seed`.

    There is no interval, with the reason in `why`, for fewer than 3 values, for values that are not finite or too far
    apart, if no replicate or every replicate is below the estimate, and if the acceleration is too large for the level.
    If all values are equal, the interval has the width 0, with a caveat in `why`. Raises ValueError for a level outside
    (0, 1), an unknown convention for ties, fewer than 1 replicate, or values of more than one dimension.
    """
    kind = IntervalKind(level, ties)
    if replicates < 1:
        raise ValueError(f"replicates = {replicates}: must be at least 1")
    centered = sample(values, kind)
    if isinstance(centered, Interval):
        return centered
    return of_replicates(centered, centered.replicates(replicates, generator(seed)), kind)


def generator(*seed: int) -> np.random.Generator:
    """The random generator of bootstrap draws, for one or more numbers as the seed."""
    return np.random.Generator(np.random.SFC64(seed))


def sample(values: ArrayLike, kind: IntervalKind) -> CenteredSample | Interval:
    """The values prepared for resampling, or the Interval to return if resampling is not possible or not needed."""
    row = checked(values)
    why = no_numbers(row)
    if why is None and row.size < FEWEST:
        why = f"{FEWEST} values are needed, but there {'is' if row.size == 1 else 'are'} {row.size}"
    if why is not None:
        return kind.none(why)
    low, high = float(row.min()), float(row.max())
    if low == high:
        return Interval(low, high, kind.level, kind.method, 0, alike(row.size))
    middle = float((row / row.size).sum())
    scale = max(high - middle, middle - low)
    if not isfinite(high - low) or scale <= 0:
        return kind.none("the values are too far apart, or too close together, for 64-bit numbers")
    return CenteredSample((row - middle) / scale, middle, scale, bootstrap.rounding(row.size, middle, scale))


def of_replicates(centered: CenteredSample, replicates: Values, kind: IntervalKind) -> Interval:
    """The BCa interval from these replicates."""
    ends = corrected(share_below(replicates, kind.ties, centered.rounding), acceleration(centered.row), kind.level)
    if ends.why is not None:
        return kind.none(ends.why, replicates.size)
    low, high = quantiles(replicates, ends.low, ends.high)
    return Interval(centered.back(low), centered.back(high), kind.level, kind.method, replicates.size)


def bca_exact(values: ArrayLike, level: float = 0.95, ties: str = MID) -> Interval:
    """The exact BCa interval from all n^n resamples of at most 8 values, each counted once, without random draws. There
    is no interval in the cases of bca(). Raises ValueError for more than 8 values that need resampling, an invalid
    level, or an unknown convention for ties.
    """
    kind = IntervalKind(level, ties)
    centered = sample(values, kind)
    if isinstance(centered, Interval):
        return centered
    replicates, ways = enumerated(centered)
    ends = corrected(exact_share(replicates, ways, centered, ties), acceleration(centered.row), level)
    count = centered.row.size**centered.row.size
    if ends.why is not None:
        return kind.none(ends.why, count)
    low, high = (_weighted(replicates, ways, q) for q in (ends.low, ends.high))
    return Interval(centered.back(low), centered.back(high), level, kind.method, count)


def enumerated(centered: CenteredSample) -> tuple[Values, list[int]]:
    """The mean of each distinct resample, ascending, and the number of orders in which the resample can be drawn.
    Raises ValueError for more than MOST_EXACT values.
    """
    n = centered.row.size
    if n > MOST_EXACT:
        raise ValueError(f"at most {MOST_EXACT} values can be enumerated; there are {n}")
    every = np.array(list(combinations_with_replacement(range(n), n)))
    ways = []
    for chosen in every:
        orders = factorial(n)
        for count in np.bincount(chosen).tolist():
            orders //= factorial(count)
        ways.append(orders)
    means = centered.row[every].mean(axis=1)
    order = np.argsort(means, kind="stable")
    return means[order], [ways[at] for at in order.tolist()]


def exact_share(replicates: Values, ways: list[int], centered: CenteredSample, ties: str) -> float:
    """The share P of all resamples below the estimate, by the convention `ties`. `replicates` and `ways`: the results
    of enumerated().
    """
    weights = np.array(ways)
    below = int(weights[replicates < -centered.rounding].sum())
    if ties == STRICT:
        return float(below / weights.sum())
    return float((below + weights[replicates <= centered.rounding].sum()) / (2 * weights.sum()))


def _weighted(replicates: Values, ways: list[int], q: float) -> float:
    upto = np.cumsum(ways)
    whole, part = _place(int(upto[-1]), q)
    low = float(replicates[upto.searchsorted(whole, side="right")])
    high = float(replicates[upto.searchsorted(min(whole + 1, int(upto[-1]) - 1), side="right")])
    return low + part * (high - low)


@dataclass(frozen=True, slots=True)
class Corrected:
    """The quantiles of the replicates that are the interval's ends, as shares `low` and `high`, and z0. If they cannot
    be computed, they are NaN, and `why` gives the reason.
    """

    z0: float
    low: float
    high: float
    why: str | None = None


def corrected(p: float, a: float, level: float) -> Corrected:
    """The two quantiles for a share `p` of replicates below the estimate and the acceleration `a`; `why` is set if they
    cannot be computed.
    """
    none = float("nan")
    if not 0 < p < 1:
        share = "every" if p >= 1 else "no"
        return Corrected(none, none, none, f"{share} replicate is below the estimate: its bias cannot be corrected")
    z0 = _NORMAL.inv_cdf(p)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + _NORMAL.inv_cdf(tail)
        if a * z >= 1:
            return Corrected(z0, none, none, f"an acceleration of {a:.3g} is too large for level {level:g}")
        ends.append(_NORMAL.cdf(z0 + z / (1 - a * z)))
    return Corrected(z0, ends[0], ends[1])


def share_below(replicates: Values, ties: str, rounding: float) -> float:
    """The share P of replicates below the estimate. The replicates are centered, so the estimate is 0.

    `ties`: the convention, from TIES, for replicates equal to the estimate. Replicates within `rounding` of 0 count as
    equal.
    """
    below = int(np.count_nonzero(replicates < -rounding))
    if ties == STRICT:
        return below / replicates.size
    return (below + int(np.count_nonzero(replicates <= rounding))) / (2 * replicates.size)


def acceleration(row: Values) -> float:
    """The acceleration a, for values that are not all equal."""
    away = row - row.mean()
    away = away / np.abs(away).max()
    return float((away**3).sum() / (6 * (away**2).sum() ** 1.5))


def quantiles(replicates: Values, low: float, high: float) -> tuple[float, float]:
    """The `low` and the `high` quantile of replicates in any order, interpolated between the two nearest ones."""
    if replicates.size <= _SORTED:
        ordered = np.sort(replicates)
        return _at(ordered, *_place(ordered.size, low)), _at(ordered, *_place(ordered.size, high))
    probe = np.sort(replicates[:: replicates.size // _PROBE])
    return _quantile(replicates, probe, low), _quantile(replicates, probe, high)


def _place(count: int, q: float) -> tuple[int, float]:
    """A quantile's place among `count` ascending values: the index of the lower neighbor, and the fraction of the way
    to the next value.
    """
    at = (count - 1) * q
    whole = min(floor(at), count - 1)
    return whole, at - whole


def _quantile(replicates: Values, probe: Values, q: float) -> float:
    """A quantile of the replicates. If a check shows that a short tail contains the quantile, only this tail is
    partitioned, otherwise all replicates.
    """
    whole, part = _place(replicates.size, q)
    upper = q > 0.5
    rank = probe.size * (1 - q if upper else q)
    inner = ceil(rank + _FAR * sqrt(rank) + _FAR)
    if inner < probe.size // 2:
        tail = replicates[replicates >= probe[-1 - inner]] if upper else replicates[replicates <= probe[inner]]
        first = whole - (replicates.size - tail.size if upper else 0)
        if first >= 0 and first + 1 < tail.size:
            return _at(np.partition(tail, (first, first + 1)), first, part)
    if whole + 1 < replicates.size:
        return _at(np.partition(replicates, (whole, whole + 1)), whole, part)
    return float(replicates.max())


def _at(ordered: Values, whole: int, part: float) -> float:
    low = float(ordered[whole])
    return low + part * (float(ordered[whole + 1]) - low) if part else low
