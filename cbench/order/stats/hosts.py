"""Analyze several hosts in one study: the order's effect within each host and across hosts, and deviating hosts.

Hosts differ from each other far more than orders do, so the test of the orders ranks values only within hosts: it is
van Elteren's test (cbench/stats/stratified.py). For all analyses within runs, each host's values of a series are scaled
to one level (`aligned`; J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 33 (1962) 482-497).

cbench/stats/hosts.py tests whether hosts differ in the effect of the order, and which hosts differ from the others,
with each host's mean difference of logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from cbench.order.stats import paired, permutation, shift
from cbench.order.stats.brunner_munzel import unequal_spread_p
from cbench.results import LEFT_OUT
from cbench.stats import kruskal
from cbench.stats.hosts import (
    HostMean,
    against_others,
    difference_of,
    interaction_p,
    levels_against_others,
    mean_of,
)
from cbench.stats.stratified import van_elteren
from cbench.stats.trials import Codes, Flags, Trials, Values

LEVEL = 0.95
FEWEST_SPREAD = 4


@dataclass(frozen=True, slots=True)
class HostOrders:
    """One series on one host; None for a number that cannot be computed. `p`: from the comparison of the orders on this
    host alone, not corrected; `delta_pct`, `interval`: (fixed - random)/fixed in %, by Hodges and Lehmann. `p_level`,
    `level_pct`: from the comparison of this host's level with the other hosts' levels; `p_effect`: from the comparison
    of the order's effect on this host with its effect on the other hosts.
    """

    host: str
    n_fixed: int
    n_random: int
    median_fixed: float | None
    median_random: float | None
    p: float | None
    delta_pct: float | None
    interval: tuple[float, float] | None
    p_level: float | None = None
    level_pct: float | None = None
    p_effect: float | None = None


@dataclass(frozen=True, slots=True)
class HostComparison:
    """One series over all hosts. `z`, `p`, `strata`: as in StratifiedTest, from the test that compares the orders
    within hosts; `pairs`: the number of pairs of runs, omitted if runs are not compared in pairs. `p_pooled`: from
    ranks over all hosts, only for comparison; `p_interaction`: for a difference between hosts in the effect of the
    order.
    """

    z: float
    p: float
    strata: int
    p_pooled: float | None
    p_interaction: float | None
    hosts: tuple[HostOrders, ...]
    pairs: int | None = field(default=None, metadata={LEFT_OUT: None})


def aligned(trials: Trials) -> Trials:
    """The trials with each host's values of a series moved to the series' level over all hosts; unchanged with one
    host. Values are scaled if the levels of all hosts are positive, otherwise shifted. Both orders of a host change by
    the same factor or amount.
    """
    if trials.host is None:
        return trials
    value = trials.value.copy()
    cells = trials.series.astype(np.int64) * len(trials.hosts) + trials.host
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    rows_of = dict(zip(cells[order][starts].tolist(), np.split(order, starts[1:]), strict=True))
    for series in range(len(trials.names)):
        rows = [rows_of.get(series * len(trials.hosts) + host) for host in range(len(trials.hosts))]
        levels = [(each, _level(value[each], trials.random[each])) for each in rows if each is not None]
        known = [level for _, level in levels if isfinite(level)]
        if len(known) < 2:
            continue
        centre = float(np.median(known))
        for each, level in levels:
            if isfinite(level):
                value[each] = value[each] * (centre / level) if min(known) > 0 else value[each] - level + centre
    return replace(trials, value=value)


def compare(
    value: Values,
    random: Flags,
    host: Codes,
    names: Sequence[str],
    pair: Codes | None,
) -> tuple[tuple[HostOrders, ...], float | None, float | None]:
    """The results of one series on each host, the p-value of the interaction, and the p-value of pooled ranks (each
    None if it cannot be computed). `value`: each host's original values, none missing; `pair`: the pair number of each
    row, None if runs are not compared in pairs.
    """
    found, means, levels = [], [], []
    for number, name in enumerate(names):
        rows = host == number
        fixed, other = np.sort(value[rows & ~random]), np.sort(value[rows & random])
        matched = None if pair is None else paired.matched(value[rows], random[rows], pair[rows])
        found.append(_of_host(name, fixed, other, matched))
        means.append(_effect(fixed, other, matched))
        levels.append(_level(value[rows], random[rows]))
    effects, places = against_others(means), levels_against_others(levels)
    hosts = tuple(
        replace(each, p_effect=effect, p_level=None if place is None else place[0], level_pct=place and place[1])
        for each, effect, place in zip(found, effects, places, strict=True)
    )
    pooled = kruskal.kruskal([value[~random], value[random]])
    p_pooled = None
    if pooled is not None:
        p_pooled = permutation.p_value(pooled.h, pooled.lengths, int((~random).sum()), int(random.sum()))
    return hosts, interaction_p([mean for mean in means if mean is not None]), p_pooled


def spread_p(value: Values, random: Flags, host: Codes) -> float | None:
    """The p-value for equal spread of both orders within hosts: van Elteren's test of the distances of values from the
    median of their order on their host. A median that is itself one of the values is omitted. None if no host has
    FEWEST_SPREAD values in each order.
    """
    kept, distances = np.zeros(value.size, dtype=bool), np.zeros(value.size)
    for number in np.unique(host).tolist():
        rows = [np.flatnonzero((host == number) & (random == order)) for order in (False, True)]
        if min(each.size for each in rows) < FEWEST_SPREAD:
            continue
        for each in rows:
            distances[each] = np.abs(value[each] - np.median(value[each]))
            kept[each] = True
            if each.size % 2:
                kept[each[np.argsort(value[each], kind="stable")[each.size // 2]]] = False
    found = van_elteren(distances[kept], random[kept], host[kept])
    return None if found is None else found.p


def _of_host(name: str, fixed: Values, random: Values, matched: tuple[Values, Values] | None) -> HostOrders:
    p = interval = None
    if fixed.size and random.size:
        signed = None if matched is None else paired.signed_ranks(np.sort(shift.differences(*matched)))
        if signed is not None and matched is not None:
            p, interval = signed.p, shift.of_pairs(*matched, LEVEL)
        elif (test := kruskal.of_sorted([fixed, random])) is not None:
            p = permutation.p_value(test.h, test.lengths, fixed.size, random.size)
            p = max(p, unequal_spread_p(fixed, random) or 0.0)
            interval = shift.of_samples(fixed, random, LEVEL)
    medians = [float(np.median(each)) if each.size else None for each in (fixed, random)]
    ends = None
    if interval is not None and interval.low is not None and interval.high is not None:
        ends = interval.low, interval.high
    delta = None if interval is None else interval.delta_pct
    return HostOrders(name, fixed.size, random.size, medians[0], medians[1], p, delta, ends)


def _effect(fixed: Values, random: Values, matched: tuple[Values, Values] | None) -> HostMean | None:
    """The effect on one host, random minus fixed: the difference of logarithms if all values are positive, otherwise
    relative to the fixed order's median. None for fewer than two pairs or values in an order, or
    if this median is needed but is 0.
    """
    if matched is not None:
        away = shift.relative(*matched) if matched[0].size > 1 else np.empty(0)
        return mean_of(away) if away.size > 1 else None
    if fixed.size < 2 or random.size < 2:
        return None
    if fixed[0] > 0 and random[0] > 0:
        fixed, random = np.log(fixed), np.log(random)
    elif scale := abs(float(np.median(fixed))):
        fixed, random = fixed / scale, random / scale
    else:
        return None
    return difference_of(fixed, random)


def _level(value: Values, random: Flags) -> float:
    """The mean of the two orders' medians, so that unequal numbers of values do not shift it; NaN without values."""
    known = ~np.isnan(value)
    medians = [float(np.median(value[each])) for each in (known & ~random, known & random) if each.any()]
    return float(np.mean(medians)) if medians else float("nan")
