"""Correct each family of p-values of a study, and derive the claims that it supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Literal

import numpy as np

from cbench.machine.passport import UnlikeFact
from cbench.order import claims, verdict
from cbench.order.result import OrderHosts, PredecessorEffect, UnlikeHost
from cbench.order.series_summary import MetricMeaning
from cbench.order.stats.analysis import Analysis, SeriesResult
from cbench.order.stats.hosts import HostOrders
from cbench.stats import multiple_testing
from cbench.stats.trials import Trials


def corrected_effects(analysis: Analysis) -> dict[str, list[float]]:
    """The p-values of every series for position, predecessor, drift and spread, corrected within each family.

    If there is no fixed order, position and predecessor form one family, which answers the question of a study that
    measures no suite.
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


def significant(effects: Mapping[str, Sequence[float]], alpha: float) -> list[tuple[bool, bool, bool, bool]]:
    """For each series, whether the effects of position, predecessor, drift and spread are significant, each family
    considered alone.
    """
    position, predecessor, drift, spread = (effects[name] for name in ("position", "predecessor", "drift", "spread"))
    return [
        (a < alpha, b < alpha, c < alpha, d < alpha)
        for a, b, c, d in zip(position, predecessor, drift, spread, strict=True)
    ]


def claims_of(
    analysis: Analysis,
    effects: Mapping[str, Sequence[float]],
    after: Sequence[PredecessorEffect],
    before: Sequence[PredecessorEffect],
    suite: Mapping[str, MetricMeaning] | None,
    of_hosts: OrderHosts | None,
) -> tuple[claims.Claim, ...]:
    """The claims of all families. `after`: the effects of direct predecessors; `before`: the effects of tests that ran
    anywhere before. `suite`: the meaning of a suite's metrics; None if the study measures no suite. `of_hosts`: None if
    hosts are not compared.
    """
    names = [result.name for result in analysis.results]
    rules = analysis.rules
    adjusted = [nan if each.p_adjusted is None else each.p_adjusted for each in analysis.results]
    families: dict[claims.Family, tuple[Sequence[str], Sequence[float]]] = {"orders": (names, adjusted)}
    if rules.published:
        return claims.claimed(families, rules.alpha)
    if _no_fixed(analysis):
        either = np.fmin(effects["position"], effects["predecessor"]).tolist()
        families = {"within": (names, either)}
        if before:  # the study's question for a suite
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


def unlike_hosts(trials: Trials, analysis: Analysis, passports: Sequence[UnlikeFact]) -> OrderHosts | None:
    """The comparison of hosts; None if there is only one host, or if hosts are pooled."""
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


def _no_fixed(analysis: Analysis) -> bool:
    return not any(result.fixed.values.size or result.fixed.failed for result in analysis.results)


def _interaction_p(result: SeriesResult) -> float | None:
    return None if result.hosts is None else result.hosts.p_interaction


def _named(
    effects: Sequence[PredecessorEffect], meaning: Mapping[str, MetricMeaning] | None, right: str
) -> tuple[list[str], list[float]]:
    """The effects as text and their p-values, smallest p first. `meaning`: the meaning of a suite's metrics, None if
    the study measures no suite; `right`: the word before "after" in the text.
    """
    ordered = sorted(effects, key=lambda each: each.p_holm)
    if meaning is None:
        return [verdict.disturbed(each) for each in ordered], [each.p_holm for each in ordered]
    words = [verdict.influenced(each, each.test in meaning and meaning[each.test].is_time, right) for each in ordered]
    return words, [each.p_holm for each in ordered]
