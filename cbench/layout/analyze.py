"""Estimate the share of the variance that lies between builds, from numbers alone.

The logarithm of a time is the sum of a block effect, a random effect of the build and the noise of the run. The
variance components come from the two-way analysis of variance. The interval of the share comes from its F statistic and
is exact for normal effects (S. R. Searle, G. Casella, C. E. McCulloch, Variance Components, 1992, chapter 3). With at
least ENOUGH_BLOCKS blocks, values further than MOST_OFF scaled median absolute deviations from the fit of their block
and build are first clipped to that distance: an interruption is not a property of a build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import expm1, log, sqrt
from statistics import NormalDist, fmean, median

from cbench.stats.distributions import f_sf, t_quantile

LEVEL = 0.95
POWER = 0.8
MOST_OFF = 3.0
ENOUGH_BLOCKS = 20
"""With fewer blocks, deviations from medians underestimate the noise, and clipping would lower the estimate further."""
MAD = 1.4826
"""The ratio of standard deviation to median absolute deviation of normal values."""
MOST_NEEDED = 10_000
TINY = 1e-28


@dataclass(frozen=True, slots=True)
class LayoutVariance:
    """Standard deviations of logarithms: `between` builds, and `within` one build from run to run.

    `share`: the share of a single run's variance that lies between builds, with its interval at LEVEL. `p`: the p-value
    of the test for differences between builds. `range`: the log ratio of the slowest to the fastest build's median.
    `medians`: each build's median logarithm, relative to the mean of the block.
    """

    builds: int
    blocks: int
    between: float
    within: float
    share: float
    share_low: float
    share_high: float
    p: float
    range: float
    medians: tuple[float, ...]

    @property
    def between_high(self) -> float:
        """The upper end of the interval of `between`, computed from the upper end of the share's interval."""
        return self.within * sqrt(self.share_high / (1 - self.share_high)) if self.share_high < 1 else self.between

    def one_build(self) -> float:
        """The smallest log ratio of two versions that one build of each can show, however often the builds run."""
        return NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(2) * self.between

    def builds_for(self, effect: float) -> int | None:
        """The number of builds of each version needed to show the log ratio `effect` with probability POWER; None if
        this number exceeds MOST_NEEDED.
        """
        normal = NormalDist()
        variance = self.between**2 + self.within**2 / self.blocks
        power = normal.inv_cdf(POWER)
        for builds in range(2, MOST_NEEDED + 1):
            quantile = t_quantile((1 + LEVEL) / 2, 2 * builds - 2)
            if (quantile + power) * sqrt(2 * variance / builds) <= effect:
                return builds
        return None


def analyze(times: Sequence[Sequence[float]]) -> LayoutVariance:
    """Analyze `times`: one row for each block, with one time above 0 for each build; at least two of each."""
    logs = [[log(value) for value in row] for row in times]
    if len(logs) >= ENOUGH_BLOCKS:
        logs = _drawn_in(logs)
    level = [[value - fmean(row) for value in row] for row in logs]
    columns = list(zip(*level, strict=True))
    blocks, builds = len(level), len(columns)
    means = [fmean(column) for column in columns]
    mean_between = blocks * sum(mean**2 for mean in means) / (builds - 1)
    degrees = (builds - 1) * (blocks - 1)
    mean_within = (
        sum((value - mean) ** 2 for column, mean in zip(columns, means, strict=True) for value in column) / degrees
    )
    if mean_between + mean_within < TINY:  # ignore variance due to rounding
        mean_between = mean_within = 0.0
    between = max(0.0, (mean_between - mean_within) / blocks)
    ratio = mean_between / mean_within if mean_within else float("inf") if mean_between else 1.0
    tail = (1 - LEVEL) / 2
    middles = tuple(median(column) for column in columns)
    return LayoutVariance(
        builds=builds,
        blocks=blocks,
        between=sqrt(between),
        within=sqrt(mean_within),
        share=between / (between + mean_within) if between + mean_within else 0.0,
        share_low=_share(ratio / _f_quantile(tail, builds - 1, degrees), blocks),
        # Means that are closer than expected by chance do not prove that builds are equal.
        share_high=_share(max(1.0, ratio) / _f_quantile(1 - tail, builds - 1, degrees), blocks),
        p=f_sf(ratio, builds - 1, degrees) if ratio != float("inf") else 0.0,
        range=max(middles) - min(middles),
        medians=middles,
    )


def percent(log_ratio: float) -> float:
    """A log ratio as a percentage."""
    return 100 * expm1(log_ratio)


def _share(ratio: float, blocks: int) -> float:
    if ratio == float("inf"):
        return 1.0
    return max(0.0, (ratio - 1) / (ratio - 1 + blocks))


def _drawn_in(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """The values, clipped to a maximum distance from the fit of their block and build."""
    level = [[value - median(row) for value in row] for row in rows]
    centers = [median(column) for column in zip(*level, strict=True)]
    left = [[value - center for value, center in zip(row, centers, strict=True)] for row in level]
    most = MOST_OFF * MAD * median(abs(value) for row in left for value in row)
    if not most:
        return [list(row) for row in rows]
    return [
        [value - away + min(max(away, -most), most) for value, away in zip(row, off, strict=True)]
        for row, off in zip(rows, left, strict=True)
    ]


@lru_cache(maxsize=16)
def _f_quantile(upper: float, df1: int, df2: int) -> float:
    """The value that F exceeds with probability `upper`, by bisection."""
    low, high = 0.0, 1.0
    while f_sf(high, df1, df2) > upper:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if f_sf(middle, df1, df2) > upper:
            low = middle
        else:
            high = middle
    return (low + high) / 2
