"""The size, the interval and the p-value of an effect are about one estimate, and trials that failed do not bias it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cbench.screen import table as render_screen
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import EffectResult, ResponseResult, ScreenResult
from cbench.screen.report import page_tables
from cbench.screen.stats.block_means import block_means, even
from cbench.screen.stats.practical_significance import Materiality
from tests.cbench.screen.screens import screened, table

Row = dict[str, object]
FAST = ScreenOptions(subsamples=0)


def drifting(
    factors: dict[str, str], true: dict[str, float], failed: set[tuple[int, str]], iterations: int = 16
) -> Iterator[Row]:
    """Iterations on a host that is 10 slower with each. `true`: the effect of each level; `failed`: the iterations
    and the levels of the first factor whose trials fail.
    """
    draw = np.random.default_rng(4)
    for iteration in range(iterations):
        for levels in product(*factors.values()):
            value = 100 + 10 * iteration + draw.normal(0, 0.3) + sum(true.get(level, 0.0) for level in levels)
            missing = (iteration, levels[0]) in failed
            yield {
                **dict(zip(factors, levels, strict=True)),
                "iteration": iteration,
                "value": "" if missing else value,
            }


def made_of(folder: Path, rows: Iterable[Row]) -> tuple[ScreenResult, ResponseResult]:
    result = screened(table(folder / "data.csv", rows), FAST)[0]
    return result, result.responses["value"]


def sizes_agree(each: EffectResult) -> bool:
    """Whether the interval of an effect is around its size."""
    assert each.interval is not None
    return sum(each.interval) / 2 == pytest.approx(each.fair, rel=1e-9)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScreenResult, ResponseResult]:
    """Two factors on a drifting host, where the last two trials of one level failed."""
    return made_of(tmp_path_factory.mktemp("drift"), drifting({"a": "hl", "b": "pq"}, {"l": 1.2}, {(15, "l")}))


def test_trials_that_failed_on_a_drifting_host_do_not_turn_an_effect_around(
    failed: tuple[ScreenResult, ResponseResult],
) -> None:
    result, row = failed
    effect = row.effects["a"]
    assert effect.fair == pytest.approx(1.2, abs=0.3)
    assert effect.effect == pytest.approx(1.2, abs=0.3)
    assert effect.levels[1].mean is not None
    assert effect.levels[0].mean is not None
    assert effect.levels[1].mean - effect.levels[0].mean == pytest.approx(1.2, abs=0.3)
    assert effect.percent == pytest.approx(100 * effect.fair / 175.6, rel=0.01)
    assert all(sizes_agree(each) for _, each in row.every_effect)
    assert effect.is_adjusted
    assert result.verdict[0].startswith("effects that matter: a (+1.")
    assert " adjusted, +0." in result.verdict[0]


def test_practical_significance_tables_and_page_have_the_size_of_the_verdict(
    failed: tuple[ScreenResult, ResponseResult],
) -> None:
    result, row = failed
    effect = row.effects["a"]
    assert isinstance(row.material, Materiality)
    assert row.material.effects["a"].magnitude == effect.magnitude == effect.fair
    assert row.sets["complete"]["a"].fair == effect.fair
    assert next(name for name, _ in render_screen.by_size(row)) == "a"
    assert render_screen.size(effect) == f"{effect.fair:+.4g} adj."
    first = page_tables.effects(page_tables.every_effect(result))[0].rows[0]
    assert first[0] == "a"
    assert first[2][0] == f"{effect.fair:+.3g} adj."


def test_the_same_order_in_boxes_is_that_of_equal_iterations(failed: tuple[ScreenResult, ResponseResult]) -> None:
    plot = failed[1].blocks["a"]
    assert plot is not None
    assert (plot.order, plot.agreeing, plot.n) == (("h", "l"), 2, 2)


def test_more_than_two_levels_have_a_size_without_the_drift(tmp_path: Path) -> None:
    result, row = made_of(tmp_path, drifting({"f": "xyz"}, {"y": 1.2}, {(at, "z") for at in (12, 13, 14, 15)}))
    effect = row.effects["f"]
    differences = [0.0, *(each.difference or 0.0 for each in effect.levels[1:])]
    assert effect.fair == pytest.approx(max(differences) - min(differences))
    assert effect.fair == pytest.approx(1.3, abs=0.3)
    assert effect.test is not None
    assert effect.test.estimate == effect.fair
    assert result.verdict[0].startswith("effects that matter: f (up to 1.")


def test_unequal_numbers_of_values_give_one_estimate(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    cells = {("p", "x"): (2, 10.0), ("p", "y"): (2, 18.0), ("q", "x"): (12, 10.0), ("q", "y"): (12, 12.0)}
    rows = [{"a": a, "b": b, "value": mean + draw.normal()} for (a, b), (n, mean) in cells.items() for _ in range(n)]
    _, row = made_of(tmp_path, rows)
    effect = row.effects["b"]
    # Least squares with the main effects of all single values, as in statsmodels with type II sums of squares.
    coded = np.array([[1.0, each["a"] == "q", each["b"] == "y"] for each in rows])
    solved = np.linalg.lstsq(coded, np.array([each["value"] for each in rows], dtype=float), rcond=None)[0]
    assert effect.fair == pytest.approx(float(solved[2]))
    assert effect.effect == pytest.approx(5, abs=1)
    assert effect.is_adjusted
    assert all(sizes_agree(each) for _, each in row.every_effect)
    assert isinstance(row.material, Materiality)
    assert row.material.effects["b"].magnitude == effect.fair


def test_a_batch_that_lost_its_trials_does_not_change_the_effects_sign(tmp_path: Path) -> None:
    rows = [
        {**row, "batch": int(str(row["iteration"])) // 4}
        for row in drifting({"a": "hl"}, {"l": 2.0}, {(at, "l") for at in (12, 13, 14, 15)})
    ]
    _, row = made_of(tmp_path, rows)
    assert row.effects["a"].fair == pytest.approx(2, abs=0.3)
    assert sizes_agree(row.effects["a"])


def test_complete_data_have_plain_effects_without_a_mark(tmp_path: Path) -> None:
    _, row = made_of(tmp_path, drifting({"a": "hl", "c": "uvw"}, {"l": 1.2, "v": 3}, set(), 6))
    for _, each in row.every_effect:
        assert each.fair == each.effect
        assert not each.is_adjusted


def test_a_residue_of_rounding_is_an_effect_of_0(tmp_path: Path) -> None:
    sizes = {"s": 660.0, "m": 1168.0, "l": 3716.0}
    pairs = [(cache, n) for cache in ("cold", "warm") for n in sizes if (cache, n) != ("warm", "l")]
    rows = [{"cache": cache, "n": n, "iteration": at, "value": sizes[n]} for at in range(10) for cache, n in pairs]
    _, row = made_of(tmp_path, rows)
    assert render_screen.size(row.effects["cache"]) == "+0 adj."
    assert row.effects["cache"].percent == 0


def test_means_over_incomplete_blocks_are_those_of_the_additive_model() -> None:
    draw = np.random.default_rng(1)
    values = 50 * draw.normal(size=(9, 1)) + np.array([[0.0, 1.0, 3.0, 7.0]]) + draw.normal(size=(9, 4))
    values[draw.random((9, 4)) < 0.3] = np.nan
    known = ~np.isnan(values)
    block, treatment = np.nonzero(known)
    coded = np.zeros((block.size, 13))
    coded[np.arange(block.size), block] = coded[np.arange(block.size), 9 + treatment] = 1
    solved = np.linalg.lstsq(coded, values[known], rcond=None)[0]
    means = block_means(values)
    assert np.diff(means) == pytest.approx(np.diff(solved[9:]))
    assert means == pytest.approx(solved[9:] + solved[:9].mean())


def test_blocks_are_even_only_if_treatments_share_all_blocks_or_none() -> None:
    assert even(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]))
    assert even(np.array([[2, 1], [2, 1]]))
    assert not even(np.array([[2, 1], [1, 1]]))
    assert not even(np.array([[1, 1, 0], [0, 1, 1]]))
    assert even(np.zeros((0, 3), dtype=np.intp))


def test_treatments_that_no_block_connects_keep_their_own_levels() -> None:
    values = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan], [np.nan, np.nan, 90.0], [np.nan, np.nan, 92.0]])
    assert block_means(values) == pytest.approx([2.0, 3.0, 91.0])
