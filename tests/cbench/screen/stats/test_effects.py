"""Main effects and interactions: Box, Hunter and Hunter's pilot plant, a table of two by three, missing cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cbench.screen.stats.effects import interaction, main_effect
from tests.cbench.screen.design.designs import COMPLETE

# Box, Hunter & Hunter's pilot plant, a 2^3 design in the order T, C, K.
PLANT = np.array([[a, b, c] for c, b, a in product(range(2), repeat=3)])
YIELD = np.array([60.0, 72, 54, 68, 52, 83, 45, 80])
T, C, K = 0, 1, 2
# The example of screening.md, B1: (fp, prf) and the cells' means.
CELLS = np.array(list(product(range(2), range(3))))
MEANS = np.array([10.0, 14, 13, 11, 18, 15])


@pytest.mark.parametrize(
    ("factors", "effect"),
    [((T,), 23), ((C,), -5), ((K,), 1.5), ((T, C), 1.5), ((T, K), 10), ((C, K), 0)],
)
def test_the_pilot_plant_has_the_effects_in_the_book(factors: tuple[int, ...], effect: float) -> None:
    if len(factors) == 1:
        found = main_effect(PLANT, YIELD, *factors)
        assert found is not None
        assert (found.signed, found.effect) == (True, pytest.approx(effect, abs=1e-12))
        assert found.adjusted == pytest.approx(effect, abs=1e-12)
    if len(factors) == 2:
        both = interaction(PLANT, YIELD, *factors)
        assert both is not None
        assert (both.signed, both.effect) == (True, pytest.approx(effect, abs=1e-12))


def test_the_pilot_plant_has_the_means_in_the_book() -> None:
    found = main_effect(PLANT, YIELD, T)
    assert found is not None
    assert found.means.tolist() == [52.75, 75.75]
    assert found.counts == (4, 4)
    both = interaction(PLANT, YIELD, T, K)
    assert both is not None
    assert both.cells.tolist() == [[57.0, 48.5], [70.0, 81.5]]


def test_a_table_of_two_by_three_has_the_printed_means_and_residuals() -> None:
    fp, prf = main_effect(CELLS, MEANS, 0), main_effect(CELLS, MEANS, 1)
    assert fp is not None
    assert prf is not None
    assert np.round(fp.means, 4).tolist() == [12.3333, 14.6667]
    assert round(fp.effect, 4) == 2.3333
    assert prf.means.tolist() == [10.5, 16, 14]
    assert (prf.signed, prf.effect) == (False, 5.5)
    both = interaction(CELLS, MEANS, 0, 1)
    assert both is not None
    assert np.round(both.residuals, 4).tolist() == [[0.6667, -0.8333, 0.1667], [-0.6667, 0.8333, -0.1667]]
    assert (both.signed, both.effect) == (False, pytest.approx(5 / 6))


def test_a_missing_treatment_biases_the_plain_effect_but_not_the_adjusted_one() -> None:
    unbalanced = MEANS.copy()
    unbalanced[2] = np.nan
    found = main_effect(CELLS, unbalanced, 0)
    assert found is not None
    assert np.round(found.means, 4).tolist() == [12.0, 14.6667]
    assert round(found.effect, 4) == 2.6667
    assert found.adjusted == pytest.approx(2.5)
    balanced = main_effect(CELLS[CELLS[:, 1] != 2], MEANS[CELLS[:, 1] != 2], 0)
    assert balanced is not None
    assert balanced.effect == 2.5
    assert balanced.adjusted == pytest.approx(2.5)


def test_a_table_with_an_empty_cell_has_no_size_of_its_interaction() -> None:
    unbalanced = MEANS.copy()
    unbalanced[2] = np.nan
    both = interaction(CELLS, unbalanced, 0, 1)
    assert both is not None
    assert np.isnan(both.cells).tolist() == [[False, False, True], [False, False, False]]
    assert both.effect is None


def test_a_fully_aliased_factor_has_no_adjusted_effect() -> None:
    found = main_effect(np.array([[0, 1], [1, 2]] * 2), np.array([1.0, 2, 1, 2]), 0)
    assert found is not None
    assert (found.effect, found.adjusted) == (1, None)


def test_a_factor_with_one_level_has_no_effect() -> None:
    levels = np.array([[0, 0], [0, 1]])
    assert main_effect(levels, np.array([1.0, 2]), 0) is None
    assert interaction(levels, np.array([1.0, 2]), 0, 1) is None
    assert main_effect(levels, np.array([1.0, np.nan]), 1) is None


def test_the_order_of_treatments_and_a_constant_change_no_effect() -> None:
    levels = np.array(COMPLETE)
    means = np.random.default_rng(5).normal(size=12)
    order = np.random.default_rng(6).permutation(12)
    for factor in range(3):
        one, two = main_effect(levels, means, factor), main_effect(levels[order], means[order] + 100, factor)
        assert one is not None
        assert two is not None
        assert two.effect == pytest.approx(one.effect)
        assert two.adjusted == pytest.approx(one.effect)
