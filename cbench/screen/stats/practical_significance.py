"""Determine whether effects are material, which means that samples of the usual size would show them.

D. Flater, NIST TN 1855 (2014), section 4.7.1: an effect can be significant with thousands of runs and yet be smaller
than the interval of a sample of 40; the Note recommends the smallest n whose median interval is narrower than the
median effect. A long series is the population; samples of each size are drawn from it, and their intervals are
examined. The Note does not specify whether samples are drawn with replacement; here, they are drawn without
replacement, like the values of a shorter series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from statistics import median

import numpy as np

from cbench.results import KEY
from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import FEWEST, generator
from cbench.stats.interval import BCA, MID, T, Values

SUBSAMPLES = 15_000
REPLICATES = 50_000
"""The numbers of subsamples and replicates that NIST TN 1855 uses."""

DRAWN = 1 << 21
"""The maximum number of subsample values in memory at a time: 16 MB."""


@dataclass(frozen=True, slots=True)
class StudiedSize:
    """The intervals by one method for `subsamples` samples of `n` values each.

    `width_quartiles`: quartiles of the widths in the values' unit; None if no sample has an interval. `coverage`: the
    share of samples whose interval contains the population's mean; `coverage_error`: its standard error due to the
    number of subsamples. `without`: the number of samples without an interval, which count as not containing the mean.
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
    """Draw `subsamples` samples of each size from the population, and study their intervals. `sizes`: from 2 to the
    size of the population.

    Returns one entry per method and size. Each size is drawn independently, so results do not depend on other sizes.
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


@dataclass(frozen=True, slots=True)
class EffectMagnitude:
    """One effect compared with the widths of intervals.

    `magnitude`: its size in the values' unit; `of_range`: the size as a share of the distributions' range (None if the
    range is 0 or unknown). `detected_from`: per method, the smallest studied n such that the median interval is
    narrower than the magnitude at this n and at all larger ones; None if there is none.
    """

    magnitude: float
    of_range: float | None
    detected_from: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class MedianWidth:
    """The median width of intervals of n values by one method, in the values' unit."""

    method: str
    n: int
    median_width: float


@dataclass(frozen=True, slots=True)
class OwnWidths:
    """The median widths of the intervals in the data themselves, and the number of values in each sample."""

    n: int
    bca: float | None = field(metadata={KEY: "BCa"})
    t: float | None


@dataclass(frozen=True, slots=True)
class Materiality:
    """The comparison of effects with the widths of intervals.

    `median_effect`, `largest_effect`: median and maximum of the magnitudes; `range`: the range of the distributions.
    `enough`: per method, the smallest studied n such that the median width is below the median magnitude at this n and
    at all larger ones. `own`: the widths of the data's own intervals. `why`: the reason for omitted or missing
    effects, or None.
    """

    median_effect: float | None
    largest_effect: float | None
    range: float | None
    widths: tuple[MedianWidth, ...]
    enough: Mapping[str, int | None]
    effects: Mapping[str, EffectMagnitude]
    why: str | None
    own: OwnWidths


def materiality(
    effects: Mapping[str, float], spans: Sequence[float], studies: Sequence[Sequence[StudiedSize]], own: OwnWidths
) -> Materiality:
    """Compare main effects, by name, with the ranges of the treatments' distributions and with their subsampling
    studies, all in one unit.

    If there are several studies, the median over treatments of the median width is used; if there are several ranges,
    their median. Effects that are not finite numbers are omitted, and `why` reports this.
    """
    sizes = {name: abs(effect) for name, effect in effects.items() if isfinite(effect)}
    span = median(spans)
    widths = _widths(studies)
    methods = list(dict.fromkeys(each.method for each in widths))

    def from_on(magnitude: float) -> dict[str, int | None]:
        return {method: _first([each for each in widths if each.method == method], magnitude) for method in methods}

    middle = median(sizes.values()) if sizes else None
    out = [name for name in effects if name not in sizes]
    why = f"no finite numbers: {', '.join(out)}" if out else None if sizes else "there are no effects"
    return Materiality(
        median_effect=middle,
        largest_effect=max(sizes.values(), default=None),
        range=span,
        widths=widths,
        enough=dict.fromkeys(methods) if middle is None else from_on(middle),
        effects={
            name: EffectMagnitude(size, size / span if span else None, from_on(size)) for name, size in sizes.items()
        },
        why=why,
        own=own,
    )


def _widths(studies: Sequence[Sequence[StudiedSize]]) -> tuple[MedianWidth, ...]:
    """The widths by method and n, for the sample sizes for which every study has intervals."""
    widths: dict[tuple[str, int], list[float]] = {}
    for each in (each for study in studies for each in study):
        if (middle := each.width_quartiles[1]) is not None:
            widths.setdefault((each.method, each.n), []).append(middle)
    full = {key: width for key, width in widths.items() if len(width) == len(studies)}
    methods = list(dict.fromkeys(method for method, _ in full))
    ordered = sorted(full, key=lambda key: (methods.index(key[0]), key[1]))
    return tuple(MedianWidth(method, n, median(full[method, n])) for method, n in ordered)


def _first(widths: Sequence[MedianWidth], magnitude: float) -> int | None:
    """The smallest n such that the median widths at this n and at all larger ones are below the magnitude."""
    first = None
    for each in reversed(widths):
        if not each.median_width < magnitude:
            break
        first = each.n
    return first
