"""Turn the arrays of an analysis into a result with names instead of numbers, corrected p-values, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import nan
from typing import TypeVar, cast

import numpy as np

from cbench.machine.passport import UnlikeFact
from cbench.order import claims, verdict
from cbench.order.families import claims_of, corrected_effects, significant, unlike_hosts
from cbench.order.predecessors import NAMED_PAIRS, carry_over, described, earlier_effects, predecessor_effects
from cbench.order.result import (
    ORDERS,
    IntervalRule,
    OrderDesign,
    OrderResult,
    PowerRule,
    SuiteResult,
)
from cbench.order.series_summary import POWER, MetricMeaning, known, summary_of
from cbench.order.stats import pairwise, relabel
from cbench.order.stats.analysis import Analysis, SeriesResult, dropped, pairs_of
from cbench.order.stats.hosts import aligned
from cbench.report.text import counted
from cbench.stats.trials import Trials

AnyResult = TypeVar("AnyResult")

RARE = 0.1
"""The maximum share of negative values that are reported as possible errors."""


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
    """The whole result. `delta`: the shift in % for which the required runs are computed; `meaning`: the meaning of
    metrics, by name; `suite`: the suite of these runs; `passports`: differences between the hosts.
    """
    rules, meaning = analysis.rules, meaning or {}
    negative = _negative(trials)
    if not rules.published:
        trials = aligned(trials)
    of_hosts = unlike_hosts(trials, analysis, passports)
    tested = sum(result.test is not None for result in analysis.results)
    corrected, published = rules.alpha / max(tested, 1), rules.published
    effects = corrected_effects(analysis)
    after = predecessor_effects(trials, analysis)
    before = () if suite is None else earlier_effects(trials, analysis)
    claimed = claims_of(analysis, effects, after, before, meaning if suite else None, of_hosts)
    level_of_test = rules.alpha if published else claimed[0].level / max(tested, 1) if claimed else corrected
    tests = {
        result.name: summary_of(trials, analysis, result, level_of_test, delta, yes, meaning.get(result.name))
        for result, yes in zip(_releasing(trials, analysis.results), significant(effects, rules.alpha), strict=True)
    }
    lacking = verdict.not_compared(tests, of_hosts is not None)
    design = _design(trials, analysis, (*warnings, *negative, *_blocked(analysis), *lacking))
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
        described=() if suite is not None else described(trials, analysis, claimed, after),
    )
    if _extreme(trials):
        outcome = _finite(outcome)
    return replace(outcome, verdict=tuple(verdict.verdict(outcome)))


def _releasing(trials: Trials, results: Sequence[SeriesResult]) -> Iterator[SeriesResult]:
    """Yield all series, and periodically release the memory of values that are also in a file."""
    for number, result in enumerate(results):
        yield result
        if number % 20 == 0:
            trials.release()


def _matters(claimed: Sequence[claims.Claim]) -> bool:
    return any(each.named for each in claimed if each.family in claims.OF_ORDER)


def _extreme(trials: Trials) -> bool:
    """Whether squares or ratios of the values may overflow."""
    for rows in trials.blocks():
        size = np.abs(trials.value[rows])
        if (size > 1e150).any() or ((size < 1e-150) & (size > 0)).any():
            return True
    return False


def _negative(trials: Trials) -> list[str]:
    """Warnings about series with a few negative values among positive ones, which are more likely errors than times."""
    below, every = np.zeros((2, len(trials.names)), dtype=np.int64)
    for rows in trials.blocks():
        series, value = trials.series[rows], trials.value[rows]
        if (value < 0).any():
            below += np.bincount(series[value < 0], minlength=below.size)
        every += np.bincount(series, minlength=below.size)
    few = np.flatnonzero((below > 0) & (below <= RARE * every)).tolist()
    named = [f"{trials.names[at]} ({below[at]:,} of {every[at]:,})" for at in few]
    listed = ", ".join(named)
    return [f"a few values are negative: {listed}; correct the data if they cannot be negative"] if named else []


def _finite(value: AnyResult) -> AnyResult:
    """The result with None instead of NaN and infinity."""
    cleaned: object = value
    if is_dataclass(value) and not isinstance(value, type):
        cleaned = replace(value, **{each.name: _finite(getattr(value, each.name)) for each in fields(value)})
    elif isinstance(value, Mapping):
        cleaned = {key: _finite(each) for key, each in value.items()}
    elif isinstance(value, tuple):
        cleaned = tuple(_finite(each) for each in value)
    elif isinstance(value, float):
        cleaned = known(value)
    return cast("AnyResult", cleaned)


def _design(trials: Trials, analysis: Analysis, warnings: tuple[str, ...]) -> OrderDesign:
    """The arrangement of the runs in time."""
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
        "stretches; changes over time cannot be separated from effects of the order"
    ]


def _across(trials: Trials, analysis: Analysis) -> pairwise.OrderComparison:
    """Compare pairs of tests that share a metric."""
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
