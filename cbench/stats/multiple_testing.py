"""Correct many tests to one error rate: select the significant p-values, and adjust p-values for their number.

bonferroni  C. E. Bonferroni (1936): p < alpha/m, as in Algorithm 1 of D. Duplyakin et al., "Avoiding the Ordering Trap
            in Systems Performance Measurement", USENIX ATC 2023.
holm        S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979) 65-70:
            the same bound on the error rate, never with less power.
none        no correction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BONFERRONI, HOLM, NONE = "bonferroni", "holm", "none"

P = NDArray[np.float64]


def adjusted(values: ArrayLike, rule: str = BONFERRONI) -> P:
    """The adjusted p-values, at most 1, for comparison with alpha. NaN is not counted as a test and stays NaN."""
    p = np.array(values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    if rule == HOLM:
        known = known[np.argsort(p[known], kind="stable")]
        p[known] = holm_of_smallest(p[known], known.size)
    elif rule == BONFERRONI:
        p *= known.size
    return np.minimum(p, 1)


def holm_of_smallest(ranked: ArrayLike, m: int) -> P:
    """Holm's adjusted p-values for the smallest of m p-values, ascending."""
    p = np.asarray(ranked, dtype=np.float64)
    return np.minimum(np.maximum.accumulate(p * (m - np.arange(p.size))), 1)


def significant(values: ArrayLike, alpha: float, rule: str = BONFERRONI) -> NDArray[np.bool_]:
    """Flags for the tests whose adjusted p-value is strictly below alpha."""
    with np.errstate(invalid="ignore"):
        return np.asarray(adjusted(values, rule) < alpha)
