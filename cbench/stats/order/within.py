"""What order does inside the random runs: position, predecessor, the first trial; and drift over the whole study.

The plain test of fixed against random order asks whether one order is special. These ask why, and find effects that the
random runs show by themselves. All by ranks: Kruskal and Wallis's test over the groups; Spearman's correlation for
drift (C. Spearman, Amer. J. Psychol. 15 (1904) 72-101) with Student's t on n - 2 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.order.data import Codes, Values
from cbench.stats.order.kruskal import Kruskal, of_sorted
from cbench.stats.order.tails import student_p

SMALL = 5
"""For groups of fewer values the chi-squared distribution is a poor approximation: such a result is called doubtful."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """A test over groups of trials. `labels` are positions or numbers of tests, START for the beginning of a run."""

    test: Kruskal
    labels: tuple[int, ...]
    sizes: tuple[int, ...]
    medians: tuple[float, ...]

    @property
    def doubtful(self) -> bool:
        """Whether a group is too small for the p-value to be trusted."""
        return min(self.sizes) < SMALL


@dataclass(frozen=True, slots=True)
class Against:
    """Trials after one predecessor (or at one position) against all others of the same test."""

    label: int
    n: int
    median: float
    median_others: float
    p: float

    @property
    def delta_pct(self) -> float | None:
        """By how much the median is above that of the others, in % of theirs; None where theirs is 0."""
        return 100 * (self.median - self.median_others) / abs(self.median_others) if self.median_others else None


@dataclass(frozen=True, slots=True)
class Drift:
    """Spearman's correlation of value and time."""

    rho: float
    p: float
    n: int


def grouped(values: Values, labels: Codes) -> Grouped | None:
    """Whether values depend on their label. None with fewer than two labels."""
    found = _split(values, labels)
    if found is None or len(found[0]) < 2:
        return None
    names, groups = found
    test = of_sorted(groups)
    if test is None:
        return None
    medians = tuple(median_of_sorted(group) for group in groups)
    return Grouped(test, tuple(int(name) for name in names), tuple(group.size for group in groups), medians)


def against_others(values: Values, labels: Codes) -> list[Against]:
    """Each label against all others, by the labels' numbers; nothing with fewer than two labels."""
    found = _split(values, labels)
    if found is None or len(found[0]) < 2:
        return []
    names, groups = found
    made = []
    for i, (name, group) in enumerate(zip(names, groups, strict=True)):
        others = np.sort(np.concatenate([each for j, each in enumerate(groups) if j != i]))
        test = of_sorted([group, others])
        if test is not None:
            made.append(Against(int(name), group.size, median_of_sorted(group), median_of_sorted(others), test.p))
    return made


def first_trial(values: Values, positions: Codes) -> Against | None:
    """Trials that were the first of their run against all others. None where one of both is missing."""
    labels = (positions != 0).astype(np.int32)
    return next((each for each in against_others(values, labels) if each.label == 0), None)


def drift(values: Values, times: Values) -> Drift | None:
    """None with fewer than three values, or where values or times are all alike."""
    n = values.size
    if n < 3:
        return None
    a, b = (_ranks(each) - (n + 1) / 2 for each in (values, times))
    scale = sqrt(float(a @ a) * float(b @ b))
    if not scale:
        return None
    rho = max(-1.0, min(1.0, float(a @ b) / scale))
    t = inf if abs(rho) == 1 else rho * sqrt((n - 2) / (1 - rho * rho))
    return Drift(rho, 0.0 if t == inf else student_p(t, n - 2), n)


def median_of_sorted(values: Values) -> float:
    """The middle one, or the mean of both middle ones."""
    half = values.size // 2
    return float(values[half]) if values.size % 2 else float((values[half - 1] + values[half]) / 2)


def _ranks(values: Values) -> Values:
    """Average ranks, from 1."""
    ordered = np.sort(values)
    left, right = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.asarray((left + right + 1) / 2)


def _split(values: Values, labels: Codes) -> tuple[NDArray[np.int32], list[Values]] | None:
    """The labels in order, and for each the values that have it, sorted."""
    if not values.size:
        return None
    order = np.lexsort((values, labels))
    names, starts = np.unique(labels[order], return_index=True)
    return names, np.split(values[order], starts[1:])
