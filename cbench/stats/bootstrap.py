"""Sums of bootstrap samples: n values drawn with replacement from n values, as often as wanted."""

from __future__ import annotations

from math import sqrt

import numpy as np

from cbench.stats import bootstrap_counts
from cbench.stats.interval import Values

CHUNK = 120_000
"""So many values are drawn at a time: what is made of them stays in the CPU's caches, and larger products of matrices
take four times as long a value in OpenBLAS."""

COUNTED = 256
"""From so many values on how often each is drawn is drawn, not which one is drawn."""


def sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of `replicates` bootstrap samples of the row."""
    if row.size >= COUNTED:
        return bootstrap_counts.sums(row, replicates, rng, CHUNK)
    return plain_sums(row, replicates, rng)


def plain_sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The same by their definition: draw n places, look the values up, add them."""
    found = np.empty(replicates)
    rows = max(1, CHUNK // row.size)
    for start in range(0, replicates, rows):
        stop = min(start + rows, replicates)
        places = rng.integers(0, row.size, size=(stop - start, row.size), dtype=np.uint32)
        found[start:stop] = row[places].sum(axis=1)
    return found


def rounding(n: int, middle: float, scale: float) -> float:
    """Means of samples that differ by less are taken for equal: in units of `scale`, of n values around `middle`."""
    return 8 * float(np.finfo(np.float64).eps) * (sqrt(n) + abs(middle) / scale)
