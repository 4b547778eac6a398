"""Analyze a study's trials: OrderSage's test of fixed against random order for each series, and the effects of the
order within runs.

D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any, cast

import numpy as np

from cbench.order.claims import FIRST
from cbench.order.stats import brunner_munzel, paired, permutation, shift, within_run_effects
from cbench.order.stats.hosts import HostComparison, aligned, compare, spread_p
from cbench.order.stats.order_sample import OrderSample, delta, sample
from cbench.order.stats.within_run_effects import narrow
from cbench.shared_work import every
from cbench.stats import multiple_testing, stratified
from cbench.stats.kruskal import Kruskal, of_sorted, placements
from cbench.stats.stretches import few, mixed, stretches
from cbench.stats.trials import Codes, Flags, Trials, Values

TRIAL, RUN = "trial", "run"
LEVEL = 0.95
SHARED = 300_000
"""With at least this many values, several processes share the analysis."""


@dataclass(frozen=True, slots=True)
class AnalysisRules:
    """The definitions that an analysis uses.

    `failures`: whether a failed trial excludes only itself or its whole RUN. `published`: use the definitions of
    OrderSage, which produced the paper's tables: p-values come from chi-squared and are not corrected, but intervals
    are corrected for the number of series; a failed trial excludes its run only in fixed order. `unpaired`: compare the
    orders as two samples even if the design pairs the runs.
    """

    alpha: float = 0.05
    failures: str = TRIAL
    published: bool = False
    unpaired: bool = False

    @property
    def correction(self) -> str:
        """The correction for the number of series, a constant of multiple_testing."""
        return multiple_testing.NONE if self.published else multiple_testing.BONFERRONI


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """The results of one series; None for a number that cannot be computed from these trials. `p_adjusted`,
    `significant`: known only after all series are analyzed.

    `fixed`, `random`: if runs are compared in pairs, only the values whose pair has a value in both orders, because
    with drift, values that one order lacks would look like an effect of the order.

    `p_brunner_munzel`: from the studentized rank sum; `p_spread`: from the test for equal spread; `spread_ratio`: the
    random order's spread divided by the fixed order's; `signed_ranks`: the signed-rank test of paired runs; `away`: the
    difference of each pair, random minus fixed: of logarithms if all values are positive, otherwise as a share of the
    fixed order's median.
    """

    name: str
    fixed: OrderSample
    random: OrderSample
    test: Kruskal | None
    delta_mean: float | None
    delta_median: float | None
    position: within_run_effects.Grouped | None
    predecessor: within_run_effects.AgainstOthers | None
    first: within_run_effects.LabelEffect | None
    drift: within_run_effects.Drift | None
    p_permutation: float | None
    p_brunner_munzel: float | None = None
    p_spread: float | None = None
    spread_ratio: float | None = None
    signed_ranks: paired.SignedRanks | None = None
    shift: shift.ShiftInterval | None = None
    away: Values | None = field(default=None, repr=False)
    p_adjusted: float | None = None
    significant: bool = False
    hosts: HostComparison | None = None


BETWEEN_ORDERS = (
    *("test", "delta_mean", "delta_median", "p_permutation", "p_brunner_munzel", "p_spread", "spread_ratio"),
    *("signed_ranks", "shift", "away"),
)
"""The fields of SeriesResult that compare the orders; across hosts with one order each, they would compare hosts."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """The sequence of both orders' runs in time: the number of stretches of equal orders, and the probability of at
    most that many by chance. If the orders were not mixed in time, order and time are confounded.
    """

    fixed: int
    random: int
    stretches: int
    p_few: float

    @property
    def interleaved(self) -> bool:
        """Whether both orders are spread over the same period."""
        return bool(self.fixed and self.random) and mixed(self.fixed, self.random, self.stretches)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The results of all series, in the order of the data. `sequence`: None if runs are unknown."""

    rules: AnalysisRules
    level: float
    results: tuple[SeriesResult, ...]
    sequence: Sequence | None


