"""Student's interval of a mean, and the quantiles of Student's distribution. scipy has them, but is not needed here.

M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.5: the expansion for many degrees of
freedom; below, Newton's method on the tail of `cbench.stats.tails`, kept between two bounds.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi, sqrt, tan
from statistics import NormalDist

from numpy.typing import ArrayLike

from cbench.stats.interval import Interval, T, check_level, checked, deviation, no_squares
from cbench.stats.tails import student_p

_EXPANDED = 1000
"""From so many degrees of freedom on the expansion is exact to 1e-13 for p from 1e-6 to 1 - 1e-6."""

_MOST_STEPS = 200


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p for `df` > 0 degrees of freedom. ValueError for p not within (0, 1)."""
    if not 0 < p < 1:
        raise ValueError("a probability between 0 and 1 is needed")
    if df <= 0:
        raise ValueError("degrees of freedom are above 0")
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -t_quantile(1 - p, df)
    if df == 1:
        return -1 / tan(pi * p)
    if df == 2:
        return -(1 - 2 * p) * sqrt(2 / (4 * p * (1 - p)))
    start = _expansion(NormalDist().inv_cdf(1 - p), df)
    return -(start if df >= _EXPANDED else _solved(2 * p, df, start))


def _expansion(z: float, df: float) -> float:
    square = z * z
    terms = (
        z * (square + 1) / 4,
        z * ((5 * square + 16) * square + 3) / 96,
        z * (((3 * square + 19) * square + 17) * square - 15) / 384,
        z * ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return z + sum(term / df ** (power + 1) for power, term in enumerate(terms))


def _solved(wanted: float, df: float, start: float) -> float:
    """The t above 0 with P(|T| > t) = wanted."""
    low, high = 0.0, max(start, 1.0)
    while student_p(high, df) > wanted:
        low, high = high, 2 * high
    t = min(max(start, low), high)
    front = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    for _ in range(_MOST_STEPS):
        away = student_p(t, df) - wanted
        low, high = (t, high) if away > 0 else (low, t)
        density = exp(front - (df + 1) / 2 * log1p(t * t / df))
        better = t + away / (2 * density)
        if not low <= better <= high:
            better = (low + high) / 2
        if abs(better - t) <= 1e-15 * t:
            return better
        t = better
    return t


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """mean -+ t(n - 1, (1 + level)/2) s/sqrt(n). Fewer than 2 values, or no finite numbers: none, with its reason."""
    check_level(level)
    row = checked(values)
    why = no_squares(row)
    if why is None and row.size < 2:
        why = f"2 values are needed, there {'is' if row.size == 1 else 'are'} {row.size}"
    if why is not None:
        return Interval(None, None, level, T, 0, why)
    if row.min() == row.max():
        return Interval(float(row[0]), float(row[0]), level, T, 0, alike(row.size))
    middle = float(row.mean())
    half = t_quantile((1 + level) / 2, row.size - 1) * (deviation(row) or 0.0) / sqrt(row.size)
    return Interval(middle - half, middle + half, level, T)


def alike(n: int) -> str:
    """What to know of an interval without width."""
    return f"all {n:,} values are alike: its width of 0 is no promise for others"
