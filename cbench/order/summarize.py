"""From the arrays of an analysis to its result: names for numbers, corrected p-values, the verdict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import isfinite, nan
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cbench.order import verdict
from cbench.order.result import (
    IntervalRule,
    LabelMedian,
    LabelTest,
    OrderDesign,
    OrderResult,
    OrderTest,
    PowerRule,
    PredecessorEffect,
)
from cbench.order.stats import median_ci, pairwise, power
from cbench.order.stats.analysis import Analysis, SeriesResult
from cbench.order.stats.within_run_effects import Grouped
from cbench.report.text import counted
from cbench.stats import multiple_testing
from cbench.stats.distributions import chi2_sf
from cbench.stats.trials import START, Trials

POWER = 0.8
NAMED_PAIRS = 1000
MOST_PAIRS = 20_000
"""Of more pairs of tests only so many are named, those with the smallest p-values first."""
MOST_GROUPS, NAMED_GROUPS = 200, 20
"""Of more positions or predecessors of a test only so many, those with the most trials."""

AnyResult = TypeVar("AnyResult")


@dataclass(frozen=True, slots=True)
class MetricMeaning:
    """What a study's file says of a metric: its unit, and whether lower or higher is better."""

    unit: str
    better: str


@np.errstate(over="ignore", invalid="ignore")
def summarize(
    trials: Trials,
    analysis: Analysis,
    warnings: Sequence[str],
    delta: float,
    meaning: Mapping[str, MetricMeaning] | None = None,
) -> OrderResult:
    """The whole result. `delta`: the shift in % for which runs are counted; `meaning`: of metrics by their names."""
    rules, meaning = analysis.rules, meaning or {}
    tested = sum(result.test is not None for result in analysis.results)
    corrected, published = rules.alpha / max(tested, 1), rules.published
    inside, order_matters = _within(analysis)
    level_of_test = rules.alpha if published else corrected
    tests = {
        result.name: _test(trials, analysis, result, level_of_test, delta, yes, meaning.get(result.name))
        for result, yes in zip(analysis.results, inside, strict=True)
    }
    outcome = OrderResult(
        order_matters=order_matters,
        alpha=rules.alpha,
        alpha_bonferroni=corrected,
        correction=rules.correction,
        intervals=IntervalRule(
            *(("published", analysis.level, "tool") if published else ("exact", analysis.level, "algorithm"))
        ),
        null="chi2" if published else "permutation",
        failures="published" if published else rules.failures,
        design=_design(analysis, (*warnings, *_blocked(analysis), *verdict.not_compared(tests))),
        tests=tests,
        power=PowerRule(delta, POWER),
        predecessors=_predecessors(trials, analysis),
        across=_across(trials, analysis),
    )
    if _extreme(trials):
        outcome = _finite(outcome)
    return replace(outcome, verdict=tuple(verdict.verdict(outcome)))


def _within(analysis: Analysis) -> tuple[list[tuple[bool, bool, bool]], bool]:
    """For each series whether position, predecessor and drift are significant; and whether the order matters at all."""
    correction, alpha = analysis.rules.correction, analysis.rules.alpha
    p = {
        "position": [nan if each.position is None else each.position.test.p for each in analysis.results],
        "predecessor": [nan if each.predecessor is None else each.predecessor.test.p for each in analysis.results],
        "drift": [nan if each.drift is None else each.drift.p for each in analysis.results],
    }
    passed = {name: multiple_testing.significant(values, alpha, correction) for name, values in p.items()}
    order_matters = analysis.order_matters
    if not any(result.fixed.values.size or result.fixed.failed for result in analysis.results):
        # Nothing to compare with: whether the order matters is what position and predecessor say, one family.
        together = multiple_testing.significant([*p["position"], *p["predecessor"]], alpha, correction)
        passed["position"], passed["predecessor"] = together[: len(analysis.results)], together[len(analysis.results) :]
        order_matters = bool(together.any())
    return list(zip(*(each.tolist() for each in passed.values()), strict=True)), order_matters


