"""Test whether one of two samples tends to have larger values, allowing for unequal spread; and test whether the
spreads differ.

A rank-sum test that is calibrated by permutation assumes that, without an effect, both samples have the same
distribution. This assumption fails if a random order adds variance: with 40 fixed runs and 10 random runs of three
times the standard deviation, such a test raised a false alarm in 13 % of simulated studies.

E. Brunner, U. Munzel, "The nonparametric Behrens-Fisher problem: asymptotic theory and a small-sample approximation",
Biometrical J. 42 (2000) 17-25: the rank sum, studentized by the variances of both samples' placements, against
Student's t with Satterthwaite's degrees of freedom. M. A. Fligner, T. J. Killeen, "Distribution-free two-sample tests
for scale", J. Amer. Statist. Assoc. 71 (1976) 210-213, with distances to each sample's median: W. J. Conover, M. E.
Johnson and M. M. Johnson (Technometrics 23 (1981) 351-361) compared 56 tests of spread, and this one is among the few
that kept their level for every distribution. If there are few enough distinct distances to count their permutations,
for example with a coarse clock, p is exact: with the chi-squared distribution, one deviating value among 3, against 60
equal ones, had p 8e-6 instead of 1/21.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, log1p, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cbench.order.stats.permutation import scored_p
from cbench.stats.distributions import chi2_sf, student_p
from cbench.stats.kruskal import placements, tied

Values = NDArray[np.float64]
MANY = 100
"""With at least this many degrees of freedom, tails and quantiles of Student's t distribution are approximated."""
FEWEST = 3
"""The minimum number of values from which the spread of a sample is computed."""


def unequal_spread_p(first: Values, second: Values, placed: tuple[Values, Values] | None = None) -> float | None:
    """The Brunner-Munzel p-value for two sorted samples; None if there are too few values, 0 if the samples do not
    overlap.

    `placed`: placements() of both, if known.
    """
    m, n = first.size, second.size
    if min(m, n) < FEWEST:
        return None
    above, below = placements(first, second) if placed is None else placed
    superiority = float(below.sum()) / n / m  # P(first < second) + P(first = second)/2
    parts = variance(above) / (n * n * m), variance(below) / (m * m * n)
    if not sum(parts):
        return 1.0 if superiority == 0.5 else 0.0
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (n - 1))
    return _tails((superiority - 0.5) / sqrt(sum(parts)), freedom)


def variance(values: Values) -> float:
    """The sample variance; several times as fast as values.var(ddof=1)."""
    away = values - values.sum() / values.size
    return float((away * away).sum()) / (values.size - 1)


def _tails(t: float, freedom: float) -> float:
    """The two-sided probability P(|T| > |t|) for T ~ Student's t.

    Exact, except for rounding, below MANY degrees of freedom; otherwise, by D. L. Wallace's approximation (Ann. Math.
    Statist. 30 (1959) 1124), with a relative error below 4e-4 for |t| <= 4, below 1e-3 for |t| <= 5, and below 1e-2 for
    |t| <= 10.
    """
    if freedom < MANY:
        return student_p(t, freedom)
    z = sqrt(freedom * log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return erfc(z / sqrt(2))


def spread_p(first: Values, second: Values) -> float | None:
    """Fligner and Killeen's p-value for equal spread of two sorted samples around their medians; None if there are too
    few values.

    Exact if there are few distinct distances, otherwise from the chi-squared distribution.
    """
    m, n = first.size, second.size
    if min(m, n) < FEWEST:
        return None
    away = np.concatenate([part for each in (first, second) for part in _folded(each)])
    order = away.argsort(kind="stable")  # fast: it merges four sorted parts
    scores = _scores(m + n)
    lengths = tied(away[order])
    means = scores
    if lengths is not None:
        ends = np.cumsum(lengths).astype(np.intp)
        means = np.add.reduceat(scores, np.concatenate([[0], ends[:-1]])) / lengths
        scores = np.repeat(means, lengths.astype(np.intp))
    middle = float(scores.sum() / scores.size)
    apart = scores - middle
    variance = float((apart * apart).sum()) / (m + n - 1) * m * n / (m + n)
    if not variance:
        return 1.0
    distance = float(scores[order < m].sum()) - m * middle  # independent of the order of ties
    square = distance * distance / variance
    exact = None if lengths is None else scored_p(square, lengths, means, m, n)
    return chi2_sf(square, 1) if exact is None else exact


def spread_ratio(first: Values, second: Values) -> float | None:
    """The second sample's median absolute deviation divided by the first's; None if the first one is 0."""
    one, other = (middle(_away(each)) if each.size else 0.0 for each in (first, second))
    return other / one if one else None


def _away(ordered: Values) -> Values:
    """The distance of each value from the median."""
    return np.asarray(np.abs(ordered - (ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2))


def _folded(ordered: Values) -> tuple[Values, Values]:
    """The distances of the values below the median, and of the other values, from the median; each ascending."""
    middle = _on_the_grid(ordered)
    below = int(ordered.searchsorted(middle))
    return middle - ordered[:below][::-1], ordered[below:] - middle


def _on_the_grid(ordered: Values) -> float:
    """The median; if the clock is coarse, the more frequent of the two middle values, because a median halfway between
    two steps would give one sample distances that the other cannot have.
    """
    below, above = float(ordered[(ordered.size - 1) // 2]), float(ordered[ordered.size // 2])
    if below < above and 2 * (1 + int(np.count_nonzero(ordered[1:] > ordered[:-1]))) <= ordered.size:
        return below if np.count_nonzero(ordered == below) >= np.count_nonzero(ordered == above) else above
    return (below + above) / 2


def middle(values: Values) -> float:
    """The median of at least one value."""
    at = (values.size - 1) // 2, values.size // 2
    parted = np.partition(values, at)  # np.partition with a single place takes as long as sorting
    return float(parted[at[0]] + parted[at[1]]) / 2


@lru_cache(maxsize=64)
def _scores(size: int) -> Values:
    normal = NormalDist()
    return np.array([normal.inv_cdf(0.5 + (each + 1) / (2 * (size + 1))) for each in range(size)])
