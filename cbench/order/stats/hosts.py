"""Several hosts in one study: the order's effect within each host, across hosts, and hosts that are unlike the others.

Hosts differ from each other far more than orders do, so values are never ranked across hosts: the test is van Elteren's
(cbench/stats/stratified.py). For all analyses within runs, each host's values of a series are scaled to one
level (`aligned`; J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 33 (1962) 482-497).

Whether hosts differ in the effect of the order: B. L. Welch, "On the comparison of several mean values: an alternative
approach", Biometrika 38 (1951) 330-336, over the hosts' mean differences of logarithms, whose variances may differ. One
host against the others: Welch's t of its effect less the mean of the others' effects, and Student's t of its level (the
logarithm of its median) as a further draw from the others' levels: F. E. Grubbs, Ann. Math. Statist. 21 (1950) 27-58.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log, sqrt

import numpy as np

from cbench.order.stats import paired, permutation, shift
from cbench.results import LEFT_OUT
from cbench.stats import kruskal
from cbench.stats.distributions import f_sf, student_p
from cbench.stats.stratified import van_elteren
from cbench.stats.trials import Codes, Flags, Trials, Values

LEVEL = 0.95
FEWEST_SPREAD = 4
FEWEST_LEVELS = 4
"""The fewest hosts for calling a host's level unlike the others."""


@dataclass(frozen=True, slots=True)
class HostOrders:
    """One series on one host. p: fixed against random order on this host alone, not corrected; delta_pct and interval:
    (fixed - random)/fixed in %, by Hodges and Lehmann. p_level, level_pct: its median against the other hosts' medians;
    p_effect: its effect of the order against theirs."""

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
    """One series over hosts. p: of the stratified test; p_pooled: what ranks over all hosts say, for comparison only;
    p_interaction: whether the effect of the order differs between hosts."""

    z: float
    p: float
    strata: int
    p_pooled: float | None
    p_interaction: float | None
    hosts: tuple[HostOrders, ...]
    pairs: int | None = field(default=None, metadata={LEFT_OUT: None})


@dataclass(frozen=True, slots=True)
class HostMean:
    """A mean of independent values: its variance, and the degrees of freedom of that."""

    mean: float
    variance: float
    freedom: float


def aligned(trials: Trials) -> Trials:
    """The same with each host's values of a series at the series' level over all hosts; unchanged with one host.

    Multiplied where all medians are above 0, else shifted. Both orders of a host move by the same.
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
    """The hosts of one series, p of the interaction, and p of pooled ranks. Values in the units of each host, without
    missing ones; `pair`: of each row, where runs are compared in pairs."""
    found, means, levels = [], [], []
    for number, name in enumerate(names):
        rows = host == number
        fixed, other = np.sort(value[rows & ~random]), np.sort(value[rows & random])
        matched = None if pair is None else paired.matched(value[rows], random[rows], pair[rows])
        found.append(_of_host(name, fixed, other, matched))
        means.append(_effect(fixed, other, matched))
        levels.append(_level(value[rows], random[rows]))
    effects, places = _against_others(means), _levels(levels)
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
    """Whether both orders vary alike within hosts: van Elteren's test of the distances from the median of their order
    on their host. A median that is a value itself is left out. None where no host has FEWEST_SPREAD of each order."""
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


def interaction_p(means: Sequence[HostMean]) -> float | None:
    """Welch's test of equal means; None of fewer than two with a variance."""
    some = [each for each in means if each.variance > 0]
    if len(some) < 2 or len(some) < len(means):
        return None
    k = len(some)
    weights = [1 / each.variance for each in some]
    total = sum(weights)
    centre = sum(w * each.mean for w, each in zip(weights, some, strict=True)) / total
    between = sum(w * (each.mean - centre) ** 2 for w, each in zip(weights, some, strict=True)) / (k - 1)
    lost = sum((1 - w / total) ** 2 / each.freedom for w, each in zip(weights, some, strict=True))
    return f_sf(between / (1 + 2 * (k - 2) / (k * k - 1) * lost), k - 1, (k * k - 1) / (3 * lost))


