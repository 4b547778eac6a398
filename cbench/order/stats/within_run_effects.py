"""Test effects of order within the random runs (position, predecessor, first trial) and drift over the whole study.

The test of fixed against random order detects whether the fixed order is special. The tests here find the reason, and
effects within the random runs. All use ranks: the Kruskal-Wallis test over the groups; Spearman's correlation for
drift (C. Spearman, Amer. J. Psychol. 15 (1904) 72-101) with Student's t on n - 2 degrees of freedom, or all
permutations if there are few values: three rising values have p 1/3, but 0 by Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import exp, inf, lgamma, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench.order.stats.permutation import p_value
from cbench.stats.distributions import chi2_sf, student_p
from cbench.stats.kruskal import Kruskal, of_sums, tie_correction, tied
from cbench.stats.trials import Codes, Values

WORTH = 0.05
"""A p-value by chi-squared above this is not recomputed by permutation, because it is not significant at the default
alpha, even without a correction for many tests.
"""
COUNTED = 8
SMALL = 5
"""With fewer values in a group, the chi-squared distribution is a poor approximation, and the p-value is reported as
doubtful.
"""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The result of a test over groups of trials. `labels`: positions or numbers of tests, START for the beginning of a
    run.
    """

    test: Kruskal
    labels: Codes
    sizes: NDArray[np.intp]
    medians: Values

    @property
    def doubtful(self) -> bool:
        """Whether a group is too small for the p-value to be trusted."""
        return int(self.sizes.min()) < SMALL


@dataclass(frozen=True, slots=True)
class LabelEffect:
    """The comparison of the trials with one label (after one predecessor, or at one position) with all other trials of
    the same test.
    `delta_pct`: the difference from the other trials' median, in % of that median; None if that median is 0.
    """

    n: int
    median: float
    median_others: float
    delta_pct: float | None
    p: float

    @classmethod
    def of(cls, n: int, median: float, others: float, p: float) -> LabelEffect:
        return cls(n, median, others, 100 * (median - others) / abs(others) if others else None, p)


@dataclass(frozen=True, slots=True)
class AgainstOthers(Grouped):
    """The comparison of each label's trials with all other trials of the same test, one array element per label; for
    predecessors, one row of the matrix of predecessors.
    """

    medians_others: Values
    h: Values  # the Kruskal-Wallis H; p() computes its p

    def p(self, at: int) -> float:
        """The p-value of one label, by permutation if it can matter, because chi-squared is inaccurate for few trials
        and coarse clocks.
        """
        return p_of_two_groups(float(self.h[at]), self.test.lengths, int(self.sizes[at]), self.test.n)

    def __getitem__(self, at: int) -> LabelEffect:
        medians = float(self.medians[at]), float(self.medians_others[at])
        return LabelEffect.of(int(self.sizes[at]), *medians, self.p(at))


def p_of_two_groups(h: float, lengths: Values | None, size: int, n: int) -> float:
    """The p-value of H from a comparison of `size` of `n` values with the others: by chi-squared above WORTH, otherwise
    by permutation. `lengths`: as in Kruskal.
    """
    p = chi2_sf(h, 1)
    return p if p > WORTH else p_value(h, lengths, size, n - size)


@dataclass(frozen=True, slots=True)
class Drift:
    """Spearman's correlation between value and time."""

    rho: float
    p: float
    n: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """Sorted values, their original places, their average ranks, and their ties as in kruskal.tied."""

    values: Values
    order: NDArray[np.intp]
    ranks: Values
    lengths: Values | None

    @classmethod
    def of(cls, values: Values) -> Ordered:
        order = np.argsort(values)
        ordered = values[order]
        lengths = tied(ordered)
        return cls(ordered, order, _ranks_of_sorted(ordered.size, lengths), lengths)


def narrow(labels: Codes | None) -> NDArray[Any] | None:
    """The labels, in 16 bits if they fit, because numpy radix-sorts 16-bit numbers; None if `labels` is None."""
    if labels is None or not labels.size or not -(2**15) <= int(labels.min()) <= int(labels.max()) < 2**15:
        return labels
    return labels.astype(np.int16)


def grouped(values: Ordered, labels: Codes) -> Grouped | None:
    """Test whether values depend on their labels; None if there are fewer than two labels."""
    split = _split(values, labels)
    return None if split is None else Grouped(_test(split), split.labels, split.sizes, _medians(split))


