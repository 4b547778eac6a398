"""The analysis of a screening experiment.

The method is that of D. Flater, NIST Technical Note 1855 (2014), sections 4.6 and 4.7; docs/screen-analysis.md has
every key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from math import isfinite, nan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis import effects, filters, plots, samples, verdict
from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import (
    AdjustedSize,
    DesignResult,
    EffectResult,
    FilterResult,
    ResponseResult,
    SampleResult,
    ScreenResult,
    TreatmentResult,
)
from cbench.screen.data.data import Data, Filter, ResponseSeries, Values
from cbench.screen.stats.block_tests import blocked
from cbench.stats import multiple_testing
from cbench.stats.etalon import FIRST_ALPHA

Progress = Callable[[str], None]
Intervals = Callable[[ResponseSeries, NDArray[np.bool_]], tuple[SampleResult, ...]]
"""Of the treatments of a response that are kept."""
T = TypeVar("T")
E = TypeVar("E", bound=EffectResult)


@np.errstate(over="ignore", invalid="ignore")
def analyse(data: Data, options: ScreenOptions, progress: Progress = lambda words: None) -> ScreenResult:
    """The whole result; numbers that are not known are None. Raises UsageError for a filter that does not exist."""
    alpha = data.alpha if options.alpha is None else options.alpha
    confidence = data.confidence if options.confidence is None else options.confidence
    seed = data.seed if options.seed is None else options.seed
    chosen = filters.chosen(data, options)
    treatments = int(chosen.keep.sum())
    first_alpha = min(FIRST_ALPHA, alpha / (treatments * len(data.series)))
    responses: dict[str, ResponseResult] = {}
    slices: dict[str, ResponseSlice] = {}
    deltas = samples.tolerances([each.kept(chosen.keep) for each in data.series], confidence)
    for series, delta in zip(data.series, deltas, strict=True):
        progress(series.name)
        intervals = partial(samples.samples, data, confidence, seed, delta, first_alpha)
        responses[series.name], part = _response(data, series, chosen, alpha, intervals, options.exclude)
        if part is not None:
            slices[series.name] = part
    responses = _decide(responses, alpha)
    most = min(3, max(1, samples.MOST_STUDIED // max(len(slices), 1)))
    for name, part in slices.items():
        progress(f"{name}: samples of other sizes")
        row, numbers = responses[name], part.numbers.tolist()
        studies = samples.studies(data, part.series, numbers, confidence, seed, options.subsamples, most)
        material = samples.material(_material_effects(row), row.treatments, studies)
        responses[name] = replace(row, studies=studies, material=material)
    every = [each for row in responses.values() for _, each in row.every_effect]
    result = finite_only(
        ScreenResult(
            factors_matter=any(each.significant for each in every),
            alpha=alpha,
            confidence=confidence,
            seed=seed,
            filter=FilterResult(chosen.name, chosen.words, treatments),
            correction=multiple_testing.HOLM,
            design=_design(data, chosen),
            responses=responses,
            tests=sum(each.p is not None for each in every),
        )
    )
    return replace(result, verdict=tuple(verdict.verdict(result)))


def _design(data: Data, chosen: Filter) -> DesignResult:
    known = filters.every_filter(data)
    if chosen.name not in [each.name for each in known]:
        known.append(chosen)
    blocks = [np.unique(np.stack([each.batch, each.iteration]), axis=1).shape[1] for each in data.series]
    return DesignResult(
        name=data.name,
        factors=data.factors,
        treatments=tuple(
            TreatmentResult(
                number=number,
                name=data.label(number),
                levels={factor.name: factor.levels[level] for factor, level in zip(data.factors, levels, strict=True)},
                questionable=data.questionable.get(number),
                kept=bool(chosen.keep[number]),
            )
            for number, levels in enumerate(data.treatments)
        ),
        excluded=data.excluded,
        batches=data.batches,
        iterations=max(blocks, default=0),
        sets=tuple(filters.treatment_set(data, each, filters.judged(data, each.keep)) for each in known),
        warnings=data.warnings,
    )


def _response(
    data: Data, series: ResponseSeries, chosen: Filter, alpha: float, intervals: Intervals, exclude: bool
) -> tuple[ResponseResult, ResponseSlice | None]:
    """One response with the filter's treatments; no slice where it has no values."""
    many = len(data.treatments)
    whole = samples.means(series, many)
    keep = chosen.keep & ~np.isin(np.arange(many), list(series.unobtainable))
    kept = series.kept(keep)
    means = np.where(keep, whole, nan)
    result = ResponseResult(
        workload=series.workload,
        response=series.response,
        unit=series.unit,
        better=series.better,
        n=int((~np.isnan(kept.value)).sum()),
        failed=int(np.isnan(kept.value).sum()),
        unobtainable=tuple(data.label(number) for number in sorted(series.unobtainable)),
        missing=tuple(data.label(number) for number in np.flatnonzero(keep & np.isnan(means)).tolist()),
        treatments=intervals(kept, keep),
        sets=_effects_by_filter(data, series, whole),
        why="it has no values",
    )
    judged = filters.judged(data, keep & ~np.isnan(means))
    if judged is None:
        return result, None
    part = effects.part(data, kept, means, alpha, judged)
    return _with_effects(replace(result, why=None), part, exclude), part


