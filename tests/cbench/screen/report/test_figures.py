"""The figures in a report of a screen: hand-computed silhouettes, and the contents of each figure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbench.screen.analysis.result import InteractionResult, SampleResult, ScreenResult
from cbench.screen.report import figures, figures_effects
from cbench.screen.report.figures import AxisNames
from tests.cbench.screen import screens
from tests.cbench.screen.screens import BOTH, cross, screened, table

FEW = np.array([1.0, 2, 2, 3, 8])


@pytest.mark.slow
def test_the_silhouette_of_five_values_is_the_published_one() -> None:
    assert figures.silhouette(FEW) == pytest.approx([0.894305, 1, 1, 0.905722, 0.283448], abs=5e-7)


@pytest.mark.parametrize("tail", [0.0, 100.0])
def test_the_silhouette_of_many_values_is_that_of_scipy(tail: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(3)
    values = np.concatenate([draw.normal(size=1990), draw.normal(size=10) + tail])
    wanted = stats.gaussian_kde(values)(values)
    assert figures.silhouette(values) == pytest.approx(wanted / wanted.max(), abs=0.02)


def test_values_of_any_size_have_a_silhouette() -> None:
    for scale in (1e-300, 1.0, 1e300):
        assert figures.silhouette(FEW * scale) == pytest.approx(figures.silhouette(FEW))


def row(n: int, number: int = 0, **changes: Any) -> SampleResult:
    made = SampleResult(
        treatment=number,
        name=f"a={number}",
        questionable=None,
        n=n,
        failed=0,
        mean=5.0,
        sd=1.0,
        median=5.0,
        min=0.0,
        max=9.0,
        alike=False,
        bca_mid=(4.0, 6.0),
        bca_strict=None,
        t=(3.9, 6.1),
        replicates=1000,
        why=None,
        first_run=None,
    )
    return replace(made, **changes)


LABEL = AxisNames([["0"], ["1"]], ["a"], "s")


def test_many_points_are_one_picture_and_few_are_shapes() -> None:
    draw = np.random.default_rng(1)
    many = figures.samples("k", [row(5000)], [draw.normal(size=5000)], LABEL, 1)
    few = figures.samples("k", [row(50)], [draw.normal(size=50)], LABEL, 1)
    assert many.count("data:image/png;base64,") == 1
    assert len(many) < 200_000
    assert "data:image" not in few
    assert few.count("<use") > 50


def test_a_sample_that_is_all_alike_is_a_line() -> None:
    text = figures.samples("k", [row(9, alike=True)], [np.full(9, 5.0)], LABEL, 1)
    assert "<use" not in re.sub(r'<g id="[^"]*tick.*?</g>', "", text).split("line2d")[0] or "L " in text


def test_questionable_treatments_are_red() -> None:
    good = figures.samples("k", [row(9)], [FEW], LABEL, 1)
    bad = figures.samples("k", [row(9, questionable="broken")], [FEW], LABEL, 1)
    assert figures.RED not in good
    assert figures.RED in bad


def test_an_interval_narrower_than_a_pixel_is_omitted() -> None:
    wide = [row(9), row(9, 1, mean=6.0, bca_mid=(5.0, 7.0), t=(5.0, 7.0))]
    narrow = [replace(each, bca_mid=(mean - 1e-4, mean + 1e-4)) for each, mean in zip(wide, (5.0, 6.0), strict=True)]
    shown = figures.means("k", [("x", wide, LABEL)])
    assert "interval by BCa" in shown
    assert "interval by t" in shown
    assert "interval by BCa" not in figures.means("k", [("x", narrow, LABEL)])


def test_the_line_of_the_mean_includes_treatments_that_are_not_shown() -> None:
    def line(rest: float) -> str:
        means = [9.0] + [5.0] * 23 + [rest] * 6
        rows = [row(9, mean=mean, bca_mid=(mean, mean), t=(mean, mean)) for mean in means]
        found = re.search(r'<path d="([^"]*)"[^>]*stroke-dasharray', figures.means("k", [("x", rows, LABEL)]))
        assert found
        return found[1]

    assert line(5.0) != line(9.0)


def test_responses_without_a_unit_have_separate_scales() -> None:
    small = [row(9), row(9, 1, mean=5.2, bca_mid=(5.0, 5.4), t=(5.0, 5.4))]
    large = [row(9, mean=5e6, bca_mid=(4e6, 6e6), t=(4e6, 6e6))]
    none = replace(LABEL, unit="")
    assert figures.spans([("x", small, none), ("y", large, none)]) == pytest.approx([2.2, 2e6])
    assert figures.spans([("x", small, LABEL), ("y", large, LABEL)]) == [2e6, 2e6]
    assert figures.spans([("x", small, none), ("y", large, LABEL)]) == pytest.approx([2.2, 2e6])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ScreenResult:
    path: Path = tmp_path_factory.mktemp("data") / "planted.csv"
    return screened(table(path, screens.planted(10)), chosen=BOTH)[0]


def test_main_effects_are_on_one_axis(made: ScreenResult) -> None:
    factors = {each.name: each.levels for each in made.design.factors}
    text = figures_effects.main_effects("k", made.responses["wall"], "s", factors)
    assert [f">{name}={level}<" in text for name in "abc" for level in "01"] == [True] * 6


def test_a_level_without_values_is_left_blank(made: ScreenResult) -> None:
    text = figures_effects.main_effects(
        "k", made.responses["wall"], "s", {"a": ["0", "1", "2"], "b": ["0", "1"], "c": ["0", "1"]}
    )
    assert ">a=2<" in text


@pytest.mark.slow
def test_every_pair_has_a_panel_and_every_factor_its_boxes(made: ScreenResult) -> None:
    pairs = figures_effects.interactions("k", made.responses["wall"].interactions, "s")
    assert all(name in pairs for name in (cross("a", "b"), cross("a", "c"), cross("b", "c")))
    boxes = figures_effects.block_plots("k", made.responses["wall"].blocks, "s")
    assert boxes.count(">same order in all 4, chance 0.12<") >= 1
    assert all(f">{name}=1<" in boxes for name in "abc")


def test_of_very_many_pairs_those_with_the_smallest_p_are_drawn() -> None:
    rows = [
        InteractionResult(
            name=str(p),
            factors=("a", "b"),
            levels=((), ()),
            cells=(),
            residuals=(),
            effect=1.0,
            magnitude=1.0,
            signed=True,
            testable=True,
            why=None,
            p=p / 100,
        )
        for p in range(30, 0, -1)
    ]
    shown = figures_effects.drawable(rows)
    assert [each.p for each in shown] == [p / 100 for p in range(1, figures_effects.MOST_PAIRS + 1)]
