"""Many tests, one error rate: which p-values are significant, and the p-values adjusted for their number.

bonferroni  C. E. Bonferroni (1936): p < alpha/m. The paper's Algorithm 1.
holm        S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979) 65-70:
            the same guarantee, never weaker.
bh          Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57 (1995) 289-300:
            the share of false ones among the significant, not the chance of any.
none        each by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BONFERRONI, HOLM, BH, NONE = "bonferroni", "holm", "bh", "none"
RULES = (BONFERRONI, HOLM, BH, NONE)

P = NDArray[np.float64]


def adjusted(values: ArrayLike, rule: str = BONFERRONI) -> P:
    """p-values to compare with alpha itself, at most 1; NaN stays, and is no test."""
    if rule not in RULES:
        raise ValueError(f"no such rule: {rule}")
    p = np.asarray(values, dtype=np.float64)
    found = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    m = known.size
    if not m:
        return found
    ours = p[known]
    if rule in (BONFERRONI, NONE):
        found[known] = np.minimum(ours * (m if rule == BONFERRONI else 1), 1)
        return found
    order = np.argsort(ours, kind="stable")
    ranked = ours[order]
    if rule == HOLM:
        ranked = holm_of_smallest(ranked, m)
    else:
        ranked = np.minimum.accumulate((ranked * m / np.arange(1, m + 1))[::-1])[::-1]
    found[known[order]] = np.minimum(ranked, 1)
    return found


def holm_of_smallest(ranked: ArrayLike, m: int) -> P:
    """By Holm's procedure, of the smallest of m p-values, ascending."""
    p = np.asarray(ranked, dtype=np.float64)
    return np.minimum(np.maximum.accumulate(p * (m - np.arange(p.size))), 1)


def significant(values: ArrayLike, alpha: float, rule: str = BONFERRONI) -> NDArray[np.bool_]:
    """Where the adjusted p-value is below alpha, as the paper compares."""
    with np.errstate(invalid="ignore"):
        return np.asarray(adjusted(values, rule) < alpha)
