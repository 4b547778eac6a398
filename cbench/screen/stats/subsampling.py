"""How wide intervals get, and how often they hold the mean, in samples of the sizes that people really use.

D. Flater, NIST TN 1855 (2014), section 4.7.1: a long series is the population; samples of each size are drawn from it,
and their intervals are looked at. It does not say whether values are put back; without is what a shorter series is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import FEWEST, generator
from cbench.stats.interval import BCA, MID, T, Values

SUBSAMPLES = 15_000
REPLICATES = 50_000
"""Both are TN 1855's."""

DRAWN = 1 << 21
"""So many values of subsamples are there at a time: 16 MB."""


@dataclass(frozen=True, slots=True)
class StudiedSize:
    """Intervals by one method of `subsamples` samples of `n` values each.

    `width_quartiles`: in the values' unit; None where no sample has an interval. `coverage`: the share of samples whose
    interval holds the population's mean, and the standard error that comes from the number of subsamples. `without`:
    samples that have no interval; they count as not covering.
    """

    n: int
    method: str
    width_quartiles: tuple[float | None, float | None, float | None]
    coverage: float
    coverage_error: float
    subsamples: int
    without: int


def subsampling(
    population: Values,
    sizes: Sequence[int],
    subsamples: int = SUBSAMPLES,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[StudiedSize, ...]:
    """Draw `subsamples` samples of each size, from 2 to that of the population, and look at their intervals.

    One entry a method, by n. Each size has draws of its own: what other sizes there are changes nothing.
    """
    entries: list[StudiedSize] = []
    mean = float((population / population.size).sum())
    for n in sizes:
        rng, replicating = generator(seed, n, 0), generator(seed, n, 1)
        ends: dict[str, list[tuple[Values, Values]]] = {T: [], BCA: []}
        rows = max(1, DRAWN // n)
        for start in range(0, subsamples, rows):
            count = min(rows, subsamples - start)
            samples = np.stack([rng.choice(population, n, replace=False, shuffle=False) for _ in range(count)])
            ends[T].append(t_ends(samples, level))
            none = np.full(count, np.nan)
            ends[BCA].append((none, none) if n < FEWEST else bca_ends(samples, level, replicates, MID, replicating))
        for method, parts in ends.items():
            low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
            entries.append(_entry(n, method, low, high, mean))
    return tuple(entries)


def _entry(n: int, method: str, low: Values, high: Values, mean: float) -> StudiedSize:
    widths = (high - low)[~np.isnan(low)]
    q1, q2, q3 = (float(each) for each in np.quantile(widths, (0.25, 0.5, 0.75))) if widths.size else (None,) * 3
    coverage = float(np.count_nonzero((low <= mean) & (mean <= high))) / low.size
    error = sqrt(coverage * (1 - coverage) / low.size)
    return StudiedSize(n, method, (q1, q2, q3), coverage, error, low.size, low.size - widths.size)