def outlier_p(value: float, others: Sequence[float]) -> float | None:
    """Student's two-sided p of one value as a further draw from where the others were drawn; None of fewer than 3."""
    if len(others) < FEWEST_LEVELS - 1:
        return None
    deviation = float(np.std(others, ddof=1)) * sqrt(1 + 1 / len(others))
    if deviation == 0:
        return 1.0 if value == others[0] else 0.0
    return student_p((value - float(np.mean(others))) / deviation, len(others) - 1)


def _against_others(means: Sequence[HostMean | None]) -> list[float | None]:
    """Welch's p of each host's effect less the mean of the others' effects."""
    known = [each for each in means if each is not None and each.variance > 0]
    if len(known) < 3:
        return [None] * len(means)
    count = len(known) - 1
    total, spread = sum(each.mean for each in known), sum(each.variance for each in known)
    terms = sum(each.variance**2 / each.freedom for each in known)
    found: list[float | None] = []
    for each in means:
        if each is None or each.variance <= 0:
            found.append(None)
            continue
        variance = each.variance + (spread - each.variance) / count**2
        own = each.variance**2 / each.freedom
        freedom = variance**2 / (own + (terms - own) / count**4)
        found.append(student_p((each.mean - (total - each.mean) / count) / sqrt(variance), freedom))
    return found


def _levels(levels: Sequence[float]) -> list[tuple[float, float] | None]:
    """The p of each host's level among the others', and by how many % it is above their mean."""
    positive = all(level > 0 for level in levels if isfinite(level))
    logs = [log(level) if positive and isfinite(level) else None for level in levels]
    found: list[tuple[float, float] | None] = []
    for number, own in enumerate(logs):
        others = [each for at, each in enumerate(logs) if at != number and each is not None]
        p = None if own is None else outlier_p(own, others)
        away = None if own is None or p is None else 100 * (exp(min(own - float(np.mean(others)), 700.0)) - 1)
        found.append(None if p is None or away is None else (p, away))
    return found


def _of_host(name: str, fixed: Values, random: Values, matched: tuple[Values, Values] | None) -> HostOrders:
    p = interval = None
    if fixed.size and random.size:
        signed = None if matched is None else paired.signed_ranks(np.sort(shift.differences(*matched)))
        if signed is not None and matched is not None:
            p, interval = signed.p, shift.of_pairs(*matched, LEVEL)
        elif (test := kruskal.of_sorted([fixed, random])) is not None:
            p = permutation.p_value(test.h, test.lengths, fixed.size, random.size)
            interval = shift.of_samples(fixed, random, LEVEL)
    medians = [float(np.median(each)) if each.size else None for each in (fixed, random)]
    ends = None
    if interval is not None and interval.low is not None and interval.high is not None:
        ends = interval.low, interval.high
    delta = None if interval is None else interval.delta_pct
    return HostOrders(name, fixed.size, random.size, medians[0], medians[1], p, delta, ends)


def _effect(fixed: Values, random: Values, matched: tuple[Values, Values] | None) -> HostMean | None:
    """Random less fixed, of logarithms where all values are above 0, else in the fixed order's medians."""
    if matched is not None:
        away = shift.relative(*matched) if matched[0].size > 1 else np.empty(0)
        return _mean(away) if away.size > 1 else None
    if fixed.size < 2 or random.size < 2:
        return None
    if fixed[0] > 0 and random[0] > 0:
        fixed, random = np.log(fixed), np.log(random)
    elif scale := abs(float(np.median(fixed))):
        fixed, random = fixed / scale, random / scale
    else:
        return None
    one, two = _mean(fixed), _mean(random)
    variance = one.variance + two.variance
    spread = one.variance**2 / one.freedom + two.variance**2 / two.freedom
    return HostMean(two.mean - one.mean, variance, variance**2 / spread if spread else 1.0)


def _mean(values: Values) -> HostMean:
    return HostMean(float(values.mean()), float(values.var(ddof=1)) / values.size, values.size - 1)


def _level(value: Values, random: Flags) -> float:
    """The mean of the medians of both orders, so that unequal numbers do not move it; NaN where there is no value."""
    known = ~np.isnan(value)
    medians = [float(np.median(value[each])) for each in (known & ~random, known & random) if each.any()]
    return float(np.mean(medians)) if medians else float("nan")
