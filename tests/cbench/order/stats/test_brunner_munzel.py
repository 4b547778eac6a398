"""Tests of location and spread that hold where the samples are spread unequally."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cbench.order.stats.brunner_munzel import spread_p, spread_ratio, unequal_spread_p


@pytest.mark.parametrize(("m", "n"), [(3, 3), (10, 12), (40, 10), (200, 150)])
@pytest.mark.parametrize("digits", [1, 9])
def test_the_p_values_are_scipys(m: int, n: int, digits: int) -> None:
    draw = np.random.default_rng(m)
    first, second = np.sort(draw.normal(size=m).round(digits)), np.sort((2 * draw.normal(size=n) + 0.3).round(digits))
    exact = 1e-9 if m + n < 100 else 1e-3
    assert unequal_spread_p(first, second) == pytest.approx(scipy.stats.brunnermunzel(first, second).pvalue, rel=exact)
    assert spread_p(first, second) == pytest.approx(scipy.stats.fligner(first, second).pvalue, rel=0.01, abs=1e-6)


def test_samples_that_lie_apart_have_no_chance_and_equal_ones_have_1() -> None:
    low, high, same = np.array([1.0, 2, 3]), np.array([7.0, 8, 9]), np.array([5.0, 5, 5])
    assert unequal_spread_p(low, high) == 0
    assert unequal_spread_p(same, same) == 1
    assert spread_p(same, same) == 1
    assert unequal_spread_p(low[:2], high) is spread_p(low[:2], high) is None


def test_the_ratio_of_spreads_is_that_of_median_distances() -> None:
    assert spread_ratio(np.array([1.0, 2, 3]), np.array([10.0, 13, 16])) == 3
    assert spread_ratio(np.array([5.0, 5, 5]), np.array([1.0, 2, 3])) is None


def test_with_three_times_the_spread_in_the_smaller_sample_the_level_holds() -> None:
    """The rank sum by permutation, which assumes equal spread, has 13 % here."""
    draw, alarms = np.random.default_rng(1), 0
    for _ in range(400):
        p = unequal_spread_p(np.sort(draw.normal(size=40)), np.sort(3 * draw.normal(size=10)))
        alarms += p is not None and p < 0.05
    assert alarms <= 34
