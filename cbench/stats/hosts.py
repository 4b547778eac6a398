"""Compare the hosts of one study: test whether an effect differs between hosts, and which host differs from the others.

The test for differences of an effect is that of B. L. Welch, "On the comparison of several mean values: an alternative
approach", Biometrika 38 (1951) 330-336, which allows unequal variances. One host is compared with the others by Welch's
t of its effect minus the mean of the others' effects, step by step, and by Student's t of its level (the logarithm of
its median) as a further draw from the others' levels: F. E. Grubbs, Ann. Math. Statist. 21 (1950) 27-58.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.distributions import f_sf, student_p

UNREMARKABLE = 0.5
"""No further host is left out once the p-value of the farthest host exceeds this."""
FEWEST_LEVELS = 4
"""The minimum number of hosts for a test of one host's level against the others."""


@dataclass(frozen=True, slots=True)
class HostMean:
    """A mean of independent values, its variance, and the degrees of freedom of this variance."""

    mean: float
    variance: float
    freedom: float


def mean_of(values: NDArray[np.float64]) -> HostMean:
    """The mean of two or more independent values. Shape (n,)."""
    return HostMean(float(values.mean()), float(values.var(ddof=1)) / values.size, values.size - 1)


def difference_of(first: NDArray[np.float64], second: NDArray[np.float64]) -> HostMean:
    """The mean of the second sample minus that of the first, each with two or more values; the degrees of freedom are
    Welch's.
    """
    one, two = mean_of(first), mean_of(second)
    variance = one.variance + two.variance
    spread = one.variance**2 / one.freedom + two.variance**2 / two.freedom
    return HostMean(two.mean - one.mean, variance, variance**2 / spread if spread else 1.0)


def interaction_p(means: Sequence[HostMean]) -> float | None:
    """The p-value of Welch's test of equal means; None if there are fewer than two means, or if one has no variance."""
    some = [each for each in means if each.variance > 0]
    if len(some) < 2 or len(some) < len(means):
        return None
    k = len(some)
    weights = [1 / each.variance for each in some]
    total = sum(weights)
    centre = sum(w * each.mean for w, each in zip(weights, some, strict=True)) / total
    between = sum(w * (each.mean - centre) ** 2 for w, each in zip(weights, some, strict=True)) / (k - 1)
    lost = sum((1 - w / total) ** 2 / each.freedom for w, each in zip(weights, some, strict=True))
    return f_sf(between / (1 + 2 * (k - 2) / (k * k - 1) * lost), k - 1, (k * k - 1) / (3 * lost))


def outlier_p(value: float, others: Sequence[float]) -> float | None:
    """Student's two-sided p-value of one value as a further draw from the others' distribution; None if there are fewer
    than 3 others.
    """
    if len(others) < FEWEST_LEVELS - 1:
        return None
    deviation = float(np.std(others, ddof=1)) * sqrt(1 + 1 / len(others))
    if deviation == 0:
        return 1.0 if value == others[0] else 0.0
    return student_p((value - float(np.mean(others))) / deviation, len(others) - 1)


def against_others(means: Sequence[HostMean | None]) -> list[float | None]:
    """For each host, Welch's p-value for its effect minus the mean of the others' effects; None for a host without an
    effect or a variance, and for all hosts if fewer than three have both.

    Step by step, the host that lies farthest from the median, by its own variance, gets its p and no longer counts
    among the others, until its p exceeds UNREMARKABLE or the smaller half of the hosts is left out. Otherwise, one
    unlike host would move the others' mean and make ordinary hosts seem unlike. No later p is smaller than an earlier
    one.
    """
    left = {at: each for at, each in enumerate(means) if each is not None and each.variance > 0}
    found: list[float | None] = [None] * len(means)
    if len(left) < 3:
        return found
    steps, most = (len(left) - 1) // 2, 0.0
    while left:
        known = dict(zip(left, _each_against([*left.values()]), strict=True))
        middle = float(np.median([each.mean for each in left.values()]))
        first = min(
            left, key=lambda at: student_p((left[at].mean - middle) / sqrt(left[at].variance), left[at].freedom)
        )
        most = max(most, known[first])
        if not steps or most > UNREMARKABLE:
            for at in left:
                found[at] = max(most, known[at])
            break
        found[first] = most
        del left[first]
        steps -= 1
    return found


def _each_against(means: Sequence[HostMean]) -> list[float]:
    """For each of two or more hosts, the p-value for its effect minus the mean of the others' effects."""
    count = len(means) - 1
    total, spread = sum(each.mean for each in means), sum(each.variance for each in means)
    terms = sum(each.variance**2 / each.freedom for each in means)
    found = []
    for each in means:
        variance = each.variance + (spread - each.variance) / count**2
        own = each.variance**2 / each.freedom
        freedom = variance**2 / (own + (terms - own) / count**4)
        found.append(student_p((each.mean - (total - each.mean) / count) / sqrt(variance), freedom))
    return found


def levels_against_others(levels: Sequence[float]) -> list[tuple[float, float] | None]:
    """For each host, the p-value of its level against the others' levels, and the percentage by which it differs from
    their geometric mean; None if these cannot be computed.
    """
    positive = all(level > 0 for level in levels if isfinite(level))
    logs = [log(level) if positive and isfinite(level) else None for level in levels]
    found: list[tuple[float, float] | None] = []
    for number, own in enumerate(logs):
        others = [each for at, each in enumerate(logs) if at != number and each is not None]
        p = None if own is None else outlier_p(own, others)
        away = None if own is None or p is None else 100 * (exp(min(own - float(np.mean(others)), 700.0)) - 1)
        found.append(None if p is None or away is None else (p, away))
    return found
