"""How wide intervals get, and how often they hold the mean, in samples of the sizes that people really use.

D. Flater, NIST TN 1855 (2014), section 4.7.1: a long series is the population; samples of each size are drawn from it,
and their intervals are looked at. It does not say whether values are put back; without is what a shorter series is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.batched_intervals import Progress, bca_ends, t_ends
from cbench.stats.bca import FEWEST, generator
from cbench.stats.interval import BCA, METHODS, MID, TIES, T, Values, check_level, checked, no_numbers

SUBSAMPLES = 15_000
REPLICATES = 50_000
"""Both are TN 1855's."""

DRAWN = 1 << 21
"""So many values of subsamples are there at a time: 16 MB."""


@dataclass(frozen=True, slots=True)
class Sized:
    """Intervals by one method of `subsamples` samples of `n` values each.

    q1, q2, q3: quartiles of the widths, in the values' unit; None where no sample has an interval. covered: how many
    intervals hold the mean of the population. without: samples that have no interval; they count as not covering.
    """

    n: int
    method: str
    q1: float | None
    q2: float | None
    q3: float | None
    covered: int
    subsamples: int
    without: int = 0

    @property
    def coverage(self) -> float:
        """The share of samples whose interval holds the population's mean."""
        return self.covered / self.subsamples

    @property
    def error(self) -> float:
        """The standard error of `coverage` that comes from the number of subsamples."""
        return sqrt(self.coverage * (1 - self.coverage) / self.subsamples)


@dataclass(frozen=True, slots=True)
class Subsampling:
    """A study of `population` values with the mean `mean`; `sizes`: of each n one entry a method, by n."""

    population: int
    mean: float
    level: float
    replace: bool
    replicates: int
    seed: int
    sizes: tuple[Sized, ...]
    why: str | None = None

    def of(self, method: str) -> tuple[Sized, ...]:
        """One method's entries, by n."""
        return tuple(each for each in self.sizes if each.method == method)


def subsampling(
    values: ArrayLike,
    sizes: Sequence[int],
    subsamples: int = SUBSAMPLES,
    level: float = 0.95,
    replicates: int = REPLICATES,
    replace: bool = False,
    methods: Sequence[str] = METHODS,
    ties: str = MID,
    seed: int = 0,
    progress: Progress | None = None,
) -> Subsampling:
    """Draw `subsamples` samples of each size from the values, the population, and look at their intervals.

    replace: with replacement. Sizes that are not possible (below 2, above the population without replacement) are left
    out, and `why` says so. Each size has draws of its own: what other sizes there are changes nothing. ValueError where
    nothing can be studied.
    """
    row = _population(values, level)
    if ties not in TIES or not methods or any(each not in METHODS for each in methods):
        raise ValueError(f"methods are of {', '.join(METHODS)}, ties one of {', '.join(TIES)}")
    if subsamples < 1 or replicates < 1:
        raise ValueError("at least one subsample and one replicate are needed")
    wanted = sorted(set(sizes))
    possible = [n for n in wanted if n >= 2 and (replace or n <= row.size)]
    if not possible:
        raise ValueError(f"no size from 2 to {row.size:,} is asked for")
    parts = [sum(possible[:done]) / sum(possible) for done in range(len(possible) + 1)]
    found = list[Sized]()
    for n, start, stop in zip(possible, parts, parts[1:], strict=False):
        tell = None if progress is None else _within(progress, start, stop)
        found += _sized(row, n, _How(subsamples, level, replicates, replace, tuple(methods), ties, seed), tell)
    out = [f"{n:,}" for n in wanted if n not in possible]
    why = f"not possible with {row.size:,} values: n = {', '.join(out)}" if out else None
    mean = float((row / row.size).sum())
    return Subsampling(row.size, mean, level, replace, replicates, seed, tuple(found), why)


def _population(values: ArrayLike, level: float) -> Values:
    check_level(level)
    row = checked(values)
    wrong = no_numbers(row)
    if wrong is not None:
        raise ValueError(wrong)
    if row.size < 2:
        raise ValueError(f"a population has 2 values or more, this one has {row.size}")
    return row


def _within(progress: Progress, start: float, stop: float) -> Progress:
    return lambda part: progress(start + part * (stop - start))


@dataclass(frozen=True, slots=True)
class _How:
    subsamples: int
    level: float
    replicates: int
    replace: bool
    methods: tuple[str, ...]
    ties: str
    seed: int


def _sized(row: Values, n: int, how: _How, progress: Progress | None) -> list[Sized]:
    """All methods' intervals of the same samples."""
    rng, replicating = generator(how.seed, n, 0), generator(how.seed, n, 1)
    ends: dict[str, list[tuple[Values, Values]]] = {method: [] for method in how.methods}
    rows = max(1, DRAWN // n)
    for start in range(0, how.subsamples, rows):
        count = min(rows, how.subsamples - start)
        samples = _samples(row, n, count, how.replace, rng)
        tell = _within(progress, start / how.subsamples, (start + count) / how.subsamples) if progress else None
        if T in ends:
            ends[T].append(t_ends(samples, how.level))
        if BCA in ends:
            none = np.full(count, np.nan)
            few = n < FEWEST
            made = (none, none) if few else bca_ends(samples, how.level, how.replicates, how.ties, replicating, tell)
            ends[BCA].append(made)
        if tell is not None:
            tell(1.0)
    mean = float((row / row.size).sum())
    found = list[Sized]()
    for method in how.methods:
        low, high = (np.concatenate(side) for side in zip(*ends[method], strict=True))
        found.append(_entry(n, method, low, high, mean))
    return found


def _samples(row: Values, n: int, count: int, replace: bool, rng: np.random.Generator) -> Values:
    if replace:
        return row[rng.integers(0, row.size, size=(count, n))]
    return np.stack([rng.choice(row, n, replace=False, shuffle=False) for _ in range(count)])


def _entry(n: int, method: str, low: Values, high: Values, mean: float) -> Sized:
    there = ~np.isnan(low)
    covered = int(np.count_nonzero((low <= mean) & (mean <= high)))
    widths = (high - low)[there]
    q1, q2, q3 = (float(each) for each in np.quantile(widths, (0.25, 0.5, 0.75))) if widths.size else (None,) * 3
    return Sized(n, method, q1, q2, q3, covered, low.size, low.size - widths.size)
