"""Tests of location and spread that hold where the samples are spread unequally."""

from __future__ import annotations

from itertools import combinations

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
    if m > 3:  # else so few distances are different that they are enumerated
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


def test_one_odd_value_of_3_among_60_that_are_alike_is_not_a_difference_of_spread() -> None:
    """3 of the 63 ways to deal the values have the odd one in the sample of 3; by chi-squared p is 8e-6."""
    assert spread_p(np.array([1.0, 2, 2]), np.full(60, 2.0)) == pytest.approx(3 / 63)


@pytest.mark.parametrize(("first", "second"), [((0, 1, 5), (0, 0, 1, 1, 1, 9)), ((1, 1, 1, 4), (1, 2, 1, 1, 3, 1))])
def test_the_spread_of_few_different_values_has_the_p_of_all_permutations(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    samples = [np.sort(np.array(each, dtype=float)) for each in (first, second)]
    away = np.concatenate([np.abs(each - np.median(each)) for each in samples])
    scores = scipy.stats.norm.ppf(0.5 + scipy.stats.rankdata(away) / (2 * (away.size + 1)))
    for value in np.unique(away):  # as in fligner(), but ties have the mean of their scores, not that of their ranks
        places = np.arange((away < value).sum() + 1, (away <= value).sum() + 1)
        scores[away == value] = scipy.stats.norm.ppf(0.5 + places / (2 * (away.size + 1))).mean()
    middle = len(first) * scores.mean()
    sums = np.array([scores[list(each)].sum() for each in combinations(range(away.size), len(first))])
    seen = abs(scores[: len(first)].sum() - middle)
    assert spread_p(*samples) == pytest.approx((abs(sums - middle) >= seen - 1e-9).mean())


def test_a_median_between_two_steps_of_a_coarse_clock_is_not_a_difference_of_spread() -> None:
    """With distances to 0.5 in the one and 0 or 1 in the other, p was 0.08."""
    half, whole = np.repeat([0.0, 1], 5), np.repeat([0.0, 1, 2], [1, 8, 1])
    p = spread_p(half, whole)
    assert p is not None
    assert p > 0.3
