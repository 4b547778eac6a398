"""The captions of the figures of a screen's report."""

from __future__ import annotations

from cbench.screen.analysis.result import EffectResult, StudyResult
from cbench.screen.report.page import coverage_said, significant_said
from cbench.screen.stats.practical_significance import StudiedSize


def study(name: str, *sizes: tuple[str, int, float]) -> StudyResult:
    studied = [StudiedSize(n, how, (1.0, 2.0, 3.0), share, 0.01, 100, 0) for how, n, share in sizes]
    return StudyResult(0, name, 5000, 7.0, 0.95, False, 100, None, tuple(studied))


def test_the_lowest_coverage_is_that_of_all_treatments_drawn() -> None:
    studies = [
        study("a=0", ("BCa", 5, 0.91), ("BCa", 10, 0.93)),
        study("a=1", ("BCa", 5, 0.9), ("t", 5, 0.5)),
        study("a=2", ("BCa", 5, 0.85), ("BCa", 10, 0.812)),
    ]
    assert coverage_said(studies) == "Lowest coverage by BCa: 81.2 % at n = 10 (a=2)."


def test_of_one_treatment_studied_the_lowest_coverage_needs_no_name() -> None:
    assert coverage_said([study("a=0", ("t", 5, 0.9))]) == "Lowest coverage by t: 90.0 % at n = 5."


def effect(p: float | None, significant: bool = False) -> EffectResult:
    return EffectResult(effect=1.0, magnitude=1.0, signed=True, testable=True, why=None, p=p, significant=significant)


def test_effects_that_were_not_tested_are_not_among_those_that_are_significant_or_not() -> None:
    assert significant_said([effect(0.3), effect(None), effect(None)]) == "Significant: 0 of 1 tested."
    assert significant_said([effect(0.001, True), effect(0.5)]) == "Significant: 1 of 2 tested."
    assert significant_said([effect(None)]) == "Not tested."
