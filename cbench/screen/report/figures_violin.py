"""Hybrid violin-scatter: every value is a point, moved aside by chance within its distribution's silhouette.

D. Flater, NIST Technical Note 1855 (2014), figures of the measured samples. The silhouette is a Gaussian kernel density
with D. W. Scott's bandwidth (Multivariate Density Estimation, 1992): n^(-1/5) standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
HALF = 0.4
"""Of the widest place of a silhouette, where samples stand 1 apart."""
MOST_EXACT = 600
"""Different values up to which the density is a sum over all of them; of more it comes from a grid."""
FINE = 10
"""Points of the grid in a bandwidth."""
MOST_GRID = 20_000
REACH = 6
"""Bandwidths, beyond which a kernel is nothing."""


def bandwidth_factor(n: int) -> float:
    """Scott's, for one dimension: standard deviations in a bandwidth."""
    return float(n ** (-1 / 5))


def density(values: Values) -> Values:
    """The kernel density at each of the values, shape (n,), per their unit; n >= 2 values that are not all alike."""
    width = bandwidth_factor(values.size) * float(values.std(ddof=1))
    found, back, counts = np.unique(values, return_inverse=True, return_counts=True)
    if found.size <= MOST_EXACT:
        far = (found[:, None] - found[None, :]) / width
        sums: Values = np.exp(-0.5 * far * far) @ counts
    else:
        sums = _by_grid(found, counts, width)
    return np.asarray(sums[back] / (values.size * width * np.sqrt(2 * np.pi)))


def _by_grid(found: Values, counts: NDArray[Any], width: float) -> Values:
    """Sums of kernels at the values, each value shared by the two points of a grid beside it.

    Where a few far values would make the grid too long, those are summed one by one in slices instead.
    """
    span = float(found[-1] - found[0])
    step = width / FINE
    if span / step > MOST_GRID:
        slices = np.array_split(found, max(1, found.size // 256))
        return np.concatenate([np.exp(-0.5 * ((part[:, None] - found) / width) ** 2) @ counts for part in slices])
    place = (found - found[0]) / step
    low = place.astype(np.intp)
    share = place - low
    size = int(span / step) + 2
    weights = np.bincount(low, counts * (1 - share), size) + np.bincount(low + 1, counts * share, size)
    taps = np.arange(-REACH * FINE, REACH * FINE + 1) / FINE
    smooth = np.convolve(weights, np.exp(-0.5 * taps * taps))[REACH * FINE :][:size]
    return np.asarray(smooth[low] * (1 - share) + smooth[low + 1] * share)


def silhouette(values: Values) -> Values:
    """The half width of the violin at each value as a share of its widest place at a value; 0 for values all alike."""
    if values.size < 2 or values.min() == values.max():
        return np.zeros(values.size)
    around = values - np.median(values)
    scale = float(np.abs(around).max())
    found = density(around / scale)
    return np.asarray(found / found.max())


def offsets(values: Values, draw: np.random.Generator) -> Values:
    """How far each point stands aside, from -HALF to HALF."""
    return np.asarray(HALF * silhouette(values) * draw.uniform(-1, 1, values.size))


def violins(axes: Any, samples: Sequence[Values], colors: Sequence[str], seed: int, rasterise: bool) -> None:
    """Samples at 0, 1, ...; one that is all alike is a line."""
    draw = np.random.default_rng(seed)
    for place, (values, color) in enumerate(zip(samples, colors, strict=True)):
        if not values.size:
            continue
        if values.min() == values.max():
            axes.plot([place - HALF, place + HALF], [values[0]] * 2, color=color, linewidth=1.6)
            continue
        size = 4.5 if values.size < 100 else 2.8 if values.size < 1000 else 1.4
        axes.plot(
            place + offsets(values, draw),
            values,
            ".",
            color=color,
            markersize=size,
            alpha=1 if values.size < 500 else 0.6,
            markeredgewidth=0,
            rasterized=rasterise,
        )