def _effects_by_filter(data: Data, series: ResponseSeries, means: Values) -> dict[str, dict[str, AdjustedSize]]:
    """The main effects that each filter would give: name of the filter, name of the factor."""
    sizes = {}
    for each in filters.every_filter(data):
        left = np.where(each.keep, means, nan)
        judged = filters.judged(data, ~np.isnan(left))
        if judged is not None:
            sizes[each.name] = {
                name: AdjustedSize(
                    effect=main.effect, signed=main.signed, testable=main.testable, adjusted=main.adjusted
                )
                for name, main in effects.effects(effects.part(data, series, left, 0.5, judged)).items()
            }
    return sizes


def _with_effects(result: ResponseResult, part: ResponseSlice, exclude: bool) -> ResponseResult:
    """With the effects, each beside its test, or why there is none."""
    split, rows = plots.whole_plots(part)
    ranked = blocked(part.levels, effects.matrix(part), part.hard)
    tests = {**ranked.effects, **plots.plot_tests(rows, ranked.effects, part)}
    reasons = {**ranked.untested, **plots.untested(split, rows)}
    numbers = {name: number for number, name in enumerate(part.names)}

    def with_test(each: E, *names: str) -> E:
        factors = tuple(numbers[name] for name in names)
        if (test := tests.get(factors)) is not None:
            return replace(each, test=test, p=test.p)
        return replace(each, why=each.why or reasons.get(factors) or "there are too few values to test it")

    return replace(
        result,
        effects={name: with_test(each, name) for name, each in effects.effects(part).items()},
        interactions=tuple(with_test(each, *each.factors) for each in effects.interactions(part)),
        blocks=effects.block_plots(part, exclude),
        split_plot=split,
        boots=plots.boots(part),
        blocks_used=ranked.blocks,
        blocks_dropped=ranked.dropped,
    )


def _decide(responses: Mapping[str, ResponseResult], alpha: float) -> dict[str, ResponseResult]:
    """One family: all effects of all responses, by Holm."""
    p = [nan if each.p is None else each.p for row in responses.values() for _, each in row.every_effect]
    adjusted = iter(multiple_testing.adjusted(p, multiple_testing.HOLM).tolist() if p else [])

    def decided(each: E) -> E:
        value = float(next(adjusted))
        return each if each.p is None else replace(each, p_adjusted=value, significant=value < alpha)

    return {
        name: replace(
            row,
            effects={factor: decided(each) for factor, each in row.effects.items()},
            interactions=tuple(decided(each) for each in row.interactions),
        )
        for name, row in responses.items()
    }


def _material_effects(row: ResponseResult) -> dict[str, float]:
    """Main effects that can be told from all others; 0 where all values are one, whatever rounding makes of it."""
    testable = {name: each for name, each in row.effects.items() if each.testable and each.effect is not None}
    known = [each for each in row.treatments if each.min is not None and each.max is not None]
    values: Sequence[float] = [end for each in known for end in (each.min or 0.0, each.max or 0.0)]
    if values and min(values) == max(values):
        return dict.fromkeys(testable, 0.0)
    return {name: each.fair for name, each in testable.items()}


def finite_only(value: T) -> T:
    """The same with None in place of numbers that are none."""
    converted: Any = value
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: finite_only(getattr(value, each.name)) for each in fields(value)}
        converted = type(value)(**changed)
    elif isinstance(value, Mapping):
        converted = {key: finite_only(each) for key, each in value.items()}
    elif isinstance(value, (list, tuple)):
        converted = tuple(finite_only(each) for each in value)
    elif isinstance(value, float) and not isfinite(value):
        converted = None
    result: T = converted
    return result
