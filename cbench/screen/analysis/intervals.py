"""Compute intervals of effects from Student's t distribution, with the standard error that the effect's test uses."""

from __future__ import annotations

from dataclasses import replace

from cbench.screen.analysis.host_results import Ends
from cbench.screen.analysis.result import EffectResult, MainEffectResult
from cbench.stats.distributions import t_quantile


def of_effect(each: EffectResult, confidence: float, margin: float | None = None) -> Ends | None:
    """The interval of a signed effect. `margin`: the margin of error of Lenth's method, which replaces a standard
    error. None if there is neither, or if the effect is not signed.
    """
    test = each.test
    if test is None or test.estimate is None or not each.signed:
        return None
    if margin is not None and test.p_family is not None:
        return test.estimate - margin, test.estimate + margin
    return _ends(test.estimate, test.se, test.error_df, confidence)


def with_levels(each: MainEffectResult, confidence: float) -> MainEffectResult:
    """The effect with the differences of the factor's levels from its first level, if the factor has more than two
    levels.
    """
    test = each.test
    if test is None or len(test.differences) != len(each.levels) - 1:
        return each
    first, *others = each.levels
    levels = [
        replace(
            level,
            difference=between.estimate,
            interval=_ends(between.estimate, between.se, test.error_df, confidence),
        )
        for level, between in zip(others, test.differences, strict=True)
    ]
    return replace(each, levels=(first, *levels))


def _ends(estimate: float, se: float | None, df: int | None, confidence: float) -> Ends | None:
    if se is None or not df:
        return None
    half = t_quantile((1 + confidence) / 2, df) * se
    return estimate - half, estimate + half
