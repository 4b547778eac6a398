"""The verdict and the exit code when data allow few conclusions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbench.screen import table as render_screen
from cbench.screen.analysis.result import (
    AdjustedSize,
    EffectSize,
    NoMateriality,
    ResponseResult,
    ScreenResult,
)
from cbench.screen.command import end
from cbench.screen.data.roles import Chosen
from cbench.screen.design.factorial import TIMES
from cbench.screen.design.fractional import best_fraction
from cbench.screen.design.plackett import plackett_burman
from cbench.screen.report import page_tables
from cbench.screen.stats.practical_significance import Materiality
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.screens import QUICK, screened, table

WALL = Chosen(values=("wall",), factors=("a", "b", "c"))


def made_of(tmp_path: Path, rows: list[dict[str, Any]], chosen: Chosen | None = None) -> ScreenResult:
    return screened(table(tmp_path / "data.csv", rows), chosen=chosen)[0]


def material_of(row: ResponseResult) -> Materiality:
    assert isinstance(row.material, Materiality)
    return row.material


@pytest.mark.parametrize(
    "rows",
    [screens.two_by_three(2), [{"x": x, "iteration": at, "value": x + at / 8} for at in (0, 1) for x in (0, 1)]],
)
def test_values_that_repeat_exactly_have_no_error_to_compare_with(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    made = made_of(tmp_path, rows)
    assert made.tests == 0
    assert made.verdict[0].startswith("nothing could be tested: the error is 0: the values are too coarse")
    with pytest.raises(UsageError) as error:
        end("data.csv", made)
    assert "nothing could be tested" in str(error.value)


@pytest.mark.parametrize("iterations", [4, 6])
def test_nothing_found_is_an_answer(tmp_path: Path, iterations: int) -> None:
    rows = [{"x": x, "iteration": at, "value": x * (-1) ** at} for at in range(iterations) for x in (0, 1)]
    made = made_of(tmp_path, rows)
    assert made.verdict[0].startswith("effects that matter: none found (1 effect tested")
    end("data.csv", made)


def test_batches_can_test_effects_that_their_few_iterations_cannot(tmp_path: Path) -> None:
    values = (10, 12, 11, 14, 13, 10, 11, 10, 9, 13, 12, 11)
    rows = [row | {"value": value} for row, value in zip(screens.split_plot(), values, strict=True)]
    made = made_of(tmp_path, rows)
    assert not made.factors_matter
    assert made.verdict[0].startswith("effects that matter: none found")
    end("data.csv", made)


def practice(made: ScreenResult) -> list[str]:
    return [line for line in made.verdict if line.startswith("practical significance")]


@pytest.mark.parametrize("value", [5.0, 0.1, 1e149])
@pytest.mark.parametrize("iterations", [10, 7])
def test_rounding_is_not_an_effect_that_samples_show(tmp_path: Path, value: float, iterations: int) -> None:
    rows = [row | {"wall": value} for row in screens.planted(10)]
    kept = [row for row in rows if row["iteration"] < iterations or row["a"]]
    made = made_of(tmp_path, kept, WALL)
    assert practice(made) == ["practical significance: wall: there is no effect"]
    assert page_tables.material(made.responses["wall"]) == ("There is no effect.", None)


def test_an_inert_factor_has_no_adjusted_effect_of_rounding(tmp_path: Path) -> None:
    rows = [{"x": x, "y": y, "iteration": at, "value": 5 + 0.1 * x} for at in range(6) for x in (0, 1) for y in (0, 1)]
    effects = made_of(tmp_path, rows).responses["value"].effects
    for each in effects.values():
        assert each.adjusted == each.effect
    assert effects["x"].effect == pytest.approx(0.1)
    assert effects["y"].effect == 0


def test_untestable_effects_are_not_counted_among_those_that_samples_show(tmp_path: Path) -> None:
    path = table(tmp_path / "data.csv", screens.two_by_three(8))
    made = screened(path, replace(QUICK, only=("fp=0 prf=1", "fp=1 prf=2")))[0]
    row = made.responses["value"]
    assert [name for name, each in row.effects.items() if not each.testable] == ["fp", "prf"]
    assert set(material_of(row).effects) == {"os"}
    rows = [each for each in screens.two_by_three(8) if each["os"] == (each["fp"] == 1)]
    alone = made_of(tmp_path, rows, Chosen(factors=("os", "fp", "prf")))
    assert material_of(alone.responses["value"]).effects.keys() == {"prf"}


def test_without_a_separate_effect_a_reason_replaces_the_sizes(tmp_path: Path) -> None:
    rows = [{"x": x, "y": x, "iteration": at, "value": x + at} for at in range(6) for x in (0, 1)]
    made = made_of(tmp_path, rows, Chosen(factors=("x", "y")))
    assert made.responses["value"].material == NoMateriality("no main effect can be estimated")
    assert not practice(made)
    assert page_tables.material(made.responses["value"]) == ("no main effect can be estimated", None)


def test_the_sizes_on_the_terminal_are_those_of_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row | {"value": row["value"] + row["iteration"]} for row in screens.two_by_three(12)]
    made = screened(table(tmp_path / "data.csv", rows), replace(QUICK, minus=("fp=0 prf=2",)))[0]
    assert "fp (+2.5 adjusted, +" in made.verdict[0]
    assert made.responses["value"].effects["fp"].effect == pytest.approx(8 / 3)
    render_screen.analysis(made)
    lines = capsys.readouterr().out.splitlines()
    (shown,) = [line for line in lines if line.split()[:1] == ["fp"]]
    assert shown.split()[1:3] == ["+2.5", "adj."]
    (other,) = [line for line in lines if line.split()[:1] == ["os"]]
    assert "adj." not in other


def test_the_correction_has_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    render_screen.analysis(made_of(tmp_path, screens.pilot()))
    shown = capsys.readouterr().out
    assert "p step-down" in shown
    assert "p after the step-down Lenth correction over 7 effects is below 0.05" in shown
    assert "Holm" not in shown
    noisy = [row | {"value": row["value"] + 0.1 * at % 0.7} for at, row in enumerate(screens.two_by_three(3))]
    render_screen.analysis(made_of(tmp_path, noisy))
    shown = capsys.readouterr().out
    assert "p Holm" in shown
    assert "p after Holm's correction over " in shown
    assert "step-down" not in shown


def test_an_effect_that_is_balanced_or_unknown_has_no_mark() -> None:
    assert render_screen.size(AdjustedSize(effect=0.25, adjusted=0.25, signed=True, testable=True)) == "+0.25"
    assert render_screen.size(AdjustedSize(effect=None, adjusted=None, signed=False, testable=True)) == "-"
    assert render_screen.size(EffectSize(effect=0.25, signed=False, testable=True)) == "0.25"


@pytest.mark.slow
def test_one_interaction_aliased_with_many_main_effects_is_not_said_to_matter(tmp_path: Path) -> None:
    """Twelve runs of Plackett and Burman in which nothing but B and C together does anything."""
    draw = np.random.default_rng(1)
    names = "ABCDEFGHJKL"
    rows = [
        dict(zip(names, treatment, strict=True))
        | {"iteration": at, "value": 10 + 1.5 * (2 * treatment[1] - 1) * (2 * treatment[2] - 1) + 0.3 * draw.normal()}
        for at in range(10)
        for treatment in plackett_burman(names, 12).treatments
    ]
    made = made_of(tmp_path, rows)
    assert made.verdict[0].startswith("effects that matter, or interactions aliased with them: ")
    assert (
        "cannot be separated from interactions of other factors, which the test assumes to be inert" in made.verdict[1]
    )
    assert f"A from B{TIMES}C" in made.verdict[1]
    significant = {effect for *_, effect, each in made.every_effect if each.significant}
    assert not significant & {"B", "C"}


@pytest.mark.slow
def test_aliased_interactions_are_tested_as_their_sum(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    half = best_fraction("ABCD", 8).treatments
    for iterations, by in ((25, "signed ranks in blocks"), (3, "analysis of variance")):
        rows = [
            dict(zip("ABCD", treatment, strict=True))
            | {"iteration": at, "value": 10 + at + 0.9 * (treatment[0] != treatment[1]) + 0.3 * draw.normal()}
            for at in range(iterations)
            for treatment in half
        ]
        (row,) = made_of(tmp_path, rows).responses.values()
        sums = {each.name: each for each in row.contrasts}
        assert set(sums) == {f"{a}{TIMES}{b} + {c}{TIMES}{d}" for a, b, c, d in ("ABCD", "ACBD", "ADBC")}
        found = sums[f"A{TIMES}B + C{TIMES}D"]
        assert found.significant
        assert found.test is not None
        assert found.test.by == by
        assert found.effect == pytest.approx(-0.9, abs=0.3)


def test_single_values_are_not_called_equal(tmp_path: Path) -> None:
    made = made_of(tmp_path, screens.pilot())
    assert not any("alike" in line for line in made.verdict)


def test_a_coarse_clock_is_announced(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    rows = [{"x": x, "iteration": at, "value": round(7 + 0.001 * draw.normal(), 3)} for at in range(12) for x in (0, 1)]
    made = made_of(tmp_path, rows)
    assert any(line.startswith("beware: value: read in steps of 0.001, and values of one") for line in made.verdict)


@pytest.mark.slow
def test_an_inert_hard_factor_is_not_reported_to_have_the_same_order_in_all_boxes(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    rows = []
    for boot in range(4):
        level = 3 * draw.normal()
        for at, b, c in product(range(4), (0, 1), (0, 1, 2)):
            value = level + draw.normal()
            rows.append({"boot": boot, "iteration": at, "os": boot % 2, "b": b, "c": c, "value": value})
    made = made_of(tmp_path, rows)
    plot = made.responses["value"].blocks["os"]
    assert plot is not None
    assert plot.chance == 1
    assert not any(line.startswith("the same order of levels") for line in made.verdict)
