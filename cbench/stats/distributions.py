"""Compute tails and quantiles of the chi-squared, beta, Student's and F distributions.

scipy has these functions, but takes longer to load than most analyses take. Small tails have as many correct digits as
large ones.

chi-squared  M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.4.4 and 26.4.5: whole degrees of
             freedom, finite sums of positive terms.
beta         A. R. DiDonato, A. H. Morris, "Significant digit computation of the incomplete beta function ratios", ACM
             Trans. Math. Softw. 18 (1992) 360-373: the continued fraction, equation 9, evaluated by Lentz's method.
             Stirling's series (6.1.41) replaces gamma functions of large numbers, which would cancel.
Student      The same handbook, 26.5.2 and 26.7.1 (by the incomplete beta function). Quantiles: 26.7.5, the expansion
             for many degrees of freedom; for fewer, Newton's method on the tail, kept between two bounds; closed forms
             for 1 and 2.
F            The same handbook, 26.6.2. The argument of the beta function and its complement to 1 are both computed from
             F, so that small tails keep their digits.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, inf, isnan, lgamma, log, log1p, pi, sqrt, tan
from statistics import NormalDist

_TINY = 1e-300
_ENOUGH = 1e-16
_MOST_STEPS = 200_000
_MOST_NEWTON_STEPS = 200
_EXPANDED = 1000
"""With at least this many degrees of freedom, the expansion has a relative error of at most 2e-12 for p from 1e-6 to
1 - 1e-6.
"""
_LARGE = 10.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def chi2_sf(x: float, df: int) -> float:
    """P(X > x) for X ~ chi-squared with `df` degrees of freedom; 1 for x <= 0. Raises ValueError if `df` < 1."""
    if df < 1:
        raise ValueError(f"{df} degrees of freedom: at least 1 is required")
    if x <= 0:
        return 1.0
    half = x / 2
    if df == 1:
        return erfc(sqrt(half))
    return min(1.0, (erfc(sqrt(half)) if df % 2 else 0.0) + _terms(half, (df % 2) / 2, df / 2 - 1))


def _terms(half: float, first: float, top: float) -> float:
    """The sum of exp(-half) half^k/gamma(k + 1) for k = first, first + 1, ..., top, summed outward from the largest
    term.
    """
    peak = min(max(first, half // 1 + first), top)
    largest = exp(peak * log(half) - half - lgamma(peak + 1))
    total, term, k = largest, largest, peak
    while k > first and term > total * _ENOUGH:
        term *= k / half
        total += term
        k -= 1
    term, k = largest, peak
    while k < top and term > total * _ENOUGH:
        k += 1
        term *= half / k
        total += term
    return total


def student_p(t: float, df: float) -> float:
    """P(|T| > |t|) for T ~ Student with `df` degrees of freedom. Raises ValueError if `df` <= 0."""
    if df <= 0:
        raise ValueError(f"{df} degrees of freedom: must be above 0")
    square = t * t
    return beta_cdf(df / (df + square), square / (df + square), df / 2, 0.5) if square < 1e300 else 0.0


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p for T ~ Student with `df` degrees of freedom. Raises ValueError if p is not within
    (0, 1), or if `df` <= 0.
    """
    if not 0 < p < 1:
        raise ValueError(f"probability {p}: must be above 0 and below 1")
    if df <= 0:
        raise ValueError(f"{df} degrees of freedom: must be above 0")
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
    """The t > 0 with P(|T| > t) = wanted, by Newton's method from `start`."""
    low, high = 0.0, max(start, 1.0)
    while student_p(high, df) > wanted:
        low, high = high, 2 * high
    t = min(max(start, low), high)
    front = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    for _ in range(_MOST_NEWTON_STEPS):
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


def beta_sf(x: float, a: float, b: float) -> float:
    """P(X > x) for X ~ Beta(a, b); small probabilities have as many correct digits as large ones."""
    return beta_cdf(1 - x, x, b, a)


def f_sf(f: float, df1: float, df2: float) -> float:
    """P(F > f) with df1 and df2 degrees of freedom, with a relative error of about 1e-12; 1 for f <= 0, NaN for NaN.
    Raises ValueError if df1 or df2 is not above 0.
    """
    if df1 <= 0 or df2 <= 0:
        raise ValueError(f"{df1} and {df2} degrees of freedom: both must be above 0")
    if isnan(f):
        return f
    if f <= 0:
        return 1.0
    if f == inf:
        return 0.0
    low, high = df2 / (df2 + df1 * f), 1 / (1 + df2 / (df1 * f))
    return beta_cdf(low, high, df2 / 2, df1 / 2)


def beta_cdf(x: float, rest: float, a: float, b: float) -> float:
    """P(X < x) for X ~ Beta(a, b). `rest`: 1 - x, to full precision."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    small, less = (log(x) if x < 0.5 else log1p(-rest)), (log(rest) if rest < 0.5 else log1p(-x))
    front = exp(a * small + b * less - _log_beta(a, b))
    if a * rest >= b * x:
        return min(1.0, front / _fraction(x, rest, a, b))
    return max(0.0, 1 - front / _fraction(rest, x, b, a))


def _log_beta(a: float, b: float) -> float:
    small, large = min(a, b), max(a, b)
    if large < _LARGE:
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    if small < _LARGE:  # ln gamma(large) - ln gamma(large + small)
        ratio = _beyond_stirling(large) - _beyond_stirling(large + small) + small - (large - 0.5) * log1p(small / large)
        return lgamma(small) + ratio - small * log(large + small)
    powers = (small - 0.5) * log(small / (small + large)) - large * log1p(small / large)
    return (
        0.5 * log(2 * pi)
        - 0.5 * log(large)
        + powers
        + _beyond_stirling(small)
        + _beyond_stirling(large)
        - _beyond_stirling(small + large)
    )


def _beyond_stirling(z: float) -> float:
    """ln gamma(z) minus ((z - 1/2) ln z - z + ln(2 pi)/2)."""
    square = z * z
    power, total = z, 0.0
    for each in _STIRLING:
        total += each / power
        power *= square
    return total


def _fraction(x: float, rest: float, a: float, b: float) -> float:
    apart = a * rest - b * x + 1
    c = a * apart / (a + 1)
    if -_TINY <= c <= _TINY:  # no term may be 0 in Lentz's method
        c = _TINY
    found, d = c, 0.0
    for m in range(1, _MOST_STEPS):
        width = a + 2 * m - 1
        above = (a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x / (width * width)
        below = m + m * (b - m) * x / width + (a + m) * (apart + m * (1 + rest)) / (width + 2)
        d = below + above * d
        d = 1 / (_TINY if -_TINY <= d <= _TINY else d)
        c = below + above / c
        if -_TINY <= c <= _TINY:
            c = _TINY
        step = d * c
        found *= step
        if -_ENOUGH <= step - 1 <= _ENOUGH:
            break
    return found
