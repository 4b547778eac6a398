"""The analysis of screens whose answers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.samples import tolerances
from cbench.screen.data.data import UNQUESTIONED
from quiet.errors import UsageError
from tests import CHECKOUT
from tests.cbench.screen import screens
from tests.cbench.screen.screens import BOTH, QUICK, WALL, analysed, cross, table


def only(made: dict[str, Any]) -> dict[str, Any]:
    (row,) = made["responses"].values()
    return dict(row)


@pytest.fixture
def pilot(tmp_path: Path) -> dict[str, Any]:
    return analysed(table(tmp_path / "pilot.csv", screens.pilot()))[0]


def test_the_pilot_plant_has_its_published_effects(pilot: dict[str, Any]) -> None:
    row = only(pilot)
    assert {name: each["effect"] for name, each in row["effects"].items()} == {"T": 23, "C": -5, "K": 1.5}
    assert {each["name"]: each["effect"] for each in row["interactions"]} == {
        cross("T", "C"): 1.5,
        cross("T", "K"): 10,
        cross("C", "K"): 0,
    }
    assert [each["mean"] for each in row["effects"]["T"]["levels"]] == [52.75, 75.75]
    cells = next(each["cells"] for each in row["interactions"] if each["name"] == cross("T", "K"))
    assert cells == [[57, 48.5], [70, 81.5]]


def test_the_pilot_plants_block_plots_agree_as_published(pilot: dict[str, Any]) -> None:
    blocks = only(pilot)["blocks"]
    assert {name: (each["agreeing"], each["n"], each["consistent"]) for name, each in blocks.items()} == {
        "T": (4, 4, True),
        "C": (4, 4, True),
        "K": (2, 4, False),
    }
    assert blocks["T"]["chance"] == blocks["C"]["chance"] == 0.125
    assert blocks["C"]["order"] == ["1", "0"]
    assert blocks["K"]["p"] == 1
    assert blocks["T"]["needed"] == 6
    assert not blocks["T"]["able"]


def test_one_iteration_of_two_levels_is_reported_by_lenths_method(pilot: dict[str, Any]) -> None:
    row = only(pilot)
    assert pilot["tests"] == 7
    assert pilot["verdict"][0].startswith("effects that matter: T (+23, +35.8 %, ")
    assert row["lenth"]["pse"] == pytest.approx(2.25)
    assert row["effects"]["T"]["test"]["by"] == "Lenth's pseudo standard error"
    assert [each["name"] for each in row["contrasts"]] == [cross("T", "C", "K")]
    assert any(line.startswith("significant individually but not after correction: ") for line in pilot["verdict"])
    assert any(line.startswith("no treatment has a second value: 7 contrasts") for line in pilot["verdict"])


def test_leaving_out_a_treatment_without_its_partners_is_seen_in_the_effects(tmp_path: Path) -> None:
    path = table(tmp_path / "tn.csv", screens.two_by_three())
    complete = only(analysed(path)[0])
    assert complete["effects"]["fp"]["effect"] == pytest.approx(2.3333, abs=5e-5)
    residuals = next(each["residuals"] for each in complete["interactions"] if each["name"] == cross("fp", "prf"))
    assert residuals[0] == pytest.approx([0.6667, -0.8333, 0.1667], abs=5e-5)
    assert residuals[1] == pytest.approx([-0.6667, 0.8333, -0.1667], abs=5e-5)
    means = [each["mean"] for each in complete["effects"]["prf"]["levels"]]
    assert means == [10.5, 16, 14]
    without = analysed(path, replace(QUICK, exclude=True))[0]
    assert without["filter"]["name"] == UNQUESTIONED
    assert only(without)["effects"]["fp"]["effect"] == pytest.approx(2.6667, abs=5e-5)
    assert any("not balanced in fp, prf" in line for line in without["verdict"])
    rebalanced = only(analysed(path, replace(QUICK, minus=("prf=2",)))[0])
    assert rebalanced["effects"]["fp"]["effect"] == 2.5


def test_in_an_unbalanced_design_the_verdict_uses_unbiased_effects(tmp_path: Path) -> None:
    rows = [row for row in screens.planted(20, effects=(0.05, 0.2, 0.0)) if (row["a"], row["b"]) != (0, 1) or row["c"]]
    made, _ = analysed(table(tmp_path / "skew.csv", rows), chosen=WALL_ONLY)
    effects = only(made)["effects"]
    assert effects["a"]["effect"] > effects["a"]["adjusted"] + 0.02
    size = f"{effects['a']['adjusted']:+.3g}"
    assert f"a ({size} adjusted, +" in made["verdict"][0]
    assert made["responses"]["wall"]["material"]["effects"]["a"]["magnitude"] == effects["a"]["adjusted"]


def test_factors_that_go_together_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "tn.csv", screens.two_by_three(3))
    made, _ = analysed(path, replace(QUICK, only=("fp=0 prf=1", "fp=1 prf=2")))
    used = next(each for each in made["design"]["sets"] if each["name"] == made["filter"]["name"])
    assert {each["effect"]: each["with"] for each in used["aliased"] if each["effect"] in ("fp", "prf")} == {
        "fp": ["prf"],
        "prf": ["fp"],
    }
    assert any("fp cannot be separated from prf" in line for line in made["verdict"])
    assert only(made)["blocks"]["fp"]["together"] == ["prf"]
    assert only(made)["blocks"]["fp"]["chance"] == 0.5


def test_hard_factors_are_tested_against_their_batches(tmp_path: Path) -> None:
    made, data = analysed(table(tmp_path / "plots.csv", screens.split_plot()))
    assert [factor.hard for factor in data.factors] == [True, False]
    rows = {each["source"]: each for each in only(made)["split_plot"]["rows"]}
    assert rows["os"]["ss"] == pytest.approx(90.75)
    assert rows["os"]["f"] == pytest.approx(22.6875)
    assert rows["os"]["p"] == pytest.approx(0.0088847, abs=5e-8)
    assert rows["whole-plot error"]["ss"] == pytest.approx(16)
    assert rows[cross("os", "B")]["p"] == pytest.approx(0.0213116, abs=5e-8)
    assert rows["total"]["ss"] == pytest.approx(152.25)
    assert only(made)["effects"]["os"]["p"] == pytest.approx(0.0088847, abs=5e-8)
    assert only(made)["effects"]["os"]["test"]["by"] == "split-plot analysis of variance"


def test_a_hard_factor_with_one_batch_per_level_is_reported_as_untestable(tmp_path: Path) -> None:
    rows = [each | {"boot": each["os"]} for each in screens.two_by_three(6)]
    made, _ = analysed(table(tmp_path / "one.csv", rows))
    assert only(made)["effects"]["os"]["p"] is None
    assert not only(made)["effects"]["os"]["significant"]
    assert any(line.startswith("os cannot be tested: one batch per level") for line in made["verdict"])
    assert only(made)["effects"]["fp"]["p"] is not None


def test_a_dependency_on_the_boot_is_found_within_a_level(tmp_path: Path) -> None:
    made, _ = analysed(table(tmp_path / "boots.csv", screens.boots()))
    first, second = only(made)["boots"]
    assert (first["level"], second["level"]) == ("os=0", "os=1")
    assert first["batches"] == ["a", "b"]
    assert first["H"] == pytest.approx(0.4)
    assert first["p"] == pytest.approx(0.5271, abs=5e-5)
    assert first["f"] == pytest.approx(0.23077, abs=5e-6)
    assert first["icc"] == 0
    assert second["H"] == pytest.approx(6.8182, abs=5e-5)
    assert second["p"] == pytest.approx(0.0090234, abs=5e-8)
    assert second["ms_between"] == pytest.approx(0.02601)
    assert second["var_boot"] == pytest.approx(0.005091)
    assert second["icc"] == pytest.approx(0.90170, abs=5e-6)
    assert [first["depends"], second["depends"]] == [False, True]
    assert any(line.startswith("values depend on the batch: value at os=1 (90 %") for line in made["verdict"])


@pytest.mark.slow
def test_planted_effects_are_found_and_nothing_else(tmp_path: Path) -> None:
    made, _ = analysed(table(tmp_path / "planted.csv", screens.planted()), chosen=BOTH)
    found = {
        name: {
            effect
            for effect, each in [*row["effects"].items(), *((each["name"], each) for each in row["interactions"])]
            if each["significant"]
        }
        for name, row in made["responses"].items()
    }
    assert found == {"wall": {"a", "c", cross("a", "c")}, "other": set()}
    assert made["factors_matter"]
    assert made["verdict"][0].startswith("effects that matter: ")
    assert "c (wall +0.2" in made["verdict"][0]
    assert "b (" not in made["verdict"][0]


@pytest.mark.slow
def test_nothing_is_found_without_an_effect(tmp_path: Path) -> None:
    made, _ = analysed(
        table(tmp_path / "none.csv", screens.planted()),
        chosen=screens.Chosen(values=("other",), factors=("a", "b", "c")),
    )
    assert not made["factors_matter"]
    assert made["verdict"][0].startswith("effects that matter: none found (6 effects tested in 1 response")


@pytest.mark.slow
def test_iterations_too_few_for_ranks_are_analyzed_value_by_value(tmp_path: Path) -> None:
    few, _ = analysed(table(tmp_path / "few.csv", screens.planted(13)), chosen=WALL_ONLY)
    assert {each["test"]["by"] for each in only(few)["effects"].values()} == {"analysis of variance"}
    assert only(few)["anova_error"] == "values of one treatment"
    assert only(few)["effects"]["c"]["significant"]
    enough, _ = analysed(table(tmp_path / "enough.csv", screens.planted(14)), chosen=WALL_ONLY)
    assert {each["test"]["by"] for each in only(enough)["effects"].values()} == {"signed ranks in blocks"}
    assert only(enough)["effects"]["c"]["significant"]


def test_exact_values_which_leave_no_error_are_tested_by_ranks(tmp_path: Path) -> None:
    """A counter that reads the same in every iteration: three more where a is 1."""
    rows = [{"a": a, "b": b, "iteration": at, "value": 100 + 3 * a} for at in range(9) for a in (0, 1) for b in (0, 1)]
    made, _ = analysed(table(tmp_path / "exact.csv", rows))
    found = only(made)["effects"]
    assert {each["test"]["by"] for each in found.values()} == {"signed ranks in blocks"}
    assert [each["significant"] for each in found.values()] == [True, False]
    assert found["a"]["test"]["p"] == 2.0**-8


def test_aliased_interactions_share_one_line(tmp_path: Path) -> None:
    half = [row for row in screens.planted(10) if (row["a"] + row["b"] + row["c"]) % 2]
    made, _ = analysed(table(tmp_path / "half.csv", half), chosen=WALL_ONLY)
    mains = [line for line in made["verdict"] if "cannot be separated from" in line]
    assert mains[0] == made["verdict"][1]
    assert made["verdict"][0].startswith("effects that matter, or interactions aliased with them: ")
    assert f"a from {cross('b', 'c')}" in mains[0] or f"c from {cross('a', 'b')}" in mains[0]
    assert "are interactions that cannot be separated from other effects" in mains[-1]


@pytest.mark.slow
def test_the_sample_size_that_shows_the_effects_is_reported(tmp_path: Path) -> None:
    made, _ = analysed(table(tmp_path / "planted.csv", screens.planted(100)), chosen=WALL_ONLY)
    material = only(made)["material"]
    assert material["median_effect"] == pytest.approx(0.07, abs=0.02)
    assert sorted((each["method"], each["n"]) for each in material["widths"]) == [
        (method, n) for method in ("BCa", "t") for n in (5, 10, 20, 40)
    ]
    assert material["own"]["n"] == 100
    assert any(
        line.startswith("practical significance: wall: the median main effect is 0.0") for line in made["verdict"]
    )
    (study, *_) = only(made)["studies"]
    assert {each["n"] for each in study["sizes"]} == {5, 10, 20, 40}
    assert all(0.5 < each["coverage"] <= 1 for each in study["sizes"])


WALL_ONLY = screens.Chosen(values=("wall",), factors=("a", "b", "c"))


def test_intervals_contain_the_mean_and_report_their_replicates(tmp_path: Path) -> None:
    made, data = analysed(table(tmp_path / "planted.csv", screens.planted()), chosen=WALL_ONLY)
    for row in only(made)["treatments"]:
        values = data.series[0].of(row["treatment"])
        assert row["n"] == values.size == 40
        assert row["mean"] == pytest.approx(float(values.mean()))
        for method in ("bca_mid", "bca_strict", "t"):
            low, high = row[method]
            assert low < row["mean"] < high
        assert row["replicates"] >= 20_000
    assert WALL.values == ("wall",)


def test_of_few_values_every_resample_is_counted_and_nothing_is_drawn(tmp_path: Path) -> None:
    rows = [{"a": a, "iteration": number, "value": value} for a in "xy" for number, value in enumerate((0, 1, 5))]
    options = replace(QUICK, confidence=0.8)
    found = [only(analysed(table(tmp_path / "few.csv", rows), replace(options, seed=seed))[0]) for seed in (1, 2)]
    for row in (each for made in found for each in made["treatments"]):
        assert row["bca_mid"] == pytest.approx([0.49578, 3.66667], abs=5e-6)
        assert row["bca_strict"] == pytest.approx([1 / 3, 10 / 3])
        assert (row["replicates"], row["why"]) == (27, None)


def test_the_pixel_of_a_response_without_a_unit_is_its_own(tmp_path: Path) -> None:
    rows = [each | {"other": 1e6 * each["other"]} for each in screens.planted(10)]
    data = screens.read(table(tmp_path / "planted.csv", rows), screens.BOTH)
    (alone,) = tolerances(data.series[:1], 0.95)
    assert tolerances(data.series, 0.95)[0] == alone
    timed = [replace(each, unit="s") for each in data.series]
    assert tolerances(timed, 0.95)[0] == tolerances(timed, 0.95)[1] > alone


@pytest.mark.parametrize(("n", "counted"), [(8, True), (9, False)])
def test_up_to_eight_values_are_few(tmp_path: Path, n: int, counted: bool) -> None:
    rows = [{"a": a, "iteration": number, "value": 1.5**number} for a in "xy" for number in range(n)]
    made, _ = analysed(table(tmp_path / "few.csv", rows))
    assert {each["replicates"] == n**n for each in only(made)["treatments"]} == {counted}


def test_the_same_seed_gives_the_same_analysis(tmp_path: Path) -> None:
    path = table(tmp_path / "planted.csv", screens.planted(20))
    first, second = (json.dumps(analysed(path, chosen=WALL_ONLY)[0]) for _ in range(2))
    other = json.dumps(analysed(path, replace(QUICK, seed=2), chosen=WALL_ONLY)[0])
    assert first == second != other


def test_failures_and_missing_cells_are_reported(tmp_path: Path) -> None:
    rows = screens.planted(12)
    for row in rows:
        row["other"] = "" if (row["a"], row["b"], row["c"]) == (0, 0, 0) else row["other"]
    rows[0]["wall"] = ""
    made, _ = analysed(table(tmp_path / "holes.csv", rows), chosen=BOTH)
    assert made["responses"]["wall"]["failed"] == 1
    assert (made["responses"]["wall"]["blocks_dropped"], made["responses"]["wall"]["blocks_partial"]) == (0, 1)
    said = "beware: wall: 1 of 12 iterations lack a value; their other values count, and effects are adjusted for this"
    assert said in made["verdict"]
    assert made["responses"]["other"]["unobtainable"] == ["a=0 b=0 c=0"]
    assert len(made["responses"]["other"]["treatments"]) == 7
    assert sum(box["missing"] for box in made["responses"]["other"]["blocks"]["a"]["boxes"]) == 1


def test_a_treatment_whose_trials_all_failed_is_missing_and_not_unobtainable(tmp_path: Path) -> None:
    rows = screens.planted(12)
    for row in rows:
        if (row["a"], row["b"], row["c"]) == (1, 1, 1):
            row["wall"] = row["other"] = ""
    made, _ = analysed(table(tmp_path / "failed.csv", rows), chosen=BOTH)
    assert made["responses"]["wall"]["missing"] == ["a=1 b=1 c=1"]
    assert made["responses"]["wall"]["failed"] == 12
    assert "beware: wall has no values of a=1 b=1 c=1" in made["verdict"]


@pytest.mark.parametrize("value", [5.0, 0.0, 1e149, -1e-300])
def test_values_that_are_all_alike_have_no_effect(tmp_path: Path, value: float) -> None:
    rows = [row | {"wall": value} for row in screens.planted(5)]
    made, _ = analysed(table(tmp_path / "alike.csv", rows), chosen=WALL_ONLY)
    assert not made["factors_matter"]
    assert "beware: wall: all values of each treatment are equal" in made["verdict"]
    assert {each["effect"] for each in only(made)["effects"].values()} == {0}
    json.dumps(made, allow_nan=False)


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 0, "iteration": 0, "value": 1}],
        [{"a": 0, "iteration": 0, "value": 1}, {"a": 1, "iteration": 0, "value": 2}],
        [{"a": 0, "iteration": i, "value": i} for i in range(9)],
        [{"a": i % 2, "iteration": i // 2, "value": "" if i else 3} for i in range(8)],
    ],
)
def test_too_little_for_a_test_is_a_reported_reason(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    made, _ = analysed(table(tmp_path / "few.csv", rows))
    assert made["verdict"][0].startswith("nothing could be tested: ")
    json.dumps(made, allow_nan=False)


def test_numbers_of_any_size_stay_numbers(tmp_path: Path) -> None:
    rows = [row | {"wall": row["wall"] * 1e148} for row in screens.planted(6)]
    made, _ = analysed(table(tmp_path / "large.csv", rows), chosen=WALL_ONLY)
    json.dumps(made, allow_nan=False)
    assert np.isfinite(only(made)["effects"]["c"]["effect"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"abridgment": "none"}, "--abridgment none: unknown; the data define none"),
        ({"minus": ("xx=1",)}, "--minus xx=1: no factor xx; the factors are os, fp, prf"),
        ({"only": ("prf=9",)}, "--only prf=9: prf has no level '9'; its levels are 0, 1, 2"),
        (
            {"only": ("prf=1",), "minus": ("fp=*",)},
            "only prf=1; minus fp=*: leaves no treatment; choose a wider filter",
        ),
    ],
)
def test_choices_that_do_not_exist_are_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    path = table(tmp_path / "tn.csv", screens.two_by_three())
    with pytest.raises(UsageError) as error:
        analysed(path, replace(QUICK, **options))
    assert str(error.value) == said


def test_the_shape_is_the_documented_one(tmp_path: Path) -> None:
    made, _ = analysed(table(tmp_path / "planted.csv", screens.planted(5)), chosen=BOTH)
    text = (CHECKOUT / "docs" / "screen-analysis.md").read_text(encoding="utf-8")
    row = made["responses"]["wall"]
    keys = {*made, *made["design"], *made["design"]["sets"][0], *row, *row["treatments"][0], *row["effects"]["a"]}
    keys |= {
        *row["effects"]["a"]["test"],
        *row["interactions"][0],
        *row["blocks"]["a"],
        *row["blocks"]["a"]["boxes"][0],
    }
    keys |= {*row["material"], *ScreenOptions.__slots__} - {*ScreenOptions.__slots__}
    assert not [key for key in sorted(keys) if f"`{key}`" not in text]


@pytest.mark.parametrize(
    ("scale", "said"),
    [(0.1, "wide, less than most effects"), (2.0, "and more than most others"), (100.0, "wide, more than any effect")],
)
def test_the_effects_visible_at_a_usual_sample_size_are_reported(tmp_path: Path, scale: float, said: str) -> None:
    rows = screens.planted(30, effects=(0.05, 0.04, 0.5))
    draw = np.random.default_rng(9)
    rows = [row | {"wall": row["wall"] + scale * 0.1 * draw.standard_normal()} for row in rows]
    made, _ = analysed(table(tmp_path / "planted.csv", rows), chosen=WALL_ONLY)
    (line,) = [line for line in made["verdict"] if line.startswith("practical significance: wall: ")]
    assert said in line


def test_of_many_responses_some_are_named_and_the_others_counted(tmp_path: Path) -> None:
    rows = [row | {f"v{number}": number + row["wall"] for number in range(8)} for row in screens.planted(3)]
    chosen = screens.Chosen(values=tuple(f"v{number}" for number in range(8)), factors=("a", "b", "c"))
    made, _ = analysed(table(tmp_path / "many.csv", rows), chosen=chosen)
    assert "5 responses are shown; the other 3 are in --json" in made["verdict"]