@np.errstate(over="ignore", invalid="ignore")  # means of values near the largest float overflow; medians do not
def analyze(
    trials: Trials,
    rules: AnalysisRules,
    keep: Callable[[Values], Values] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Analysis:
    """Analyze all series.

    With several hosts, each host is a stratum, except with the published definitions, which pool hosts. `keep`: moves
    the sorted values of a series out of memory; None for data in memory, which several processes analyze if there are
    at least SHARED values. `progress`: called with the step, the completed series and their total; only with `keep`.
    """
    whole, slices = trials.grouped()
    trials = whole if rules.published else aligned(whole)
    gone, pair, times = dropped(trials, rules), pairs_of(trials, rules), runs_by_host(trials)
    before, position = narrow(trials.predecessors()), narrow(trials.position)

    def one_series(number: int) -> SeriesResult:
        return _series(trials, number, slices[number], position, before, gone, pair, times)

    series = []
    if keep is None:
        many = trials.value.size >= SHARED
        series = every(one_series, len(slices)) if many else [one_series(number) for number in range(len(slices))]
    else:
        for number in range(len(slices)):
            series.append(_kept(one_series(number), keep))
            if progress is not None:
                progress("analyzing", number + 1, len(slices))
    if trials.host is not None and not rules.published:
        series = [_stratified(each, whole, rows, gone, pair) for each, rows in zip(series, slices, strict=True)]
    p = np.array([np.nan if (each := deciding_p(one, rules)) is None else each for one in series])
    adjusted = multiple_testing.adjusted(p, rules.correction).tolist()
    results = tuple(
        replace(each, p_adjusted=None if isnan(value) else value, significant=value < rules.alpha)
        for each, value in zip(series, adjusted, strict=True)
    )
    tested = int((~np.isnan(p)).sum())
    level = 1 - rules.alpha / max(tested, 1) if rules.published else LEVEL
    return Analysis(rules, level, results, _sequence(trials))


def _kept(one: SeriesResult, keep: Callable[[Values], Values]) -> SeriesResult:
    fixed, random = (replace(part, values=keep(part.values)) for part in (one.fixed, one.random))
    return replace(one, fixed=fixed, random=random, away=None if one.away is None else keep(one.away))


def dropped(trials: Trials, rules: AnalysisRules) -> Flags | None:
    """The rows that do not count: failed trials, and trials that are excluded because of them. None if all rows
    count.
    """
    failed = np.empty(trials.value.size, dtype=bool)
    for part in trials.blocks():
        failed[part] = np.isnan(trials.value[part])
    if not failed.any():
        return None
    if trials.run is None or (rules.failures == TRIAL and not rules.published):
        return failed
    taking = failed & ~trials.random if rules.published else failed
    return np.asarray(failed | np.isin(trials.run, np.unique(trials.run[taking])))


def pairs_of(trials: Trials, rules: AnalysisRules) -> Codes | None:
    """The number of each run's pair, -1 for a run without a partner; None if the runs are not compared in pairs, or if
    the number of pairs is too small for a significant result.
    """
    pair = _pairs_of_hosts(trials, rules)
    return pair if pair is not None and paired.smallest_p(pair) < FIRST * rules.alpha / len(trials.names) else None


def _pairs_of_hosts(trials: Trials, rules: AnalysisRules) -> Codes | None:
    kinds = None if rules.published or rules.unpaired else _kinds(trials)
    if kinds is None or trials.host is None:
        return None if kinds is None else paired.pairs_of_runs(kinds)
    host = host_of_run(trials)
    found, number = np.full(kinds.size, -1, dtype=np.int32), 0
    for each in np.unique(host).tolist():
        pair = paired.pairs_of_runs(kinds[host == each])
        if pair is None:
            return None
        found[host == each] = np.where(pair >= 0, pair + number, -1)
        number += int(pair.max()) + 1
    return found


def host_of_run(trials: Trials) -> Codes:
    """The number of each run's host."""
    assert trials.run is not None
    assert trials.host is not None
    host = np.zeros(int(trials.run.max()) + 1, dtype=np.int32)
    host[trials.run] = trials.host
    return host


def runs_by_host(trials: Trials) -> Codes | None:
    """The number of each row's run on its own host; None if runs are unknown."""
    if trials.host is None or trials.run is None:
        return trials.run
    host = host_of_run(trials)
    first = np.full(len(trials.hosts), host.size, dtype=np.int32)
    np.minimum.at(first, host, np.arange(host.size, dtype=np.int32))
    return np.asarray(trials.run - first[trials.host], dtype=np.int32)


def _stratified(
    result: SeriesResult, whole: Trials, rows: slice, gone: Flags | None, pair: Codes | None
) -> SeriesResult:
    """The series, analyzed with hosts as strata; without a test if no host has both orders. `whole`: the trials with
    each host's original values.
    """
    assert whole.host is not None
    keep = ~np.isnan(whole.value[rows]) if gone is None else ~gone[rows]
    of_row = None
    if pair is not None and whole.run is not None:
        keep[keep] = paired.complete(whole.random[rows][keep], pair[whole.run[rows][keep]])
        of_row = None if result.signed_ranks is None else pair[whole.run[rows][keep]]
    value, random, host = whole.value[rows][keep], whole.random[rows][keep], whole.host[rows][keep]
    found, p_interaction, p_pooled = compare(value, random, host, whole.hosts, of_row)
    test, pairs = stratified.van_elteren(value, random, host), None
    if of_row is not None:
        apart, at = [], []
        for number in range(len(whole.hosts)):
            inside = host == number
            away = shift.differences(*paired.matched(value[inside], random[inside], of_row[inside]))
            apart.append(away)
            at.append(np.full(away.size, number, dtype=np.int32))
        away = np.concatenate(apart)
        test, pairs = stratified.signed_ranks(away, np.concatenate(at)), away.size
    if test is None:
        return replace(result, **cast("Any", dict.fromkeys(BETWEEN_ORDERS)))
    return replace(
        result,
        p_spread=spread_p(value, random, host),
        hosts=HostComparison(test.z, test.p, test.strata, p_pooled, p_interaction, found, pairs),
    )


def _series(
    trials: Trials,
    number: int,
    rows: slice,
    position: Codes | None,
    before: Codes | None,
    gone: Flags | None,
    pair: Codes | None,
    times: Codes | None,
) -> SeriesResult:
    random, value = trials.random[rows], trials.value[rows]
    fixed = ~random
    run, position, before, times = (
        None if each is None else each[rows] for each in (trials.run, position, before, times)
    )
    failed_fixed = failed_random = 0
    if gone is not None and gone[rows].any():
        counts = ~gone[rows]
        failed_fixed, failed_random = (int(np.count_nonzero(each & ~counts)) for each in (fixed, random))
        random, fixed, value = random[counts], fixed[counts], value[counts]
        run, position, before, times = (
            None if each is None else each[counts] for each in (run, position, before, times)
        )
    inside = value[random]
    ordered = None if position is None or not inside.size else within_run_effects.Ordered.of(inside)
    complete = None if pair is None or run is None else paired.complete(random, pair[run])
    apart_in_time = complete is not None and not complete.any()  # no run of a pair has a partner with a value
    if complete is None or complete.all() or apart_in_time:
        fixed_part = sample(value[fixed], failed_fixed)
        random_part = sample(inside, failed_random, None if ordered is None else ordered.values)
    else:
        fixed_part, random_part = (
            sample(value[each & complete], failed, unpaired=int(np.count_nonzero(each & ~complete)))
            for each, failed in ((fixed, failed_fixed), (random, failed_random))
        )
    test = p_permutation = None
    if fixed_part.values.size and random_part.values.size and not apart_in_time:
        placed = placements(fixed_part.values, random_part.values)
        test = of_sorted([fixed_part.values, random_part.values], placed[0])
    p_studentized = p_spread = spread = ranks = interval = apart = None
    if test is not None:
        two = fixed_part.values, random_part.values
        p_studentized, p_spread = brunner_munzel.unequal_spread_p(*two, placed), brunner_munzel.spread_p(*two)
        spread = brunner_munzel.spread_ratio(*two)
        if pair is not None and run is not None:
            matched = paired.matched(value, random, pair[run])
            differences = np.sort(shift.differences(*matched))
            ranks = paired.signed_ranks(differences)
            apart = None if ranks is None else shift.relative(*matched, differences)
        interval = shift.of_samples(*two, LEVEL) if ranks is None else shift.of_pairs(*matched, LEVEL, differences)
        p_permutation = permutation.p_value(test.h, test.lengths, fixed_part.values.size, random_part.values.size)
    places = against = first = drift = None
    if position is not None and ordered is not None:
        places = within_run_effects.grouped(ordered, position[random])
        first = within_run_effects.first_trial(ordered, position[random])
        if before is not None:
            against = within_run_effects.against_others(ordered, before[random])
    if times is not None and trials.timed and value.size:
        away = value - np.where(random, random_part.median, fixed_part.median)
        drift = within_run_effects.drift(away, times) if np.isfinite(away).all() else None
    return SeriesResult(
        trials.names[number],
        fixed_part,
        random_part,
        None if test is None else replace(test, lengths=None),  # frees an array that is as long as the values
        None if apart_in_time else delta(fixed_part.mean, random_part.mean),
        None if apart_in_time else delta(fixed_part.median, random_part.median),
        places,
        against,
        first,
        drift,
        p_permutation,
        p_studentized,
        p_spread,
        spread,
        ranks,
        interval,
        apart,
    )


def deciding_p(result: SeriesResult, rules: AnalysisRules) -> float | None:
    """The p-value that decides whether a series is significant; None if the series was not tested. For two samples, it
    is the larger p of two tests: the permutation test is valid if the order has no effect at all, and the
    Brunner-Munzel test also if the order changes only the spread.
    """
    if result.test is None or result.p_permutation is None:
        return None
    if rules.published:
        return result.test.p
    if result.hosts is not None:
        return result.hosts.p if result.signed_ranks else max(result.hosts.p, result.p_brunner_munzel or 0.0)
    if result.signed_ranks is not None:
        return result.signed_ranks.p
    return max(result.p_permutation, result.p_brunner_munzel or 0.0)


def _sequence(trials: Trials) -> Sequence | None:
    kinds = _kinds(trials)
    return None if kinds is None else sequence(kinds)


def _kinds(trials: Trials) -> Flags | None:
    """For each run in chronological order, whether its order is random; None if the times are unknown."""
    return trials.run_orders() if trials.timed else None


def sequence(random: Flags) -> Sequence:
    """The sequence of a study's runs. `random`: for each run in chronological order, whether its order is random."""
    ones = int(random.sum())
    count = stretches(random.tolist())
    return Sequence(random.size - ones, ones, count, few(random.size - ones, ones, count))
