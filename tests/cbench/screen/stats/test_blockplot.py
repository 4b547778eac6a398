"""Block plots: chances of the complete design and of its abridgments, ties, missing levels, and questionable
treatments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from cbench.screen.stats.blockplot import BlockPlot, block_plot, chance, needed, sign_test
from tests.cbench.screen.design.designs import COMPLETE, FACTORS, FP, MATCHED_ONLY, OS, PRF
from tests.cbench.screen.stats.test_effects import PLANT, YIELD

EASY = [replace(each, hard=False) for each in FACTORS]
"""The Note prints chances of the boxes of `os` as if each box had been a boot of its own."""
LEVELS = np.array(COMPLETE)
RISING = LEVELS @ np.array([100.0, 10, 1])


def plotted(*arguments: object, **more: object) -> BlockPlot:
    found = block_plot(EASY, *arguments, **more)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("factor", "means", "levels", "boxes", "expected"),
    [
        (OS, RISING, 2, 6, 0.03125),
        (FP, RISING, 2, 6, 0.03125),
        (PRF, RISING, 3, 4, 1 / 216),
        (PRF, np.where(LEVELS[:, PRF] > 0, RISING, np.nan), 2, 4, 0.125),
    ],
)
def test_the_boxes_of_the_complete_design_have_the_printed_chances(
    factor: int, means: np.ndarray, levels: int, boxes: int, expected: float
) -> None:
    found = plotted(LEVELS, means, factor)
    assert (len(found.levels), found.n, found.consistent) == (levels, boxes, True)
    assert found.chance == found.p == pytest.approx(expected, rel=1e-12)
    assert found.order == found.levels


def test_the_third_abridgment_can_never_be_significant() -> None:
    matched = np.array(MATCHED_ONLY)
    found = plotted(matched, matched @ np.array([100.0, 10, 1]), FP)
    assert (found.n, found.together, found.consistent, found.chance) == (2, ("prf",), True, 0.5)
    assert (found.needed, found.able) == (6, False)


@pytest.mark.parametrize(
    ("levels", "boxes", "expected"), [(3, 3, 0.0277778), (3, 2, 0.1666667), (4, 3, 0.0017361), (3, 4, 0.0046296)]
)
def test_the_chances_of_more_levels_are_as_printed(levels: int, boxes: int, expected: float) -> None:
    assert round(chance(levels, boxes), 7) == expected


def test_the_fewest_boxes_are_as_printed() -> None:
    assert [needed(levels, 0.05) for levels in (2, 3, 4)] == [6, 3, 2]
    assert round(chance(4, 2), 4) == 0.0417


def test_ten_of_twelve_boxes_have_the_printed_sign_test() -> None:
    one, two = sign_test(10, 12)
    assert (round(one, 7), one) == (0.0192871, 79 / 4096)
    assert round(two, 7) == 0.0385742


@pytest.mark.parametrize(("agreeing", "n"), [(0, 1), (1, 1), (2, 4), (4, 4), (3, 10), (7, 10), (30, 40)])
def test_the_sign_test_is_the_binomial_one(agreeing: int, n: int) -> None:
    one, two = sign_test(agreeing, n)
    assert one == pytest.approx(scipy.stats.binomtest(agreeing, n, alternative="greater").pvalue)
    assert two == pytest.approx(scipy.stats.binomtest(agreeing, n).pvalue)


@pytest.mark.parametrize(
    ("factor", "differences", "consistent", "agreeing", "p"),
    [
        (0, [12, 14, 31, 35], True, 4, 0.125),
        (1, [-6, -7, -4, -3], True, 4, 0.125),
        (2, [-8, -9, 11, 12], False, 2, 1),
    ],
)
def test_the_pilot_plant_has_the_printed_boxes(
    factor: int, differences: list[float], consistent: bool, agreeing: int, p: float
) -> None:
    found = plotted(PLANT, YIELD, factor)
    assert sorted(box.means[1] - box.means[0] for box in found.boxes) == sorted(differences)
    assert (found.consistent, found.agreeing, found.p) == (consistent, agreeing, p)


def test_equal_means_in_a_box_break_consistency() -> None:
    means = RISING.copy()
    means[LEVELS[:, FP] == 1] -= np.where(LEVELS[LEVELS[:, FP] == 1][:, PRF] == 0, 10, 0)  # equal where prf=0
    found = plotted(LEVELS, means, FP)
    assert (found.n, found.tied, found.consistent, found.agreeing) == (6, 2, False, 4)
    assert found.p == found.p_two == 0.125  # of the four that are not tied
    assert [box.order for box in found.boxes if box.tied] == [None, None]


def test_if_all_boxes_are_tied_there_is_no_order() -> None:
    found = plotted(LEVELS, np.ones(12), PRF)
    assert (found.consistent, found.order, found.agreeing, found.p) == (False, None, 0, None)
    assert plotted(LEVELS, np.ones(12), OS).p is None


def test_a_box_with_a_missing_level_is_left_out_and_shown() -> None:
    means = RISING.copy()
    means[0] = np.nan
    found = plotted(LEVELS, means, PRF)
    assert (len(found.boxes), found.n, found.chance) == (4, 3, pytest.approx(1 / 36))
    assert [box.missing for box in found.boxes] == [True, False, False, False]
    assert (found.boxes[0].others, np.isnan(found.boxes[0].means).tolist()) == ("os=0 fp=0", [True, False, False])


def test_questionable_treatments_are_marked_and_left_out_on_request() -> None:
    questionable = [number for number, each in enumerate(COMPLETE) if each[1:] == (0, 2)]
    marked = plotted(LEVELS, RISING, PRF, questionable=questionable)
    assert [box.questionable for box in marked.boxes] == [(False, False, True), (False,) * 3] * 2
    without = plotted(LEVELS, RISING, PRF, questionable=questionable, exclude=True)
    assert (without.n, without.chance) == (2, pytest.approx(1 / 6))


def test_a_partly_consistent_plot_of_three_levels_has_no_test() -> None:
    means = RISING.copy()
    means[0] = 1000
    found = plotted(LEVELS, means, PRF)
    assert (found.consistent, found.agreeing, found.p, found.p_two) == (False, 3, None, None)


def test_one_level_makes_no_plot() -> None:
    assert block_plot(FACTORS, LEVELS, np.where(LEVELS[:, FP], np.nan, RISING), FP) is None
    assert chance(2, 1) == 1


def test_the_boxes_of_a_hard_factor_are_one_random_draw() -> None:
    hard = [replace(FACTORS[OS], hard=True), *FACTORS[1:]]
    found = block_plot(hard, LEVELS, RISING, OS)
    assert found is not None
    assert (found.n, found.consistent, found.chance, found.p, found.able) == (6, True, 1, 1, False)
    assert (found.p_one, found.p_two) == (None, None)
    two = [replace(each, hard=number < 2) for number, each in enumerate(FACTORS)]
    both = block_plot(two, LEVELS, RISING, FP)
    assert both is not None
    assert (both.n, both.chance) == (6, 0.5)
    easy = block_plot(hard, LEVELS, RISING, FP)
    assert easy is not None
    assert easy.chance == 0.03125