def _extreme(trials: Trials) -> bool:
    """Whether there are values whose squares or shares may be no finite numbers."""
    size = np.abs(trials.value[trials.value != 0])
    return bool((size > 1e150).any() or (size < 1e-150).any())


def _finite(value: AnyResult) -> AnyResult:
    """The same with None in place of numbers that are none."""
    cleaned: object = value
    if is_dataclass(value) and not isinstance(value, type):
        cleaned = replace(value, **{each.name: _finite(getattr(value, each.name)) for each in fields(value)})
    elif isinstance(value, Mapping):
        cleaned = {key: _finite(each) for key, each in value.items()}
    elif isinstance(value, tuple):
        cleaned = tuple(_finite(each) for each in value)
    elif isinstance(value, float):
        cleaned = _known(value)
    return cast("AnyResult", cleaned)


def _design(analysis: Analysis, warnings: tuple[str, ...]) -> OrderDesign:
    """How the runs lay in time."""
    runs = analysis.sequence
    if runs is None:
        return OrderDesign(None, warnings)
    return OrderDesign(runs.interleaved, warnings, runs.fixed, runs.random, runs.stretches, runs.p_few)


def _blocked(analysis: Analysis) -> list[str]:
    runs = analysis.sequence
    if runs is None or not runs.fixed or not runs.random or runs.interleaved:
        return []
    return [
        f"blocked in time: {runs.fixed:,} fixed and {counted(runs.random, 'random run')} in {runs.stretches:,} "
        "stretches; what changed with time cannot be told from what the order does"
    ]


def _predecessors(trials: Trials, analysis: Analysis) -> tuple[PredecessorEffect, ...]:
    """Each test after each other one in the random runs, against the rest of its trials; p-values by Holm over all.

    Of more than MOST_PAIRS only the NAMED_PAIRS with the smallest p-values.
    """
    rows = [(result.name, result.predecessor) for result in analysis.results if result.predecessor is not None]
    if not rows:
        return ()
    h = np.concatenate([after.h for _, after in rows])
    starts = np.concatenate([[0], np.cumsum([after.h.size for _, after in rows])])
    foremost = np.argsort(-h, kind="stable")[: h.size if h.size <= MOST_PAIRS else NAMED_PAIRS]
    ranked = multiple_testing.holm_of_smallest([chi2_sf(each, 1) for each in h[foremost].tolist()], h.size)
    holm = dict(zip(foremost.tolist(), ranked.tolist(), strict=True))
    named = np.sort(foremost)
    effects = []
    for number, row in zip(named.tolist(), (np.searchsorted(starts, named, side="right") - 1).tolist(), strict=True):
        name, after = rows[row]
        each = after[number - int(starts[row])]
        label, p = int(after.labels[number - int(starts[row])]), holm[number]
        numbers = (each.n, each.median, each.median_others, each.delta_pct, each.p)
        effects.append(PredecessorEffect(name, _name_of(trials, label), *numbers, p, p < analysis.rules.alpha))
    return tuple(effects)


def _name_of(trials: Trials, label: int) -> str | None:
    """A predecessor's name; None for the beginning of a run."""
    return None if label == START else trials.test_names[label]


