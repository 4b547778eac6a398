"""What the verdict says, and with which exit code, where little can be said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

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
from cbench.screen.data.read_table import Chosen
from cbench.screen.report import page_tables
from cbench.screen.stats.practical_significance import Materiality
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.screens import QUICK, screened, table

WALL = Chosen(values=("wall",), factors=("a", "b", "c"))
UNTOLD = "nothing could be told: too few iterations"


def made_of(tmp_path: Path, rows: list[dict[str, Any]], chosen: Chosen | None = None) -> ScreenResult:
    return screened(table(tmp_path / "data.csv", rows), chosen=chosen)[0]


def material_of(row: ResponseResult) -> Materiality:
    assert isinstance(row.material, Materiality)
    return row.material


def few(made: ScreenResult) -> list[str]:
    return [line for line in made.verdict if "too few iterations to tell" in line]


@pytest.mark.parametrize(
    "rows",
    [
        screens.two_by_three(2),
        [{"x": x, "iteration": at, "value": x + at / 10} for at in (0, 1) for x in (0, 1)],
        [row | {"value": row["wall"]} for row in screens.planted(2)],
    ],
)
def test_no_answer_is_claimed_where_no_result_could_have_been_significant(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    made = made_of(tmp_path, [{key: row[key] for key in row if key not in ("wall", "other")} for row in rows])
    assert made.tests > 0
    assert made.verdict[0] == UNTOLD
    assert len(few(made)) == 1
    with pytest.raises(UsageError) as error:
        end("data.csv", made)
    assert str(error.value) == f"data.csv: {UNTOLD}"


def test_one_iteration_more_and_nothing_found_is_an_answer(tmp_path: Path) -> None:
    rows = [{"x": x, "iteration": at, "value": x * (-1) ** at} for at in range(6) for x in (0, 1)]
    made = made_of(tmp_path, rows)
    assert made.verdict[0].startswith("what matters: nothing was found (1 effect tested")
    end("data.csv", made)
    less = made_of(tmp_path, rows[:-2])
    assert less.verdict[0] == UNTOLD


def test_batches_can_tell_what_their_few_iterations_cannot(tmp_path: Path) -> None:
    values = (10, 12, 11, 14, 13, 10, 11, 10, 9, 13, 12, 11)
    rows = [row | {"value": value} for row, value in zip(screens.split_plot(), values, strict=True)]
    made = made_of(tmp_path, rows)
    assert not made.factors_matter
    assert made.verdict[0].startswith("what matters: nothing was found")
    end("data.csv", made)


def two_responses(iterations: int) -> list[dict[str, Any]]:
    """x does the same to both; of the second there are fewer iterations."""
    return [
        {"x": x, "iteration": at, "response": name, "value": x + at / 100 + x * at / 50}
        for name, many in (("long", 20), ("short", iterations))
        for at in range(many)
        for x in (0, 1)
    ]


def test_what_was_told_is_not_called_impossible(tmp_path: Path) -> None:
    made = made_of(tmp_path, two_responses(6))
    assert all(row.effects["x"].significant for row in made.responses.values())
    assert not few(made)
    plots = made_of(tmp_path, screens.split_plot())
    assert all(row.effects["B"].significant for row in plots.responses.values())
    assert not few(plots)


def test_too_few_iterations_for_what_is_left_are_told(tmp_path: Path) -> None:
    made = made_of(tmp_path, two_responses(5))
    assert [row.effects["x"].significant for row in made.responses.values()] == [True, False]
    assert few(made) == [
        "beware: too few iterations to tell any effect within them from chance: "
        "of 2 effects that are tested 1 is told, for the next it takes 6, short has 5"
    ]


def practice(made: ScreenResult) -> list[str]:
    return [line for line in made.verdict if line.startswith("does it matter in practice")]


@pytest.mark.parametrize("value", [5.0, 0.1, 1e300])
@pytest.mark.parametrize("iterations", [10, 7])
def test_rounding_is_no_effect_that_samples_show(tmp_path: Path, value: float, iterations: int) -> None:
    rows = [row | {"wall": value} for row in screens.planted(10)]
    kept = [row for row in rows if row["iteration"] < iterations or row["a"]]
    made = made_of(tmp_path, kept, WALL)
    assert practice(made) == ["does it matter in practice: wall: there is no effect"]
    assert page_tables.material(made.responses["wall"]) == ("There is no effect.", None)


def test_an_inert_factor_has_no_adjusted_effect_of_rounding(tmp_path: Path) -> None:
    rows = [{"x": x, "y": y, "iteration": at, "value": 5 + 0.1 * x} for at in range(6) for x in (0, 1) for y in (0, 1)]
    effects = made_of(tmp_path, rows).responses["value"].effects
    for each in effects.values():
        assert each.adjusted == each.effect
    assert effects["x"].effect == pytest.approx(0.1)
    assert effects["y"].effect == 0


def test_what_cannot_be_told_is_not_counted_among_the_effects_that_samples_show(tmp_path: Path) -> None:
    path = table(tmp_path / "data.csv", screens.two_by_three(8))
    made = screened(path, replace(QUICK, only=("fp=0 prf=1", "fp=1 prf=2")))[0]
    row = made.responses["value"]
    assert [name for name, each in row.effects.items() if not each.testable] == ["fp", "prf"]
    assert set(material_of(row).effects) == {"os"}
    alone = made_of(tmp_path, [each for each in screens.two_by_three(8) if each["os"] == (each["fp"] == 1)])
    assert material_of(alone.responses["value"]).effects.keys() == {"prf"}


def test_no_effect_that_can_be_told_is_a_reason_in_place_of_sizes(tmp_path: Path) -> None:
    rows = [{"x": x, "y": x, "iteration": at, "value": x + at} for at in range(6) for x in (0, 1)]
    made = made_of(tmp_path, rows)
    assert made.responses["value"].material == NoMateriality("no main effect that can be told")
    assert not practice(made)
    assert page_tables.material(made.responses["value"]) == ("no main effect that can be told", None)


def test_the_terminals_sizes_are_the_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row | {"value": row["value"] + row["iteration"]} for row in screens.two_by_three(12)]
    made = screened(table(tmp_path / "data.csv", rows), replace(QUICK, minus=("fp=0 prf=2",)))[0]
    assert "fp (+2.5 adjusted)" in made.verdict[0]
    assert made.responses["value"].effects["fp"].effect == pytest.approx(8 / 3)
    render_screen.analysis(made)
    lines = capsys.readouterr().out.splitlines()
    (shown,) = [line for line in lines if line.split()[:1] == ["fp"]]
    assert shown.split()[1:3] == ["+2.5", "adj."]
    (other,) = [line for line in lines if line.split()[:1] == ["os"]]
    assert "adj." not in other


def test_an_effect_that_is_balanced_or_unknown_has_no_mark() -> None:
    assert render_screen.size(AdjustedSize(effect=0.25, adjusted=0.25, signed=True, testable=True)) == "+0.25"
    assert render_screen.size(AdjustedSize(effect=None, adjusted=None, signed=False, testable=True)) == "-"
    assert render_screen.size(EffectSize(effect=0.25, signed=False, testable=True)) == "0.25"
