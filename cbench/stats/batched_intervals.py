"""Compute intervals of the mean for thousands of samples of the same size.

The samples of a batch share their bootstrap draws: one matrix holds the number of draws of each position in each
replicate, and its product with the samples yields all their replicates. The replicates of each sample are distributed
as in a separate bootstrap. Each batch draws a new matrix, so only samples of the same batch share the random error of
the interval ends.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.bca import corrected, quantiles, share_below
from cbench.stats.bootstrap import rounding
from cbench.stats.distributions import t_quantile
from cbench.stats.interval import Values, exponent

KEPT = 1 << 22
"""The maximum number of a batch's replicates in memory at a time: 32 MB."""

COUNTS = 1 << 20
"""The maximum number of counts of a batch's matrix in memory at a time: 8 MB, and up to 24 MB while they are drawn."""


def t_ends(samples: Values, level: float) -> tuple[Values, Values]:
    """The ends of Student's intervals, one per row; each row is a sample of at least 2 finite values. The width is 0 if
    all values of a row are equal.
    """
    n = samples.shape[1]
    middle = samples.mean(axis=1)
    power = exponent(samples)
    spread = np.ldexp(np.ldexp(samples, -power).std(axis=1, ddof=1), power)
    same = samples.min(axis=1) == samples.max(axis=1)
    half = np.where(same, 0.0, t_quantile((1 + level) / 2, n - 1) * spread / sqrt(n))
    middle = np.where(same, samples[:, 0], middle)
    return middle - half, middle + half


def bca_ends(
    samples: Values, level: float, replicates: int, ties: str, rng: np.random.Generator
) -> tuple[Values, Values]:
    """The ends of the BCa intervals of the mean, one per row; each row is a sample of at least 3 finite values. NaN if
    a row has no interval; the width is 0 if all values of a row are equal.
    """
    low, high = np.full(len(samples), np.nan), np.full(len(samples), np.nan)
    same = samples.min(axis=1) == samples.max(axis=1)
    low[same] = high[same] = samples[same, 0]
    rest = np.flatnonzero(~same)
    rows = max(1, min(KEPT // replicates, rest.size))
    drawn = np.empty((rows, replicates))
    for start in range(0, rest.size, rows):
        at = rest[start : start + rows]
        low[at], high[at] = _batch(samples[at], level, ties, drawn[: at.size], rng)
    return low, high


def _batch(samples: Values, level: float, ties: str, drawn: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """The interval ends of one batch. The replicates are written into `drawn`, a row for each sample."""
    n, replicates = samples.shape[1], drawn.shape[1]
    middle = samples.mean(axis=1)
    away = samples - middle[:, None]
    scale = np.abs(away).max(axis=1)
    away /= scale[:, None]
    a = (away**3).sum(axis=1) / (6 * (away**2).sum(axis=1) ** 1.5)
    away /= n
    rows = max(1, COUNTS // n)
    for start in range(0, replicates, rows):
        stop = min(start + rows, replicates)
        np.matmul(away, counts(n, stop - start, rng).T, out=drawn[:, start:stop])
    low, high = np.full(len(samples), np.nan), np.full(len(samples), np.nan)
    for at, row in enumerate(drawn):
        below = share_below(row, ties, rounding(n, float(middle[at]), float(scale[at])))
        found = corrected(below, float(a[at]), level)
        if found.why is None:
            ends = quantiles(row, found.low, found.high)
            low[at], high[at] = (middle[at] + scale[at] * end for end in ends)
    return low, high


def counts(n: int, rows: int, rng: np.random.Generator) -> Values:
    """The counts of n values in bootstrap samples, a row for each sample. Shape (rows, n)."""
    places: NDArray[np.intp] = rng.integers(0, n, size=(rows, n), dtype=np.uint32).astype(np.intp)
    places += n * np.arange(rows)[:, None]
    return np.bincount(places.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