def _test(
    trials: Trials,
    analysis: Analysis,
    result: SeriesResult,
    alpha: float,
    delta: float,
    within: tuple[bool, bool, bool],
    meaning: MetricMeaning | None,
) -> OrderTest:
    published, level = analysis.rules.published, analysis.level
    fixed, random = (part.interval(level, published) for part in (result.fixed, result.random))
    apart = power.spread(result.fixed.values, result.random.values)
    each_order = min(result.fixed.values.size, result.random.values.size)
    seen = power.detectable(apart, each_order, alpha, POWER)
    alike = _alike(result)
    unknown = alike or max(result.fixed.values.size, result.random.values.size) < 2  # nothing says how they vary
    test, position, before, drift = result.test, result.position, result.predecessor, result.drift
    return OrderTest(
        n_fixed=result.fixed.values.size,
        n_random=result.random.values.size,
        failed_fixed=result.fixed.failed,
        failed_random=result.random.failed,
        h=None if test is None else test.h,
        p=None if test is None else test.p,
        p_permutation=result.p_permutation,
        p_adjusted=result.p_adjusted,
        significant=result.significant,
        eta2=None if test is None else test.eta2,
        epsilon2=None if test is None else test.epsilon2,
        delta_pct_mean=result.delta_mean,
        delta_pct_median=result.delta_median,
        mean_fixed=_known(result.fixed.mean),
        mean_random=_known(result.random.mean),
        median_fixed=_known(result.fixed.median),
        median_random=_known(result.random.median),
        cov_fixed=_known(result.fixed.deviation / result.fixed.mean) if result.fixed.mean else None,
        cov_random=_known(result.random.deviation / result.random.mean) if result.random.mean else None,
        ci_fixed=None if fixed is None else (fixed.low, fixed.high),
        ci_random=None if random is None else (random.low, random.high),
        ci_needs=_needs(result, level, published),
        case=None if fixed is None or random is None else median_ci.case(fixed, random, published),
        gap=None if fixed is None or random is None else median_ci.gap(fixed, random),
        position_p=None if position is None else position.test.p,
        position=None if position is None else _grouped(position, int),
        predecessor_p=None if before is None else before.test.p,
        predecessor=None if before is None else _grouped(before, lambda label: _name_of(trials, label)),
        first_trial=result.first,
        drift_p=None if drift is None else drift.p,
        drift_rho=None if drift is None else drift.rho,
        alike=alike,
        runs_needed=None if unknown else power.runs_needed(apart, delta / 100, alpha, POWER),
        detectable_pct=None if unknown or seen is None else 100 * seen,
        position_significant=within[0],
        predecessor_significant=within[1],
        drift_significant=within[2],
        unit=None if meaning is None else meaning.unit,
        better=None if meaning is None else meaning.better,
    )


def _alike(result: SeriesResult) -> bool:
    """Whether all values of both orders are one."""
    ends = [part.values[at] for part in (result.fixed, result.random) if part.values.size for at in (0, -1)]
    return bool(ends) and bool(min(ends) == max(ends))


def _needs(result: SeriesResult, level: float, published: bool) -> int | None:
    """How many results an interval takes, where there are some in an order, but too few."""
    sizes = [part.values.size for part in (result.fixed, result.random) if part.values.size]
    if all(median_ci.ranks(size, level, published) for size in sizes):
        return None
    return next(n for n in itertools.count(2) if median_ci.ranks(n, level, published))


def _grouped(grouped: Grouped, named: Callable[[int], int | str | None]) -> LabelTest:
    shown = slice(None) if grouped.labels.size <= MOST_GROUPS else np.sort(_largest(grouped.sizes))
    groups = zip(*(each[shown].tolist() for each in (grouped.labels, grouped.sizes, grouped.medians)), strict=True)
    medians = tuple(LabelMedian(named(label), n, median) for label, n, median in groups)
    return LabelTest(grouped.test.h, grouped.doubtful, grouped.labels.size, medians)


def _largest(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.argsort(-sizes, kind="stable")[:NAMED_GROUPS]


def _across(trials: Trials, analysis: Analysis) -> pairwise.OrderComparison:
    """Pairs of tests with one metric."""
    bounds = []
    for samples in ([result.fixed for result in analysis.results], [result.random for result in analysis.results]):
        intervals = [sample.interval(analysis.level, analysis.rules.published) for sample in samples]
        lows = [nan if each is None else each.low for each in intervals]
        bounds.append((lows, [nan if each is None else each.high for each in intervals]))
    groups: dict[str, list[int]] = {}
    for number in range(len(trials.names)):
        groups.setdefault(trials.metrics[number] if trials.metrics else "", []).append(number)
    return pairwise.across(trials.names, bounds[0], bounds[1], list(groups.values()), NAMED_PAIRS)


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
