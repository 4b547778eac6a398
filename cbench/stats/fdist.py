"""The upper tail of the F distribution, by the incomplete beta function.

M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.6.2. A. R. DiDonato, A. H. Morris,
"Significant digit computation of the incomplete beta function ratios", ACM Trans. Math. Softw. 18 (1992) 360-373: the
continued fraction, equation 9, evaluated by Lentz's method. The beta function's argument and what is left of 1 are both
worked out from F, so that small tails keep their digits, and Stirling's series (6.1.41) stands for gamma functions of
large numbers, which would cancel.
"""

from __future__ import annotations

from math import exp, inf, isnan, lgamma, log, log1p, pi

_TINY = 1e-300
_ENOUGH = 1e-16
_MOST_STEPS = 200_000
_LARGE = 10.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def f_sf(f: float, df1: float, df2: float) -> float:
    """P(F > f) with df1 and df2 > 0 degrees of freedom, relative error about 1e-12; 1 for f <= 0, NaN for NaN."""
    if df1 <= 0 or df2 <= 0:
        raise ValueError("degrees of freedom are above 0")
    if isnan(f):
        return f
    if f <= 0:
        return 1.0
    if f == inf:
        return 0.0
    low, high = df2 / (df2 + df1 * f), 1 / (1 + df2 / (df1 * f))
    return lower(low, high, df2 / 2, df1 / 2)


def lower(x: float, rest: float, a: float, b: float) -> float:
    """P(X < x) for X ~ Beta(a, b); `rest` is 1 - x, with all its digits."""
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
        ratio = _rest(large) - _rest(large + small) + small - (large - 0.5) * log1p(small / large)
        return lgamma(small) + ratio - small * log(large + small)
    powers = (small - 0.5) * log(small / (small + large)) - large * log1p(small / large)
    return 0.5 * log(2 * pi) - 0.5 * log(large) + powers + _rest(small) + _rest(large) - _rest(small + large)


def _rest(z: float) -> float:
    """ln gamma(z) less (z - 1/2) ln z - z + ln(2 pi)/2."""
    square = z * z
    power, total = z, 0.0
    for each in _STIRLING:
        total += each / power
        power *= square
    return total


def _fraction(x: float, rest: float, a: float, b: float) -> float:
    apart = a * rest - b * x + 1
    c = found = _away(a * apart / (a + 1))
    d = 0.0
    for m in range(1, _MOST_STEPS):
        width = a + 2 * m - 1
        above = (a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x / (width * width)
        below = m + m * (b - m) * x / width + (a + m) * (apart + m * (1 + rest)) / (width + 2)
        d, c = 1 / _away(below + above * d), _away(below + above / c)
        found *= d * c
        if abs(d * c - 1) <= _ENOUGH:
            break
    return found


def _away(value: float) -> float:
    """Not quite 0."""
    return value if abs(value) > _TINY else _TINY
