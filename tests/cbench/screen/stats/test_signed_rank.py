"""Signed ranks where most values are equal: blocks without information, and sums that can take few values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats

from cbench.screen.stats.block_tests import blocked
from cbench.screen.stats.signed_rank import flip_test
from tests.cbench.screen.planted import LEVELS, significant

PAIR = np.array([[0], [1]])


def chance(scores: np.ndarray) -> float:
    found = flip_test(scores.reshape(scores.shape[0], -1))
    assert found is not None
    return found.p


def counted(scores: np.ndarray) -> float:
    """All signs of some scores, one degree of freedom."""
    sums = [abs(float(np.dot(signs, scores))) for signs in product((1, -1), repeat=scores.size)]
    return float(np.mean(np.array(sums) >= abs(float(scores.sum())) * (1 - 1e-9)))


def test_one_other_value_among_alike_ones_is_not_an_effect_however_many_blocks_there_are() -> None:
    for blocks in (2, 12, 13, 20, 60, 500):
        values = np.full((blocks, 2), 5.0)
        values[blocks // 2, 1] = 6
        (found,) = blocked(PAIR, values).effects.values()
        assert (found.p, found.p_plain) == (1.0, 1.0)


@pytest.mark.parametrize("blocks", [4, 12, 13, 20, 300])
def test_blocks_without_a_difference_do_not_change_p(blocks: int) -> None:
    scores = np.zeros(blocks)
    scores[:4] = 3
    assert chance(scores) == 0.125
    several = np.zeros((blocks, 2))
    several[:4] = [(1, 0), (0, 1), (1, 1), (2, 1)]
    assert chance(several) == chance(several[:4])


def test_a_residue_of_rounding_is_a_block_without_a_difference() -> None:
    assert chance(np.array([1.0, 1.0, 1.0] + 20 * [1e-16])) == 0.25


@pytest.mark.parametrize("agreeing", range(7, 14))
def test_equal_scores_have_the_chances_of_the_sign_test(agreeing: int) -> None:
    scores = np.repeat([0.7, -0.7], [agreeing, 13 - agreeing])
    wanted = scipy.stats.binomtest(agreeing, 13).pvalue
    assert chance(scores) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_coarse_scores_of_more_than_twelve_blocks_are_enumerated_too(seed: int) -> None:
    scores = np.random.default_rng(seed).choice([1 / 30, 1 / 29, 7 / 30, -1 / 30, -1 / 29], size=15)
    assert chance(scores) == pytest.approx(counted(scores), rel=1e-9)


def test_very_many_equal_scores_keep_close_to_the_sign_test() -> None:
    for agreeing in (1050, 1080, 1100):
        scores = np.repeat([2.0, -2.0], [agreeing, 2100 - agreeing])
        scores = np.concatenate([scores, np.zeros(2900)])
        assert chance(scores) == pytest.approx(scipy.stats.binomtest(agreeing, 2100).pvalue, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("treatments", [2, 12])
def test_rare_higher_values_raise_no_more_alarms_than_alpha_allows(share: float, treatments: int) -> None:
    """A clock's step: 4, and now and then 8. 200 experiments each; up to 20 alarms have a chance of 99.9 % at 5 %."""
    levels = PAIR if treatments == 2 else LEVELS
    for blocks in (13, 30):
        alarms = 0
        for seed in range(200):
            values = np.where(np.random.default_rng([seed, blocks]).random((blocks, treatments)) < share, 8.0, 4.0)
            alarms += bool(significant(blocked(levels, values)))
        assert alarms <= 20
