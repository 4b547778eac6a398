"""Textbooks' experiments have their published answers."""

from __future__ import annotations

from functools import cache

import pytest

from cbench.screen.analysis.result import ScreenResult
from tests.textbook.__main__ import TARGET, analysis, page
from tests.textbook.cases import Case, cases, named

each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
LARGE = {"filtration", "reactor", "ceramic"}  # analyses that take long


@cache
def made(name: str) -> ScreenResult:
    return analysis(next(case for case in cases() if case.name == name))


@pytest.mark.slow
@each_case
def test_effects_have_the_sizes_and_tests_that_are_printed(case: Case) -> None:
    effects = named(made(case.name))
    for name, published in case.published.items():
        each = effects[name]
        assert each.test is not None
        if published.effect is not None:
            assert each.fair == pytest.approx(published.effect, abs=published.digit)
        if published.f is not None:
            assert each.test.statistic == pytest.approx(published.f, rel=2e-3, abs=6e-3)
        if published.p is not None:
            assert each.p == pytest.approx(published.p, rel=8e-3)


@pytest.mark.slow
@each_case
def test_effects_that_the_source_considers_real_are_named_and_no_others_are_significant(case: Case) -> None:
    result = made(case.name)
    effects = named(result)
    significant = {name for name, each in effects.items() if each.significant}
    assert significant <= set(case.found)
    said = " ".join(
        line for line in result.verdict if line.startswith(("effects that matter", "significant individually"))
    )
    assert all(f"{name} (" in said for name in (*case.found, *case.ranked))
    assert result.factors_matter == bool(case.found)


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (each.name in LARGE)) for each in cases()],
)
def test_intervals_of_significant_effects_lie_on_one_side_of_zero(case: Case) -> None:
    for name, each in named(made(case.name)).items():
        if each.interval is not None and each.significant:
            assert each.interval[0] * each.interval[1] > 0, name


@pytest.mark.slow
def test_the_documentation_agrees_with_the_commands_output() -> None:
    assert TARGET.read_text(encoding="utf-8") == page()
