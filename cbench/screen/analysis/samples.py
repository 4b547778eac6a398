"""Analyze each treatment individually: its mean with intervals, its first run, and intervals at other sample sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.host_results import Ends
from cbench.screen.analysis.result import FirstRunResult, NoMateriality, SampleResult, StudyResult
from cbench.screen.data.data import Data, ResponseSeries, Values
from cbench.screen.stats.adaptive import adaptive_bca
from cbench.screen.stats.practical_significance import Materiality, OwnWidths, materiality, subsampling
from cbench.stats.bca import MOST_EXACT, bca_exact
from cbench.stats.etalon import FirstRun, first_run
from cbench.stats.interval import MID, STRICT, deviation, t_interval

PIXELS = 200
"""The height in pixels of a panel in the plot of means; one pixel is the tolerance for the ends of intervals."""
MOST_STUDIED = 6
SMALLEST_POPULATION = 20
"""The fewest values of a treatment that can serve as the population of a subsampling study."""
SIZES = (5, 10, 20, 40, 80, 160, 320, 640)
REPLICATES = 1000
"""The number of bootstrap replicates for each sample in the study of intervals."""


def means(series: ResponseSeries, treatments: int) -> Values:
    """The mean of each treatment; NaN if it has no values. Shape (treatments,)."""
    there = ~np.isnan(series.value)
    codes, value = series.treatment[there], series.value[there]
    counts = np.bincount(codes, minlength=treatments)
    sums = np.bincount(codes, value, minlength=treatments)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / counts, np.nan)


def samples(
    data: Data,
    confidence: float,
    seed: int,
    delta: float,
    first_alpha: float,
    series: ResponseSeries,
    keep: NDArray[np.bool_],
) -> tuple[SampleResult, ...]:
    """One result for each kept treatment for which the response can be measured.

    `delta`: the tolerance within which the ends of intervals must be stable, in the values' unit: a pixel of the plot.
    `first_alpha`: the level of the rule for first runs, for one sample.
    """
    failed = np.bincount(series.treatment[np.isnan(series.value)], minlength=len(data.treatments))
    wanted = [each for each in np.flatnonzero(keep).tolist() if each not in series.unobtainable]
    results = []
    for number in wanted:
        values = series.of(number)
        known = values.size > 0
        plain = t_interval(values, confidence)
        # With few values, use all resamples instead of random draws.
        mid, strict = (
            bca_exact(values, confidence, ties=ties)
            if values.size <= MOST_EXACT
            else adaptive_bca(values, confidence, delta, seed, ties)
            for ties in (MID, STRICT)
        )
        results.append(
            SampleResult(
                treatment=number,
                name=data.label(number),
                questionable=data.questionable.get(number),
                n=int(values.size),
                failed=int(failed[number]),
                mean=float(values.mean()) if known else None,
                sd=deviation(values),
                median=float(np.median(values)) if known else None,
                min=float(values.min()) if known else None,
                max=float(values.max()) if known else None,
                alike=bool(known and values.min() == values.max()),
                bca_mid=mid.ends,
                bca_strict=strict.ends,
                t=plain.ends,
                replicates=mid.replicates,
                why=mid.why or plain.why,
                first_run=_first(first_run(values, first_alpha)),
            )
        )
    return tuple(results)


def tolerances(series: Sequence[ResponseSeries], confidence: float) -> list[float]:
    """The size of a pixel in the plot of means for each response, in its unit; infinite if all values are equal. Panels
    with the same workload and unit share a scale; panels without a unit have separate scales.
    """
    spans: dict[tuple[str, str, str], float] = {}
    keys = [(each.workload, each.unit, "" if each.unit else each.name) for each in series]
    for each, key in zip(series, keys, strict=True):
        values = [each.of(number) for number in np.unique(each.treatment).tolist()]
        ends = [float(mine.mean()) for mine in values if mine.size]
        intervals = [t_interval(mine, confidence) for mine in values]
        ends += [end for interval in intervals for end in (interval.low, interval.high) if end is not None]
        spans[key] = max(spans.get(key, 0.0), max(ends) - min(ends) if ends else 0.0)
    return [spans[key] / PIXELS or inf for key in keys]


def _first(run: FirstRun) -> FirstRunResult | None:
    if run.ratio is None or run.sd is None:
        return None
    return FirstRunResult(run.sd, run.sd_without, run.ratio, run.threshold, run.p, run.flagged)


def studies(
    data: Data, series: ResponseSeries, wanted: Sequence[int], level: float, seed: int, subsamples: int, most: int
) -> tuple[StudyResult, ...]:
    """The subsampling studies of at most `most` treatments, selected evenly from the smallest to the largest spread.
    Returns () if no treatment has SMALLEST_POPULATION values that are not all equal, or if `subsamples` is 0.
    """
    values = {each: series.of(each) for each in wanted}
    able = [each for each in wanted if values[each].size >= SMALLEST_POPULATION and np.ptp(values[each]) > 0]
    if not able or not subsamples:
        return ()
    able.sort(key=lambda each: (deviation(values[each]) or 0.0, each))
    many = min(most, len(able))
    places = [len(able) // 2] if many == 1 else np.linspace(0, len(able) - 1, many).round().astype(int).tolist()
    results = []
    for number in (able[place] for place in places):
        population = values[number]
        sizes = [size for size in SIZES if size <= population.size // 2]
        results.append(
            StudyResult(
                treatment=number,
                name=data.label(number),
                population=population.size,
                mean=float((population / population.size).sum()),
                level=level,
                replace=False,
                replicates=REPLICATES,
                why=None,
                sizes=subsampling(population, sizes, subsamples, level, REPLICATES, seed),
            )
        )
    return tuple(results)


def material(
    effects: Mapping[str, float], rows: Sequence[SampleResult], studied: Sequence[StudyResult]
) -> Materiality | NoMateriality:
    """Compare effects with the ranges of the distributions and with the widths of intervals by sample size."""
    spans = [each.max - each.min for each in rows if each.max is not None and each.min is not None]
    if not effects or not spans:
        return NoMateriality("no main effect can be estimated" if not effects else "no values")
    own = OwnWidths(
        n=int(np.median([each.n for each in rows if each.n])),
        bca=_median_width([each.bca_mid for each in rows]),
        t=_median_width([each.t for each in rows]),
    )
    return materiality(effects, spans, [each.sizes for each in studied], own)


def _median_width(intervals: Sequence[Ends | None]) -> float | None:
    widths = [each[1] - each[0] for each in intervals if each]
    return float(np.median(widths)) if widths else None
