"""Lenth's method: published critical values, published examples, and one error rate for all contrasts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cbench.screen.stats.lenth import contrasts, lenth, pseudo_error

CUBE = np.array(list(product((0, 1), repeat=3)))
FOUR = np.array(list(product((0, 1), repeat=4)))


@pytest.mark.parametrize(("runs", "single", "family"), [(8, 2.297, 4.867), (16, 2.156, 4.240), (32, 2.065, 3.944)])
def test_critical_values_are_those_of_ye_and_hamada(runs: int, single: float, family: float) -> None:
    """Technometrics tables for 7, 15 and 31 contrasts; p just at them is 5 % within the simulation's error."""
    levels = np.array(list(product((0, 1), repeat=runs.bit_length() - 1)))
    every = contrasts(levels)
    assert len(every) == runs - 1
    rest = 1 + np.arange(runs - 2) * 1e-6  # all of one size: PSE is 1.5 of it
    for critical, which in ((single, "p"), (family, "p_family")):
        sizes = np.concatenate([[1.5 * critical], rest])
        means = sum(each.signs * size / 2 for each, size in zip(every, sizes, strict=True))
        made = lenth(every, means)
        assert made is not None
        assert made.pse == pytest.approx(1.5, rel=1e-3)
        assert getattr(made, which)[0] == pytest.approx(0.05, abs=0.004)


def test_a_fraction_names_every_effect_of_a_contrast_with_its_sign() -> None:
    levels = np.column_stack([CUBE, (CUBE.sum(axis=1) % 2 == 0).astype(int)])  # D = -ABC
    found = contrasts(levels)
    assert len(found) == 7
    pairs = [each.effects[:2] for each in found if len(each.effects[0][0]) == 2]
    assert pairs == [
        (((0, 1), 1), ((2, 3), -1)),
        (((0, 2), 1), ((1, 3), -1)),
        (((0, 3), 1), ((1, 2), -1)),
    ]


def test_designs_without_orthogonal_main_effects_have_no_contrasts() -> None:
    assert contrasts(CUBE[:7]) == ()
    assert contrasts(np.array([(0,), (1,), (2,)])) == ()


def test_values_that_are_all_alike_have_no_pseudo_error() -> None:
    assert lenth(contrasts(FOUR), np.full(16, 0.1)) is None
    assert pseudo_error(np.zeros((1, 7))).tolist() == [0.0]


def test_a_corrected_p_is_at_least_the_individual_p_and_grows_from_step_to_step() -> None:
    draw = np.random.default_rng(3)
    every = contrasts(CUBE)
    for _ in range(20):
        made = lenth(every, draw.normal(size=8) + 4 * CUBE[:, 0])
        assert made is not None
        assert all(family >= p for p, family in zip(made.p, made.p_family, strict=True))
        order = np.argsort(-np.abs(made.estimates))
        assert (np.diff(np.array(made.p_family)[order]) >= 0).all()


@pytest.mark.slow
def test_any_of_fifteen_inert_contrasts_is_called_real_in_one_of_twenty() -> None:
    """300 experiments: 25 or more have a chance of 0.001."""
    draw = np.random.default_rng(7)
    every = contrasts(FOUR)
    alarms = 0
    for _ in range(300):
        made = lenth(every, draw.normal(size=16))
        assert made is not None
        alarms += min(made.p_family) < 0.05
    assert alarms <= 26
