"""From the arrays of an analysis to its result: names for numbers, corrected p-values, the verdict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import isfinite, nan
from typing import Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cbench.machine.passport import UnlikeFact
from cbench.order import claims, verdict
from cbench.order.predecessors import NAMED_PAIRS, carry_over, earlier_effects, name_of, predecessor_effects
from cbench.order.result import (
    ORDERS,
    IntervalRule,
    LabelMedian,
    LabelTest,
    OrderDesign,
    OrderHosts,
    OrderResult,
    OrderTest,
    PowerRule,
    PredecessorEffect,
    SuiteResult,
    UnlikeHost,
)
from cbench.order.stats import median_ci, pairwise, power, relabel
from cbench.order.stats.analysis import Analysis, SeriesResult, deciding_p, dropped, pairs_of
from cbench.order.stats.hosts import HostOrders, aligned
from cbench.order.stats.within_run_effects import Grouped
from cbench.report.text import counted
from cbench.stats import median_ranks, multiple_testing
from cbench.stats.trials import Trials

POWER = 0.8
TIMES = ("second", "s", "ms", "us", "ns")
MOST_GROUPS, NAMED_GROUPS = 200, 20
"""Of more positions or predecessors of a test only so many, those with the most trials."""

AnyResult = TypeVar("AnyResult")


@dataclass(frozen=True, slots=True)
class MetricMeaning:
    """What a study's file says of a metric: its unit, and whether lower or higher is better."""

    unit: str
    better: str

    @property
    def is_time(self) -> bool:
        """Whether more of it is slower."""
        return self.better == "lower" and self.unit in TIMES


@np.errstate(over="ignore", invalid="ignore")
def summarize(
    trials: Trials,
    analysis: Analysis,
    warnings: Sequence[str],
    delta: float,
    meaning: Mapping[str, MetricMeaning] | None = None,
    suite: SuiteResult | None = None,
    passports: Sequence[UnlikeFact] = (),
) -> OrderResult:
    """The whole result. `delta`: the shift in % for which runs are counted; `meaning`: of metrics by their names;
    `suite`: whose runs these are; `passports`: what differs between the hosts."""
    rules, meaning = analysis.rules, meaning or {}
    if not rules.published:
        trials = aligned(trials)
    of_hosts = _hosts(trials, analysis, passports)
    tested = sum(result.test is not None for result in analysis.results)
    corrected, published = rules.alpha / max(tested, 1), rules.published
    effects = _within(analysis)
    after = predecessor_effects(trials, analysis)
    before = () if suite is None else earlier_effects(trials, analysis)
    claimed = _claims(analysis, effects, after, before, meaning if suite else None, of_hosts)
    level_of_test = rules.alpha if published else claimed[0].level / max(tested, 1) if claimed else corrected
    tests = {
        result.name: _test(trials, analysis, result, level_of_test, delta, yes, meaning.get(result.name))
        for result, yes in zip(_releasing(trials, analysis.results), _significant(effects, rules.alpha), strict=True)
    }
    design = _design(trials, analysis, (*warnings, *_blocked(analysis), *verdict.not_compared(tests)))
    outcome = OrderResult(
        order_matters=None if design.blocked and tested else _matters(claimed),
        alpha=rules.alpha,
        alpha_bonferroni=corrected,
        correction=rules.correction,
        intervals=IntervalRule(
            *(("published", analysis.level, "tool") if published else ("exact", analysis.level, "algorithm"))
        ),
        null="chi2" if published else "permutation",
        failures="published" if published else rules.failures,
        design=design,
        tests=tests,
        power=PowerRule(delta, POWER),
        predecessors=after,
        across=_across(trials, analysis),
        claims=claimed,
        suite=None if suite is None else replace(suite, earlier=before, carry_over=carry_over(suite, tests, before)),
        hosts=of_hosts,
    )
    if _extreme(trials):
        outcome = _finite(outcome)
    return replace(outcome, verdict=tuple(verdict.verdict(outcome)))


def _releasing(trials: Trials, results: Sequence[SeriesResult]) -> Iterator[SeriesResult]:
    """All series; the memory of values that are in a file is released now and then."""
    for number, result in enumerate(results):
        yield result
        if number % 20 == 0:
            trials.release()


def _matters(claimed: Sequence[claims.Claim]) -> bool:
    return any(each.named for each in claimed if each.family in claims.OF_ORDER)


def _no_fixed(analysis: Analysis) -> bool:
    return not any(result.fixed.values.size or result.fixed.failed for result in analysis.results)


