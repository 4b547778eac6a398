"""Analyze a screening experiment.

The method is that of D. Flater, NIST Technical Note 1855 (2014), sections 4.6 and 4.7. docs/screen-analysis.md
explains every key of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from math import isfinite, isnan, nan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis import effects, filters, hosts, intervals, plots, samples, tests_of, verdict
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
from cbench.screen.design.testability import Assessment
from cbench.screen.stats.resolution import coarse
from cbench.stats import multiple_testing
from cbench.stats.etalon import FIRST_ALPHA

Progress = Callable[[str], None]
Intervals = Callable[[ResponseSeries, NDArray[np.bool_]], tuple[SampleResult, ...]]
"""A function that returns the sample results of a response's kept treatments."""
T = TypeVar("T")
E = TypeVar("E", bound=EffectResult)


@np.errstate(over="ignore", invalid="ignore")
def analyse(data: Data, options: ScreenOptions, progress: Progress = lambda words: None) -> ScreenResult:
    """Analyze a screen; unknown numbers in the result are None. Raises UsageError for an unusable filter."""
    alpha = data.alpha if options.alpha is None else options.alpha
    confidence = data.confidence if options.confidence is None else options.confidence
    seed = data.seed % 2**63 if options.seed is None else options.seed  # a file may have a negative seed
    chosen = filters.chosen(data, options)
    treatments = int(chosen.keep.sum())
    first_alpha = min(FIRST_ALPHA, alpha / (treatments * len(data.series)))
    responses: dict[str, ResponseResult] = {}
    slices: dict[str, ResponseSlice] = {}
    means = [samples.means(each, len(data.treatments)) for each in data.series]
    judged = [_judged(data, *each, chosen) for each in zip(data.series, means, strict=True)]
    tests = sum(effect.ok for each in judged if each for effect in each.effects)
    deltas = samples.tolerances([each.kept(chosen.keep) for each in data.series], confidence)
    for series, whole, assessed, delta in zip(data.series, means, judged, deltas, strict=True):
        progress(series.name)
        sampled = partial(samples.samples, data, confidence, seed, delta, first_alpha)
        keep = _kept(data, series, chosen)
        row = _response(data, series, keep, whole, sampled)
        if assessed is not None:
            part = effects.part(data, series.kept(keep), np.where(keep, whole, nan), alpha, assessed)
            made = tests_of.tests_of(part, tests, confidence)
            row = _with_effects(replace(row, why=None), part, made, confidence, options.exclude)
            row = _with_applied(row, chosen.name)
            if data.hosts:
                row = replace(row, hosts=hosts.of_response(part, confidence))
            slices[series.name] = part
        responses[series.name] = row
    responses = hosts.decided(data, _decide(responses, alpha), alpha)
    most = min(3, max(1, samples.MOST_STUDIED // max(len(slices), 1)))
    for name, part in slices.items():
        progress(f"{name}: samples of different sizes")
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
            hosts=hosts.of_screen(data, responses),
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
        randomised=data.randomised,
        columns=dict(data.columns),
        iterations_left=data.iterations_left,
    )


def _kept(data: Data, series: ResponseSeries, chosen: Filter) -> NDArray[np.bool_]:
    """Flags for the treatments that the filter keeps and for which the response can be measured."""
    return chosen.keep & ~np.isin(np.arange(len(data.treatments)), list(series.unobtainable))


def _judged(data: Data, series: ResponseSeries, means: Values, chosen: Filter) -> Assessment | None:
    return filters.judged(data, _kept(data, series, chosen) & ~np.isnan(means))


def _response(
    data: Data, series: ResponseSeries, keep: NDArray[np.bool_], whole: Values, sampled: Intervals
) -> ResponseResult:
    """The result of one response, for the filter's treatments and still without effects."""
    kept = series.kept(keep)
    return ResponseResult(
        workload=series.workload,
        response=series.response,
        unit=series.unit,
        better=series.better,
        n=int((~np.isnan(kept.value)).sum()),
        failed=int(np.isnan(kept.value).sum()),
        unobtainable=tuple(data.label(number) for number in sorted(series.unobtainable)),
        missing=tuple(data.label(number) for number in np.flatnonzero(keep & np.isnan(whole)).tolist()),
        treatments=sampled(kept, keep),
        sets=_effects_by_filter(data, series, whole),
        why="the response has no values",
    )


def _effects_by_filter(data: Data, series: ResponseSeries, means: Values) -> dict[str, dict[str, AdjustedSize]]:
    """The main effects that each filter would give, by the names of the filter and the factor."""
    sizes = {}
    for each in filters.every_filter(data):
        left = np.where(each.keep, means, nan)
        judged = filters.judged(data, ~np.isnan(left))
        if judged is not None:
            sizes[each.name] = {
                name: AdjustedSize(
                    effect=main.effect,
                    signed=main.signed,
                    testable=main.testable,
                    adjusted=main.adjusted,
                    means_adjusted=main.means_adjusted,
                )
                for name, main in effects.effects(effects.part(data, series, left, 0.5, judged)).items()
            }
    return sizes


def _with_applied(row: ResponseResult, name: str) -> ResponseResult:
    """The response, in which the applied filter has the estimates of the tests."""
    if name not in row.sets:
        return row
    sizes = {factor: replace(size, adjusted=row.effects[factor].adjusted) for factor, size in row.sets[name].items()}
    return replace(row, sets={**row.sets, name: sizes})


def _with_effects(
    result: ResponseResult, part: ResponseSlice, made: tests_of.ResponseTests, confidence: float, exclude: bool
) -> ResponseResult:
    """The response with its effects, each with its test or with the reason why it is not tested."""
    numbers = {name: number for number, name in enumerate(part.names)}
    mean, largest = float(part.means.mean()), float(np.abs(part.means).max())
    margin = made.lenth.margin if made.lenth else None

    def sized(each: E) -> E:
        each = effects.with_estimate(each, largest)
        percent = None if each.effect is None or not mean else 100 * each.fair / abs(mean)
        return replace(each, percent=percent, interval=intervals.of_effect(each, confidence, margin))

    def with_test(each: E, *names: str) -> E:
        factors = tuple(numbers[name] for name in names)
        if (test := made.effects.get(factors)) is not None:
            return sized(replace(each, test=test, p=test.p))
        return sized(replace(each, why=each.why or made.untested.get(factors) or "there are too few values to test it"))

    mains = {
        name: intervals.with_levels(with_test(each, name), confidence) for name, each in effects.effects(part).items()
    }
    return replace(
        result,
        effects=mains,
        interactions=tuple(with_test(each, *each.factors) for each in effects.interactions(part)),
        contrasts=tuple(sized(each) for each in made.contrasts),
        lenth=made.lenth,
        anova=made.anova.rows if made.anova else (),
        anova_error=made.anova.error if made.anova else "",
        blocks=effects.block_plots(part, exclude),
        split_plot=made.split,
        boots=plots.boots(part),
        blocks_used=made.ranked.blocks,
        blocks_dropped=made.ranked.dropped,
        blocks_partial=made.ranked.partial,
        coarse=coarse([part.series.of(number) for number in part.numbers.tolist()]),
    )


def _decide(responses: Mapping[str, ResponseResult], alpha: float) -> dict[str, ResponseResult]:
    """Decide which effects are significant, at one error rate for all effects of all responses (Holm). The contrasts of
    a response without replicates are a separate family, because they are judged against each other; each family has an
    equal share of alpha.
    """
    every = [each for row in responses.values() for _, each in row.every_effect]
    p = [nan if each.test is None or each.test.p_family is not None else each.test.p for each in every]
    families = sum(row.lenth is not None for row in responses.values()) + any(not isnan(each) for each in p)
    adjusted = iter(multiple_testing.adjusted(p, multiple_testing.HOLM).tolist() if p else [])

    def decided(each: E) -> E:
        value = float(next(adjusted))
        if each.test is None:
            return each
        value = min(1.0, families * (value if each.test.p_family is None else each.test.p_family))
        return replace(each, p_adjusted=value, significant=value < alpha)

    return {
        name: replace(
            row,
            effects={factor: decided(each) for factor, each in row.effects.items()},
            interactions=tuple(decided(each) for each in row.interactions),
            contrasts=tuple(decided(each) for each in row.contrasts),
        )
        for name, row in responses.items()
    }


def _material_effects(row: ResponseResult) -> dict[str, float]:
    """The main effects that are not aliased, by factor name. If all values are equal, each effect is exactly 0, without
    rounding error.
    """
    testable = {name: each for name, each in row.effects.items() if each.testable and each.effect is not None}
    known = [each for each in row.treatments if each.min is not None and each.max is not None]
    values: Sequence[float] = [end for each in known for end in (each.min or 0.0, each.max or 0.0)]
    if values and min(values) == max(values):
        return dict.fromkeys(testable, 0.0)
    return {name: each.fair for name, each in testable.items()}


def finite_only(value: T) -> T:
    """The result with None instead of NaN and infinity."""
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
