"""The Kruskal-Wallis test.

W. H. Kruskal, W. A. Wallis, "Use of ranks in one-criterion variance analysis", J. Amer. Statist. Assoc. 47 (1952)
583-621: average ranks, H divided by 1 - sum(t^3 - t)/(n^3 - n) for ties of t values, chi-squared with k - 1 degrees of
freedom. With two groups H is the square of Mann and Whitney's z without continuity correction. H is summed from the
groups' distances to the mean rank: the usual formula subtracts 3(n + 1) from nearly as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbench.stats.order.tails import chi2_sf

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kruskal:
    """`h` and its `p`; `n` values in `groups` groups. All values alike: `h` is 0 and `p` is 1."""

    h: float
    p: float
    n: int
    groups: int

    @property
    def eta2(self) -> float | None:
        """(H - k + 1)/(n - k), negative where H is below its expectation; None where n <= k.

        M. Tomczak, E. Tomczak, "The need to report effect size estimates revisited", Trends in Sport Sciences 1 (2014)
        19-25, formula 15.
        """
        return (self.h - self.groups + 1) / (self.n - self.groups) if self.n > self.groups else None

    @property
    def epsilon2(self) -> float | None:
        """H/(n - 1), from 0 to 1 (the same article, formula 16); None where n < 2."""
        return self.h / (self.n - 1) if self.n > 1 else None


def kruskal(groups: Sequence[Values]) -> Kruskal | None:
    """The test over samples; empty ones are left out. None with fewer than two, or with values that are no numbers."""
    filled = [group for group in groups if group.size]
    if len(filled) < 2:
        return None
    return of_sorted([np.sort(group) for group in filled])


def of_sorted(groups: Sequence[Values]) -> Kruskal | None:
    """The same for two or more samples that are sorted and not empty."""
    if any(np.isnan(group[-1]) for group in groups):
        return None
    every = np.concatenate(groups)
    every.sort(kind="stable")  # merges what is sorted already
    n = every.size
    starts = np.flatnonzero(every[1:] != every[:-1]) + 1
    if starts.size == n - 1:
        ties = 1.0
        sums = [float(np.searchsorted(every, group).sum()) + group.size for group in groups]
    else:
        lengths = np.diff(starts, prepend=0, append=n).astype(np.float64)
        ties = 1 - float((lengths**3 - lengths).sum()) / (float(n) ** 3 - n)
        sums = [_rank_sum(every, group) for group in groups]
    if ties <= 0:
        return Kruskal(0.0, 1.0, n, len(groups))
    middle = (n + 1) / 2
    away = sum((total - group.size * middle) ** 2 / group.size for total, group in zip(sums, groups, strict=True))
    h = 12 * away / (n * (n + 1)) / ties
    return Kruskal(h, chi2_sf(h, len(groups) - 1), n, len(groups))


def _rank_sum(every: Values, group: Values) -> float:
    """Of average ranks, from 1."""
    below, up_to = np.searchsorted(every, group), np.searchsorted(every, group, side="right")
    return float(below.sum() + up_to.sum() + group.size) / 2
