"""Hodges and Lehmann's estimate of Δ and its interval."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cbench.order.stats.brunner_munzel import unequal_spread_p
from cbench.order.stats.pairwise_sums import PairwiseSums
from cbench.order.stats.shift import of_pairs, of_samples


def test_the_estimate_is_the_median_ratio_of_all_pairs_in_percent_of_the_fixed_order() -> None:
    found = of_samples(np.array([100.0, 110, 121]), np.array([50.0, 55, 60.5]), 0.95)
    assert found is not None
    assert found.delta_pct == pytest.approx(50)
    assert (found.low, found.high) == (None, None)  # of 3 and 3 there is none at 95 %


@pytest.mark.parametrize("sign", [1, -1])
def test_values_around_0_are_shifted_and_not_scaled(sign: int) -> None:
    found = of_samples(np.sort(sign * np.array([-1.0, 10, 20])), np.sort(sign * np.array([1.0, 12, 22])), 0.95)
    assert found is not None
    assert found.delta_pct == pytest.approx(-20)


def test_the_interval_of_pairs_is_that_of_the_signed_ranks() -> None:
    """Hollander, Wolfe, Chicken, table 3.1 and example 3.4: Hamilton's depression scale, -0.786 to -0.010."""
    first = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    second = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    found = of_pairs(np.append(first, [-5.0]), np.append(second, [-5.0]), 0.95)
    assert found is not None
    walsh = scipy.stats.wilcoxon(second - first)
    assert walsh.pvalue < 0.05
    assert found.low is not None
    assert found.delta_pct > 0


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "sd"), [(12, 12, 1), (40, 10, 3), (10, 40, 3), (150, 150, 1)])
def test_an_interval_covers_the_true_difference_as_often_as_stated(m: int, n: int, sd: float) -> None:
    draw, covered = np.random.default_rng(5), 0
    for _ in range(300):
        found = of_samples(np.sort(100 + draw.normal(size=m)), np.sort(110 + sd * draw.normal(size=n)), 0.95)
        assert found is not None
        covered += found.low is not None and found.high is not None and found.low <= -10 <= found.high
    assert covered >= 276


def test_an_interval_of_pairs_covers_too() -> None:
    draw, covered = np.random.default_rng(6), 0
    for _ in range(300):
        drift = 100 + np.cumsum(draw.normal(size=40))
        found = of_pairs(drift + draw.normal(size=40), 1.1 * (drift + draw.normal(size=40)), 0.95)
        assert found is not None
        covered += found.low is not None and found.high is not None and found.low <= -10 <= found.high
    assert 276 <= covered <= 297


def test_the_interval_of_two_samples_contains_0_only_if_the_deciding_test_does_not_reject() -> None:
    draw, rejected = np.random.default_rng(8), 0
    for _ in range(25):
        fixed, other = np.sort(draw.normal(100, 1, 14)), np.sort(draw.normal(100.8, 1, 14))
        p = max(scipy.stats.mannwhitneyu(fixed, other, method="exact").pvalue, unequal_spread_p(fixed, other) or 0.0)
        found = of_samples(fixed, other, 0.95)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert (found.low <= 0 <= found.high) == (p >= 0.05)
        rejected += p < 0.05
    assert 5 < rejected < 20


@pytest.mark.parametrize(("m", "n"), [(100, 100), (150, 131)])
def test_the_estimate_is_the_median_of_all_differences_of_large_samples_too(m: int, n: int) -> None:
    draw = np.random.default_rng(m)
    fixed, other = np.sort(draw.lognormal(size=m)), np.sort(draw.lognormal(size=n))
    found = of_samples(fixed, other, 0.95)
    assert found is not None
    assert found.delta_pct == pytest.approx(100 * (1 - np.median(other[None, :] / fixed[:, None])), rel=1e-3, abs=1e-3)
    sums = PairwiseSums.of_differences(fixed, other)
    every = np.sort((other[None, :] - fixed[:, None]).ravel())
    assert [sums.at(rank) for rank in (0, 777, m * n - 1)] == pytest.approx(every[[0, 777, m * n - 1]])


def test_the_estimate_of_many_pairs_is_the_median_of_all_means_of_two_differences() -> None:
    away = np.sort(np.random.default_rng(2).lognormal(size=120))
    found = of_pairs(np.full(120, 1.0), np.exp(away), 0.95)
    assert found is not None
    walsh = (away[:, None] + away[None, :])[np.triu_indices(120)] / 2
    assert found.delta_pct == pytest.approx(100 * (1 - np.exp(np.median(walsh))))