def _within(analysis: Analysis) -> dict[str, list[float]]:
    """The p-values of each family but the comparison of the orders, corrected within it, for each series.

    Without a fixed order position and predecessor are one family: the study's question.
    """
    correction = analysis.rules.correction
    p = {
        "position": [nan if each.position is None else each.position.test.p for each in analysis.results],
        "predecessor": [nan if each.predecessor is None else each.predecessor.test.p for each in analysis.results],
        "drift": [nan if each.drift is None else each.drift.p for each in analysis.results],
        "spread": [nan if each.p_spread is None else each.p_spread for each in analysis.results],
    }
    if _no_fixed(analysis):
        half = len(analysis.results)
        together = multiple_testing.adjusted([*p["position"], *p["predecessor"]], correction)
        return {
            "position": together[:half].tolist(),
            "predecessor": together[half:].tolist(),
            **{name: multiple_testing.adjusted(p[name], correction).tolist() for name in ("drift", "spread")},
        }
    return {name: multiple_testing.adjusted(values, correction).tolist() for name, values in p.items()}


def _significant(effects: Mapping[str, Sequence[float]], alpha: float) -> list[tuple[bool, bool, bool, bool]]:
    """For each series whether position, predecessor, drift and spread are significant, each family looked at alone."""
    position, predecessor, drift, spread = (effects[name] for name in ("position", "predecessor", "drift", "spread"))
    return [
        (a < alpha, b < alpha, c < alpha, d < alpha)
        for a, b, c, d in zip(position, predecessor, drift, spread, strict=True)
    ]


def _claims(
    analysis: Analysis,
    effects: Mapping[str, Sequence[float]],
    after: Sequence[PredecessorEffect],
    before: Sequence[PredecessorEffect],
    suite: Mapping[str, MetricMeaning] | None,
    of_hosts: OrderHosts | None,
) -> tuple[claims.Claim, ...]:
    """`suite`: what its metrics mean; None for a study of tests."""
    names = [result.name for result in analysis.results]
    rules = analysis.rules
    adjusted = [nan if each.p_adjusted is None else each.p_adjusted for each in analysis.results]
    families: dict[claims.Family, tuple[Sequence[str], Sequence[float]]] = {"orders": (names, adjusted)}
    if rules.published:
        return claims.claimed(families, rules.alpha)
    if _no_fixed(analysis):
        either = np.fmin(effects["position"], effects["predecessor"]).tolist()
        families = {"within": (names, either)}
        if before:  # the question of a suite
            families = {"earlier": _named(before, suite, ""), **families}
    else:
        if before:
            families["earlier"] = _named(before, suite, "")
        families["spread"] = names, effects["spread"]
        families["position"] = names, effects["position"]
    families["predecessor"] = _named(after, suite, "right ")
    families["drift"] = names, effects["drift"]
    if of_hosts is not None:
        p = [nan if (p := _interaction_p(each)) is None else p for each in analysis.results]
        families["interaction"] = names, multiple_testing.adjusted(p, rules.correction).tolist()
        families["unlike"] = (
            [verdict.unlike(each) for each in of_hosts.unlike],
            [each.p_holm for each in of_hosts.unlike],
        )
    return claims.claimed(families, rules.alpha)


def _interaction_p(result: SeriesResult) -> float | None:
    return None if result.hosts is None else result.hosts.p_interaction


def _hosts(trials: Trials, analysis: Analysis, passports: Sequence[UnlikeFact]) -> OrderHosts | None:
    """What is known of the hosts; None of one, and where they are pooled."""
    if trials.host is None or analysis.rules.published:
        return None

    def of_host(host: HostOrders) -> tuple[tuple[Literal["level", "effect"], float | None], ...]:
        return ("level", host.p_level), ("effect", host.p_effect)

    found = [
        UnlikeHost(host.host, result.name, what, host.level_pct if what == "level" else None, p, p)
        for result in analysis.results
        if result.hosts is not None
        for host in result.hosts.hosts
        for what, p in of_host(host)
        if p is not None
    ]
    found.sort(key=lambda each: each.p)
    holm = multiple_testing.holm_of_smallest([each.p for each in found], len(found)).tolist()
    pooled = [
        nan if each.hosts is None or each.hosts.p_pooled is None else each.hosts.p_pooled for each in analysis.results
    ]
    return OrderHosts(
        trials.hosts,
        int(multiple_testing.significant(pooled, analysis.rules.alpha, analysis.rules.correction).sum()),
        tuple(replace(each, p_holm=p) for each, p in zip(found, holm, strict=True)),
        tuple(passports),
    )


