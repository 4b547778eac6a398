"""Analyze a screen on several hosts: each host's effects, whether they differ, and which hosts deviate.

An effect on a host is the mean over iterations of the difference between two levels or, for a hard factor, the
difference between the means of batches. Values are at a common level (see data/hosts.py), so the effects of hosts are
comparable with the combined effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.effects import ResponseSlice, blocks
from cbench.screen.analysis.host_results import (
    Ends,
    FactorByHost,
    HostEffect,
    HostLevel,
    ResponseHosts,
    ScreenHosts,
    UnlikeScreenHost,
)
from cbench.screen.analysis.result import ResponseResult
from cbench.screen.data.data import Data, ResponseSeries, Values
from cbench.stats import multiple_testing
from cbench.stats.distributions import t_quantile
from cbench.stats.hosts import HostMean, against_others, difference_of, interaction_p, levels_against_others, mean_of


def of_response(part: ResponseSlice, confidence: float) -> ResponseHosts:
    """The results of one response on each host, for a screen on several hosts."""
    batch, _, values = blocks(part)
    host = np.array(part.data.host_of_batch, dtype=np.intp)[batch]
    whole = _complete(batch, values)
    made = []
    for number, factor in enumerate(part.data.factors):
        used = np.unique(part.levels[:, number]).tolist()
        for level in used[1:]:
            sides = [part.levels[:, number] == each for each in (used[0], level)]
            means = [
                _effect(values[whole & (host == each)], batch[whole & (host == each)], sides, factor.hard)
                for each in range(len(part.data.hosts))
            ]
            pair = factor.levels[used[0]], factor.levels[level]
            made.append(_by_host(factor.name, pair, part.data.hosts, means, confidence, float(part.means.mean())))
    return ResponseHosts(_levels(part.data, part.series), tuple(made))


def _complete(batch: NDArray[np.intp], values: Values) -> NDArray[np.bool_]:
    """Flags for the complete blocks, which have all treatments that occur in their batch. Incomplete blocks would bias
    the comparison.
    """
    known = ~np.isnan(values)
    whole = np.zeros(batch.size, dtype=bool)
    for each in np.unique(batch).tolist():
        rows = batch == each
        whole[rows] = (known[rows] == known[rows].any(axis=0)).all(axis=1)
    return whole


def _effect(
    values: Values, batch: NDArray[np.intp], sides: Sequence[NDArray[np.bool_]], hard: bool
) -> tuple[int, HostMean | None]:
    """The effect on one host: the number of blocks or batches, and the second level minus the first (None if there are
    too few blocks or batches). Shape of values: (blocks, treatments).
    """
    means = [_row_means(values[:, side]) for side in sides]
    if not hard:
        away = means[1] - means[0]
        away = away[~np.isnan(away)]
        return away.size, mean_of(away) if away.size > 1 else None
    plots = [np.array([each[batch == number].mean() for number in np.unique(batch[~np.isnan(each)])]) for each in means]
    return sum(each.size for each in plots), difference_of(*plots) if min(each.size for each in plots) > 1 else None


def _row_means(values: Values) -> Values:
    """The mean of the known values; NaN if there is none."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    return np.where(counts, np.where(known, values, 0.0).sum(axis=1) / np.maximum(counts, 1), nan)


def _by_host(
    factor: str,
    levels: tuple[str, str],
    hosts: Sequence[str],
    effects: Sequence[tuple[int, HostMean | None]],
    confidence: float,
    mean: float,
) -> FactorByHost:
    known = [each for _, each in effects if each is not None]
    apart = against_others([each for _, each in effects])
    rows = [
        HostEffect(
            host,
            n,
            None if each is None else each.mean,
            None if each is None or not mean else 100 * each.mean / abs(mean),
            None if each is None else _interval(each, confidence),
            p,
        )
        for host, (n, each), p in zip(hosts, effects, apart, strict=True)
    ]
    p = interaction_p(known) if len(known) == len(hosts) else None
    return FactorByHost(factor, levels, p, tuple(rows))


def _interval(each: HostMean, confidence: float) -> Ends:
    half = t_quantile((1 + confidence) / 2, each.freedom) * sqrt(each.variance)
    return each.mean - half, each.mean + half


def _levels(data: Data, series: ResponseSeries) -> tuple[HostLevel, ...]:
    places = levels_against_others(series.levels)
    return tuple(
        HostLevel(
            host,
            level if isfinite(level) else None,
            level_pct=None if place is None else place[1],
            p_level=None if place is None else place[0],
        )
        for host, level, place in zip(data.hosts, series.levels, places, strict=True)
    )


def decided(data: Data, responses: Mapping[str, ResponseResult], alpha: float) -> dict[str, ResponseResult]:
    """The responses, with the p-values of interactions with hosts corrected by Holm's method. All responses and factors
    form a family of their own.
    """
    every = [each.p_interaction for row in responses.values() if row.hosts for each in row.hosts.effects]
    p = [nan if each is None else each for each in every]
    adjusted = iter(multiple_testing.adjusted(p, multiple_testing.HOLM).tolist() if p else [])

    def judged(each: FactorByHost) -> FactorByHost:
        value = float(next(adjusted))
        return each if each.p_interaction is None else replace(each, p_holm=value, significant=value < alpha)

    return {
        name: row
        if row.hosts is None
        else replace(row, hosts=replace(row.hosts, effects=tuple(judged(each) for each in row.hosts.effects)))
        for name, row in responses.items()
    }


def of_screen(data: Data, responses: Mapping[str, ResponseResult]) -> ScreenHosts | None:
    """The hosts of a screen, with the tests of each host's level and effects against those of the other hosts. All of
    these tests share one Holm correction. None for one host.
    """
    if not data.hosts:
        return None
    found: list[UnlikeScreenHost] = []
    for name, row in responses.items():
        if row.hosts is None:
            continue
        for level in row.hosts.levels:
            if level.p_level is not None:
                found.append(UnlikeScreenHost(level.host, name, "level", level.level_pct, level.p_level, level.p_level))
        for each in row.hosts.effects:
            what = f"{each.factor}: {each.levels[1]} against {each.levels[0]}"
            found += [
                UnlikeScreenHost(one.host, name, what, None, one.p_effect, one.p_effect)
                for one in each.hosts
                if one.p_effect is not None
            ]
    found.sort(key=lambda each: each.p)
    holm = multiple_testing.holm_of_smallest([each.p for each in found], len(found)).tolist()
    unlike = tuple(replace(each, p_holm=p) for each, p in zip(found, holm, strict=True))
    return ScreenHosts(data.hosts, unlike, data.passports)