def against_others(values: Ordered, labels: Codes) -> AgainstOthers | None:
    """Like grouped(), but tests each label against all others; None if there are fewer than two labels.

    H of two samples follows from the rank sum of one. The median of the others excludes the values with this label.
    """
    split = _split(values, labels)
    if split is None:
        return None
    n = split.values.size
    others = n - split.sizes
    ties = 1.0 if split.lengths is None else tie_correction(split.lengths, n)
    h = 12 * split.away**2 / (split.sizes * others * (n + 1)) / ties if ties > 0 else np.zeros(others.size)
    passed = split.at - np.arange(
        n
    )  # the number of other values below each value, minus the start of its label's group
    ends = []
    for rank in ((others - 1) // 2, others // 2):
        before = np.add.reduceat(passed <= np.repeat(rank - split.starts, split.sizes), split.starts, dtype=np.intp)
        ends.append(split.values[rank + before])
    medians_others = np.asarray((ends[0] + ends[1]) / 2)
    return AgainstOthers(_test(split), split.labels, split.sizes, _medians(split), medians_others, h)


def first_trial(values: Ordered, positions: Codes) -> LabelEffect | None:
    """Compare the first trial of each run with all other trials; None if one of the two groups is empty."""
    first = positions[values.order] == 0
    n, size = first.size, int(np.count_nonzero(first))
    if not 0 < size < n:
        return None
    away = float(values.ranks[first].sum()) - size * (n + 1) / 2
    test = of_sums(away * away * n / (size * (n - size)), n, values.lengths, 2)
    p = p_of_two_groups(test.h, values.lengths, size, n)
    return LabelEffect.of(size, median_of_sorted(values.values[first]), median_of_sorted(values.values[~first]), p)


def drift(values: Values, times: Values | Codes) -> Drift | None:
    """The correlation of values with time; p is exact for up to COUNTED values. None for fewer than three values, or if
    all values or all times are equal.
    """
    n = values.size
    if n < 3:
        return None
    a, b = (_ranks(each) - (n + 1) / 2 for each in (values, times))
    scale = sqrt(float(a @ a) * float(b @ b))
    if not scale:
        return None
    rho = max(-1.0, min(1.0, float(a @ b) / scale))
    if n <= COUNTED:
        return Drift(rho, float((abs(a[_permutations(n)] @ b) >= abs(float(a @ b)) - 1e-9).mean()), n)
    t = inf if abs(rho) == 1 else rho * sqrt((n - 2) / (1 - rho * rho))
    return Drift(rho, max(0.0 if t == inf else student_p(t, n - 2), 2 * exp(-lgamma(n + 1))), n)


@lru_cache(maxsize=COUNTED)
def _permutations(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)


def median_of_sorted(values: Values) -> float:
    """The median of sorted values: the middle one, or the mean of the two middle ones."""
    half = values.size // 2
    return float(values[half]) if values.size % 2 else float((values[half - 1] + values[half]) / 2)


def _ranks(values: Values | Codes) -> Values:
    """The rank of each value, from 1; equal values share their average rank."""
    if (values[1:] > values[:-1]).all():
        return np.arange(1.0, values.size + 1)
    order = np.argsort(values)
    found = np.empty(values.size)
    found[order] = _ranks_of_sorted(values.size, tied(values[order]))
    return found


def _ranks_of_sorted(size: int, lengths: Values | None) -> Values:
    if lengths is None:
        return np.arange(1.0, size + 1)
    return np.repeat(np.cumsum(lengths) - (lengths - 1) / 2, lengths.astype(np.intp))


@dataclass(frozen=True, slots=True)
class _Split:
    """The indices `at` of the sorted `values`, grouped by label and ascending within each group; `starts`: the index in
    `at` at which each group begins.
    """

    values: Values
    at: NDArray[np.intp]
    labels: Codes
    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]
    away: Values  # per label: the difference of its rank sum from the expected value
    lengths: Values | None


def _split(values: Ordered, labels: Codes) -> _Split | None:
    n = values.values.size
    if not n or np.isnan(values.values[-1]):
        return None
    of_each = labels[values.order]
    at = of_each.argsort(kind="stable")  # a radix sort after narrow()
    together = of_each[at]
    ends = (together[1:] != together[:-1]).nonzero()[0]
    if not ends.size:
        return None
    starts = np.zeros(ends.size + 1, dtype=np.intp)
    np.add(ends, 1, out=starts[1:])
    sizes = np.empty_like(starts)
    sizes[-1] = n - starts[-1]
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    away = np.add.reduceat(values.ranks[at], starts) - sizes * ((n + 1) / 2)
    return _Split(values.values, at, together[starts], starts, sizes, away, values.lengths)


def _test(split: _Split) -> Kruskal:
    return of_sums(float((split.away**2 / split.sizes).sum()), split.values.size, split.lengths, split.labels.size)


def _medians(split: _Split) -> Values:
    together = split.values[split.at]
    low, high = together[split.starts + (split.sizes - 1) // 2], together[split.starts + split.sizes // 2]
    return np.asarray((low + high) / 2)