def _named(
    effects: Sequence[PredecessorEffect], meaning: Mapping[str, MetricMeaning] | None, right: str
) -> tuple[list[str], list[float]]:
    """In words, the smallest p first; `meaning`: of a suite's metrics."""
    ordered = sorted(effects, key=lambda each: each.p_holm)
    if meaning is None:
        return [verdict.disturbed(each) for each in ordered], [each.p_holm for each in ordered]
    words = [verdict.influenced(each, each.test in meaning and meaning[each.test].is_time, right) for each in ordered]
    return words, [each.p_holm for each in ordered]


def _extreme(trials: Trials) -> bool:
    """Whether there are values whose squares or shares may be no finite numbers."""
    for rows in trials.blocks():
        size = np.abs(trials.value[rows])
        if (size > 1e150).any() or ((size < 1e-150) & (size > 0)).any():
            return True
    return False


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


def _design(trials: Trials, analysis: Analysis, warnings: tuple[str, ...]) -> OrderDesign:
    """How the runs lay in time."""
    runs = analysis.sequence
    if runs is None:
        return OrderDesign(None, warnings)
    pair = pairs_of(trials, analysis.rules)
    pairs = None if pair is None or all(each.signed_ranks is None for each in analysis.results) else int(pair.max()) + 1
    return OrderDesign(runs.interleaved, warnings, runs.fixed, runs.random, runs.stretches, runs.p_few, pairs)


def _blocked(analysis: Analysis) -> list[str]:
    runs = analysis.sequence
    if runs is None or not runs.fixed or not runs.random or runs.interleaved:
        return []
    return [
        f"{verdict.BY_TIME}: {runs.fixed:,} fixed and {counted(runs.random, 'random run')} in {runs.stretches:,} "
        "stretches; what changed with time cannot be separated from what the order does"
    ]


def _test(
    trials: Trials,
    analysis: Analysis,
    result: SeriesResult,
    alpha: float,
    delta: float,
    within: tuple[bool, bool, bool, bool],
    meaning: MetricMeaning | None,
) -> OrderTest:
    published, level = analysis.rules.published, analysis.level
    fixed, random = (part.interval(level, published) for part in (result.fixed, result.random))
    pairs = result.signed_ranks is not None
    apart = power.spread(result.fixed.values, result.random.values) if result.away is None else power.walsh(result.away)
    each_order = min(result.fixed.values.size, result.random.values.size) if result.away is None else result.away.size
    seen = power.detectable(apart, each_order, alpha, POWER, pairs)
    alike = _alike(result)
    unknown = alike or max(result.fixed.values.size, result.random.values.size) < 2  # nothing says how they vary
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
    )


def _alike(result: SeriesResult) -> bool:
    """Whether all values of both orders are one."""
    ends = [part.values[at] for part in (result.fixed, result.random) if part.values.size for at in (0, -1)]
    return bool(ends) and bool(min(ends) == max(ends))


def _needs(result: SeriesResult, level: float, published: bool) -> int | None:
    """How many results an interval takes, where there are some in an order, but too few."""
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


def _across(trials: Trials, analysis: Analysis) -> pairwise.OrderComparison:
    """Pairs of tests with one metric."""
    bounds = []
    for order in ORDERS:
        parts = (each.fixed if order == "fixed" else each.random for each in _releasing(trials, analysis.results))
        intervals = [part.interval(analysis.level, analysis.rules.published) for part in parts]
        lows = [nan if each is None else each.low for each in intervals]
        bounds.append((lows, [nan if each is None else each.high for each in intervals]))
    groups: dict[str, list[int]] = {}
    for number in range(len(trials.names)):
        groups.setdefault(trials.metrics[number] if trials.metrics else "", []).append(number)
    found = pairwise.across(trials.names, bounds[0], bounds[1], list(groups.values()), NAMED_PAIRS)
    if analysis.rules.published or not found.changed:
        return found
    whole, slices = trials.grouped()
    gone, pair = dropped(whole, analysis.rules), pairs_of(whole, analysis.rules)
    seen = found.pairs, found.changed
    chance = relabel.changed_by_chance(whole, slices, gone, pair, analysis.level, seen)
    return found if chance is None else replace(found, expected=chance.expected, p=chance.p)


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
