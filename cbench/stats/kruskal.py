"""Compute the Kruskal-Wallis test.

W. H. Kruskal, W. A. Wallis, "Use of ranks in one-criterion variance analysis", J. Amer. Statist. Assoc. 47 (1952)
583-621: average ranks; H is divided by 1 - sum(t^3 - t)/(n^3 - n) for ties of t values, and compared with chi-squared
on k - 1 degrees of freedom. For two groups, H is the square of Mann and Whitney's z without continuity correction. H is
computed from the groups' distances to the mean rank, because the usual formula subtracts 3(n + 1) from a number that is
nearly as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbench.stats.distributions import chi2_sf

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kruskal:
    """The statistic `h` and its p-value, for `n` values in `groups` groups; `lengths`: the result of tied() for all
    values. If all values are equal, `h` is 0 and `p` is 1.
    """

    h: float
    p: float
    n: int
    groups: int
    lengths: Values | None = field(default=None, repr=False, compare=False)

    @property
    def eta2(self) -> float | None:
        """The effect size (H - k + 1)/(n - k), negative if H is below its expectation; None if n <= k.

        M. Tomczak, E. Tomczak, "The need to report effect size estimates revisited", Trends in Sport Sciences 1 (2014)
        19-25, formula 15.
        """
        return (self.h - self.groups + 1) / (self.n - self.groups) if self.n > self.groups else None

    @property
    def epsilon2(self) -> float | None:
        """The effect size H/(n - 1), from 0 to 1 (formula 16 of the article in eta2()); None if n < 2."""
        return self.h / (self.n - 1) if self.n > 1 else None


def kruskal(groups: Sequence[Values]) -> Kruskal | None:
    """The Kruskal-Wallis test of several samples; empty samples are omitted. None if fewer than two remain, or if a
    value is not a number.
    """
    filled = [group for group in groups if group.size]
    if len(filled) < 2:
        return None
    return of_sorted([np.sort(group) for group in filled])


def of_sorted(groups: Sequence[Values], placed: Values | None = None) -> Kruskal | None:
    """The Kruskal-Wallis test of two or more sorted, nonempty samples. None if a value is not a number. `placed`: the
    first result of placements() of two samples, if known.
    """
    if any(np.isnan(group[-1]) for group in groups):
        return None
    every = np.concatenate(groups)
    every.sort(kind="stable")  # merges presorted runs
    lengths = tied(every)
    if len(groups) == 2:  # the number of pairs in which the first sample is larger is equivalent to its rank sum
        first, second = groups
        placed = placements(first, second)[0] if placed is None else placed
        away = float(placed.sum()) - first.size * second.size / 2
        sums = away * away * every.size / (first.size * second.size)
    else:
        middle = (every.size + 1) / 2
        ranks = [every.searchsorted(group) + every.searchsorted(group, side="right") + 1 for group in groups]
        sums = sum((float(each.sum()) / 2 - each.size * middle) ** 2 / each.size for each in ranks)
    return of_sums(sums, every.size, lengths, len(groups))


def placements(first: Values, second: Values) -> tuple[Values, Values]:
    """Two arrays, for the values of the first and of the second sorted sample: for each value, the number of values of
    the other sample below it; ties count one half.
    """
    low, high = second.searchsorted(first), second.searchsorted(first, side="right")
    # A value of the second sample exceeds those values of the first whose count does not exceed its index.
    counted = np.bincount(low, minlength=second.size + 1) + np.bincount(high, minlength=second.size + 1)
    return np.asarray((low + high) / 2), np.asarray(np.cumsum(counted[:-1]) / 2)


def of_sums(sums: float, n: int, lengths: Values | None, groups: int) -> Kruskal:
    """The test from the sum over groups of (rank sum - size (n + 1)/2)^2/size, and from the result of tied()."""
    ties = 1.0 if lengths is None else tie_correction(lengths, n)
    if ties <= 0:
        return Kruskal(0.0, 1.0, n, groups, lengths)
    h = 12 * sums / (n * (n + 1)) / ties
    return Kruskal(h, chi2_sf(h, groups - 1), n, groups, lengths)


def tied(ordered: Values | NDArray[np.int32]) -> Values | None:
    """The number of occurrences of each distinct value, ascending; None if no two values are equal."""
    starts = np.flatnonzero(ordered[1:] != ordered[:-1])
    if starts.size == ordered.size - 1:
        return None
    ends = np.empty(starts.size + 1)
    ends[:-1], ends[-1] = starts, ordered.size - 1
    ends[1:] -= starts
    ends[0] += 1
    return ends


def tie_correction(lengths: Values, n: int) -> float:
    """The divisor of H for ties, 1 - sum(t^3 - t)/(n^3 - n); 0 if all values are equal."""
    if lengths.size == 1:
        return 0.0
    return 1 - float(lengths @ (lengths * lengths - 1)) / (float(n) ** 3 - n)
