"""Upper tails of the chi-squared and of Student's distribution, for whole degrees of freedom.

M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.4.4, 26.4.5 (chi-squared), 26.7.3 and 26.7.4
(Student). The sums are finite and all their terms positive, so nothing cancels. scipy has both, but loading it takes
longer than most analyses.
"""

from __future__ import annotations

from math import atan2, erfc, exp, fsum, lgamma, log, pi, sqrt
from statistics import NormalDist

MANY = 100_000
"""From so many degrees of freedom on Student's distribution is taken for normal: they differ by less than 1e-5."""


def chi2_sf(x: float, df: int) -> float:
    """P(X > x) for X ~ chi-squared with `df` >= 1 degrees of freedom; 1 for x <= 0."""
    if df < 1:
        raise ValueError("at least one degree of freedom is needed")
    if x <= 0:
        return 1.0
    half = x / 2
    if df % 2:
        terms = (exp((i - 0.5) * log(half) - half - lgamma(i + 0.5)) for i in range(1, (df - 1) // 2 + 1))
        return min(1.0, erfc(sqrt(half)) + fsum(terms))
    return min(1.0, fsum(exp(i * log(half) - half - lgamma(i + 1)) for i in range(df // 2)))


def student_p(t: float, df: int) -> float:
    """P(|T| > |t|) for T ~ Student with `df` >= 1 degrees of freedom, good to 1e-15 absolutely."""
    if df < 1:
        raise ValueError("at least one degree of freedom is needed")
    if df >= MANY:
        return 2 * NormalDist().cdf(-abs(t))
    angle = atan2(abs(t), sqrt(df))
    cosine2 = df / (df + t * t)
    sine = abs(t) / sqrt(df + t * t)
    total, term = 0.0, 1.0
    if df % 2:
        if df > 1:
            term = sqrt(cosine2)
            for i in range(1, (df - 1) // 2 + 1):
                total += term
                term *= cosine2 * 2 * i / (2 * i + 1)
        inside = 2 / pi * (angle + sine * total)
    else:
        for i in range(1, df // 2 + 1):
            total += term
            term *= cosine2 * (2 * i - 1) / (2 * i)
        inside = sine * total
    return min(1.0, max(0.0, 1 - inside))
