"""Summarize one metric of one test of a study: effect sizes, p-values, intervals and the required number of runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from statistics import harmonic_mean

import numpy as np
from numpy.typing import NDArray

from cbench.order.predecessors import name_of
from cbench.order.result import LabelMedian, LabelTest, OrderTest
from cbench.order.stats import median_ci, power
from cbench.order.stats.analysis import Analysis, SeriesResult, deciding_p
from cbench.order.stats.pair_changes import PairChanges, pair_changes
from cbench.order.stats.within_run_effects import Grouped
from cbench.stats import median_ranks
from cbench.stats.trials import Trials

POWER = 0.8
TIMES = ("second", "s", "ms", "us", "ns")
MOST_GROUPS, NAMED_GROUPS = 200, 20
"""A report includes all positions or predecessors of a test if there are at most MOST_GROUPS, otherwise the
NAMED_GROUPS with the most trials.
"""


@dataclass(frozen=True, slots=True)
class MetricMeaning:
    """A metric in a study's file: its unit, and whether lower or higher is better."""

    unit: str
    better: str

    @property
    def is_time(self) -> bool:
        """Whether the metric is a time, so that a larger value is slower."""
        return self.better == "lower" and self.unit in TIMES


def summary_of(
    trials: Trials,
    analysis: Analysis,
    result: SeriesResult,
    alpha: float,
    delta: float,
    within: tuple[bool, bool, bool, bool],
    meaning: MetricMeaning | None,
) -> OrderTest:
    """The summary of one series. `alpha`: the level of this one test, for the required runs and the detectable shift;
    `delta`: the shift in % for which the required runs are computed; `within`: whether the effects of position,
    predecessor, drift and spread are significant; `meaning`: None if unknown.
    """
    published, level = analysis.rules.published, analysis.level
    fixed, random = (part.interval(level, published) for part in (result.fixed, result.random))
    pairs = result.signed_ranks is not None
    apart = power.spread(result.fixed.values, result.random.values) if result.away is None else power.walsh(result.away)
    sizes = result.fixed.values.size, result.random.values.size
    each_order = harmonic_mean(sizes) if result.away is None else result.away.size
    seen = power.detectable(apart, each_order, alpha, POWER, pairs)
    alike = _alike(result)
    # the variation is unknown, or there is only one order (on each host)
    unknown = alike or max(sizes) < 2 or result.test is None
    test, position, before, drift = result.test, result.position, result.predecessor, result.drift
    shift = result.shift
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
        mean_fixed=known(result.fixed.mean),
        mean_random=known(result.random.mean),
        median_fixed=known(result.fixed.median),
        median_random=known(result.random.median),
        cov_fixed=known(result.fixed.deviation / result.fixed.mean) if result.fixed.mean else None,
        cov_random=known(result.random.deviation / result.random.mean) if result.random.mean else None,
        ci_fixed=None if fixed is None else (fixed.low, fixed.high),
        ci_random=None if random is None else (random.low, random.high),
        ci_needs=_needs(result, level, published),
        case=None if test is None or fixed is None or random is None else median_ci.case(fixed, random, published),
        gap=None if test is None or fixed is None or random is None else median_ci.gap(fixed, random),
        position_p=None if position is None else position.test.p,
        position=None if position is None else _grouped(position, int),
        predecessor_p=None if before is None else before.test.p,
        predecessor=None if before is None else _grouped(before, lambda label: name_of(trials, label)),
        first_trial=result.first,
        drift_p=None if drift is None else drift.p,
        drift_rho=None if drift is None else drift.rho,
        alike=alike,
        runs_needed=None if unknown else power.runs_needed(apart, delta / 100, alpha, POWER, pairs),
        detectable_pct=None if unknown or seen is None else 100 * seen,
        position_significant=within[0],
        predecessor_significant=within[1],
        drift_significant=within[2],
        p_brunner_munzel=result.p_brunner_munzel,
        p_paired=None if result.signed_ranks is None else result.signed_ranks.p,
        pairs=None if result.signed_ranks is None else result.signed_ranks.pairs,
        p_decides=deciding_p(result, analysis.rules),
        delta_pct_hl=None if shift is None else shift.delta_pct,
        delta_pct_interval=None
        if shift is None or shift.low is None or shift.high is None
        else (shift.low, shift.high),
        p_spread=result.p_spread,
        spread_ratio=result.spread_ratio,
        spread_significant=within[3],
        unit=None if meaning is None else meaning.unit,
        better=None if meaning is None else meaning.better,
        hosts=result.hosts,
        without_partner=result.fixed.unpaired + result.random.unpaired,
        pair_changes=_pair_changes(result),
    )


def _alike(result: SeriesResult) -> bool:
    """Whether all values of both orders are equal."""
    ends = [part.values[at] for part in (result.fixed, result.random) if part.values.size for at in (0, -1)]
    return bool(ends) and bool(min(ends) == max(ends))


def _pair_changes(result: SeriesResult) -> PairChanges | None:
    if result.away is None or not result.away.size or result.shift is None:
        return None
    ratio = bool(result.fixed.values[0] > 0 and result.random.values[0] > 0)
    return pair_changes(result.away, ratio, result.shift.delta_pct)


def _needs(result: SeriesResult, level: float, published: bool) -> int | None:
    """The number of results that an interval requires; None unless an order has results, but too few."""
    sizes = [part.values.size for part in (result.fixed, result.random) if part.values.size]
    if all(median_ranks.ranks(size, level, published) for size in sizes):
        return None
    return next(n for n in itertools.count(2) if median_ranks.ranks(n, level, published))


def _grouped(grouped: Grouped, named: Callable[[int], int | str | None]) -> LabelTest:
    shown = slice(None) if grouped.labels.size <= MOST_GROUPS else np.sort(_largest(grouped.sizes))
    groups = zip(*(each[shown].tolist() for each in (grouped.labels, grouped.sizes, grouped.medians)), strict=True)
    medians = tuple(LabelMedian(named(label), n, median) for label, n, median in groups)
    return LabelTest(grouped.test.h, grouped.doubtful, grouped.labels.size, medians)


def _largest(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.argsort(-sizes, kind="stable")[:NAMED_GROUPS]


def known(value: float) -> float | None:
    """The value; None if it is NaN or infinite."""
    return value if isfinite(value) else None
