"""Upper tails of the chi-squared, the beta and Student's distribution. scipy has them, but takes longer to load than
most analyses take.

M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.4.4 and 26.4.5 (chi-squared, whole degrees of
freedom: finite sums of positive terms), 26.5.2 and 26.7.1 (Student by the incomplete beta function). The continued
fraction of the incomplete beta function: NIST Digital Library of Mathematical Functions, 8.17.22, by Lentz's method.
"""

from __future__ import annotations

from math import erfc, exp, lgamma, log, log1p, sqrt

_TINY = 1e-300
_ENOUGH = 1e-15
_MOST_STEPS = 100_000


def chi2_sf(x: float, df: int) -> float:
    """P(X > x) for X ~ chi-squared with `df` >= 1 degrees of freedom; 1 for x <= 0."""
    if df < 1:
        raise ValueError("at least one degree of freedom is needed")
    if x <= 0:
        return 1.0
    half = x / 2
    if df == 1:
        return erfc(sqrt(half))
    return min(1.0, (erfc(sqrt(half)) if df % 2 else 0.0) + _terms(half, (df % 2) / 2, df / 2 - 1))


def _terms(half: float, first: float, top: float) -> float:
    """The sum of exp(-half) half^k/gamma(k + 1) for k = first, first + 1 ... top, from the largest to both sides."""
    peak = min(max(first, half // 1 + first), top)
    largest = exp(peak * log(half) - half - lgamma(peak + 1))
    total, term, k = largest, largest, peak
    while k > first and term > total * _ENOUGH / 10:
        term *= k / half
        total += term
        k -= 1
    term, k = largest, peak
    while k < top and term > total * _ENOUGH / 10:
        k += 1
        term *= half / k
        total += term
    return total


def student_p(t: float, df: float) -> float:
    """P(|T| > |t|) for T ~ Student with `df` > 0 degrees of freedom."""
    if df <= 0:
        raise ValueError("degrees of freedom are above 0")
    square = t * t
    return beta_sf(square / (df + square), 0.5, df / 2) if square < 1e300 else 0.0


def beta_sf(x: float, a: float, b: float) -> float:
    """P(X > x) for X ~ Beta(a, b); small ones are exact in as many digits as others."""
    if x <= 0:
        return 1.0
    if x >= 1:
        return 0.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(1 - x, b, a) / b)
    return max(0.0, 1 - front * _fraction(x, a, b) / a)


def _fraction(x: float, a: float, b: float) -> float:
    c = 1.0
    d = 1 / _away(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _away(1 + even * d), _away(1 + even / c)
        found *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _away(1 + odd * d), _away(1 + odd / c)
        found *= d * c
        if abs(d * c - 1) < _ENOUGH:
            break
    return found


def _away(value: float) -> float:
    """Not quite 0."""
    return value if abs(value) > _TINY else _TINY
