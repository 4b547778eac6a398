"""Determine how well two metrics agree, on the same trials or on separate runs of the same work.

J. M. Bland, D. G. Altman, "Statistical methods for assessing agreement between two methods of clinical measurement",
Lancet 327 (1986) 307-310: differences, not a correlation, show agreement; the standard error of the limits of agreement
is about sqrt(3/n) sd. B. L. Welch, "The generalization of Student's problem when several different population
variances are involved", Biometrika 34 (1947) 28-35, for metrics of separate runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.distributions import t_quantile
from cbench.stats.interval import Interval, T, Values, check_level, checked, deviation, no_squares, t_interval

LIMITS = 1.96
"""The distance of the limits of agreement from the mean difference, in standard deviations. The limits contain 95 % of
normally distributed differences.
"""

WELCH = "t (Welch)"

LOGARITHMS = 700.0
"""A ratio or an interval of ratios is computed if logarithms are at most this far from 0; exp() overflows above about
709.
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two metrics, second minus first. `difference`: of the means, with its interval; `percent`: the
    same in % of the first metric's mean, None if this mean is 0 or the percentage overflows.

    `paired`: whether both metrics come from the same trials. Three fields are None unless paired: `limits`, the limits
    of agreement (LIMITS sd of the differences on both sides); `limits_error`, their standard error; and `trend`, the
    correlation of difference and mean, which is above 0 if the second metric grows faster. `trend` is also None if the
    difference or the mean is constant. `ratio`: the ratio of the geometric means, second/first, with its interval; None
    unless all values are positive, and if the ratio overflows. `why`: the reason why there is no answer, or no ratio.
    """

    n: tuple[int, int]
    paired: bool
    difference: float | None
    interval: Interval
    percent: float | None
    limits: tuple[float, float] | None
    limits_error: float | None
    trend: float | None
    ratio: float | None
    ratio_interval: Interval | None
    why: str | None = None


def agreement(first: ArrayLike, second: ArrayLike, paired: bool, level: float = 0.95) -> Agreement:
    """The agreement of two metrics in the same unit. Raises ValueError if paired metrics have different numbers of
    values, or if `level` is not within (0, 1).
    """
    check_level(level)
    first_values, second_values = checked(first), checked(second)
    if paired and first_values.size != second_values.size:
        raise ValueError(f"pairs are needed, but there are {first_values.size:,} and {second_values.size:,} values")
    n = (first_values.size, second_values.size)
    why = no_squares(first_values) or no_squares(second_values)
    if why is None and min(n) < 2:
        why = f"2 values of each metric are needed, but there are {first_values.size} and {second_values.size}"
    if why is not None:
        none = Interval(None, None, level, T if paired else WELCH, 0, why)
        return Agreement(n, paired, None, none, None, None, None, None, None, None, why)
    difference, interval = _difference(first_values, second_values, paired, level)
    base = float(first_values.mean())
    share = 100 * difference / base if base else inf
    percent = share if isfinite(share) else None
    limits, error, trend = _limits(first_values, second_values) if paired else (None, None, None)
    ratio, ratio_interval = None, None
    if min(first_values.min(), second_values.min()) > 0:
        logarithm, ends = _difference(np.log(first_values), np.log(second_values), paired, level)
        ratio_interval = _exponential(ends)
        if abs(logarithm) <= LOGARITHMS:
            ratio = exp(logarithm)
        else:
            why = "no ratio: it is too far from 1 for a number"
    else:
        why = "no ratio: not all values are above 0"
    return Agreement(n, paired, difference, interval, percent, limits, error, trend, ratio, ratio_interval, why)


def _difference(first: Values, second: Values, paired: bool, level: float) -> tuple[float, Interval]:
    if paired:
        each = second - first
        return float(each.mean()), t_interval(each, level)
    return welch(first, second, level)


def welch(first: Values, second: Values, level: float) -> tuple[float, Interval]:
    """The difference of the means of two samples of 2 values or more, second minus first, and its interval."""
    difference = float(second.mean() - first.mean())
    shares = [(deviation(each) or 0.0) ** 2 / each.size for each in (first, second)]
    error = sum(shares)
    if not error:
        why = "all values of each metric are equal: a width of 0 says nothing about other values"
        return difference, Interval(difference, difference, level, WELCH, 0, why)
    parts = zip(shares, (first, second), strict=True)
    freedom = 1 / sum((share / error) ** 2 / (each.size - 1) for share, each in parts)
    half = t_quantile((1 + level) / 2, freedom) * sqrt(error)
    return difference, Interval(difference - half, difference + half, level, WELCH)


def _limits(first: Values, second: Values) -> tuple[tuple[float, float], float, float | None]:
    each, middles = second - first, (first + second) / 2
    middle, sd = float(each.mean()), deviation(each) or 0.0
    spread = (deviation(middles) or 0.0) * sd
    trend = None
    if spread:
        along = float(((each - middle) * (middles - middles.mean())).sum()) / (each.size - 1)
        trend = max(-1.0, min(1.0, along / spread))
    return (middle - LIMITS * sd, middle + LIMITS * sd), sqrt(3 / each.size) * sd, trend


def _exponential(ends: Interval) -> Interval:
    if ends.low is None or ends.high is None:
        return ends
    if ends.low < -LOGARITHMS or ends.high > LOGARITHMS:
        return Interval(None, None, ends.level, ends.method, 0, "the ratio is unbounded")
    return Interval(exp(ends.low), exp(ends.high), ends.level, ends.method, 0, ends.why)
