"""The analysis of variance of single values: its error, blocks, intervals. R's figures are in tests/textbook."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats

from cbench.screen.stats.anova import INTERACTIONS, ORDERS, REPEATS, anova

SQUARE = np.array(list(product((0, 1), (0, 1))))


def test_two_levels_without_blocks_are_students_test() -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(size=20)
    levels = np.repeat([[0], [1]], 10, axis=0)
    test = anova("a", levels, values).effects[0,]
    expected = scipy.stats.ttest_ind(values[10:], values[:10])
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert test.estimate is not None
    assert test.se is not None
    assert test.estimate / test.se == pytest.approx(expected.statistic, rel=1e-9)
    low, high = expected.confidence_interval(0.95)
    half = scipy.stats.t.ppf(0.975, test.error_df) * test.se
    assert (test.estimate - half, test.estimate + half) == pytest.approx((low, high), rel=1e-9)


def test_blocks_of_pairs_are_the_paired_test() -> None:
    draw = np.random.default_rng(2)
    values = draw.normal(size=(9, 2)) + 100 * np.arange(9)[:, np.newaxis]
    levels = np.tile([[0], [1]], (9, 1))
    test = anova("a", levels, values.ravel(), np.repeat(np.arange(9), 2)).effects[0,]
    assert test.p == pytest.approx(scipy.stats.ttest_rel(values[:, 1], values[:, 0]).pvalue, rel=1e-9)


def test_the_order_of_rows_changes_nothing() -> None:
    draw = np.random.default_rng(3)
    levels, values = np.tile(SQUARE, (5, 1)), draw.normal(size=20)
    moved = draw.permutation(20)
    one, two = anova("ab", levels, values), anova("ab", levels[moved], values[moved])
    for effect, test in one.effects.items():
        assert two.effects[effect].p == pytest.approx(test.p, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "repeats", "error", "tested"),
    [((2, 3), 2, REPEATS, 3), ((2, 3, 2), 1, ORDERS, 6), ((3, 4), 1, INTERACTIONS, 2)],
)
def test_the_error_is_the_best_that_there_is(shape: tuple[int, ...], repeats: int, error: str, tested: int) -> None:
    levels = np.tile(np.array(list(product(*map(range, shape)))), (repeats, 1))
    found = anova("abc", levels, np.random.default_rng(4).normal(size=len(levels)))
    assert found.error == error
    assert len(found.effects) == tested


def test_values_that_repeat_exactly_have_no_error_and_no_test() -> None:
    levels = np.tile(SQUARE, (3, 1))
    found = anova("ab", levels, levels @ np.array([1.0, 0.0]))
    assert not found.effects
    assert all(why.startswith("the error is 0: ") for why in found.untested.values())


def test_one_value_of_each_of_two_treatments_has_nothing_to_compare() -> None:
    found = anova("a", np.array([[0], [1]]), np.array([1.0, 2.0]))
    assert (found.error, found.effects) == ("", {})
    assert set(found.untested) == {(0,)}
