"""BCa intervals: small samples enumerated, the conventions, scipy's own, and samples that have no interval."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.stats import bca as ours
from cbench.stats.bca import acceleration, bca, bca_exact, corrected, quantiles
from cbench.stats.interval import MID, STRICT

FIVE, THREE = (1, 2, 4, 7, 11), (0, 1, 5)
COUNTED = [
    # data, level, ties; resamples, a, P, z0, alpha1, alpha2, interval
    (FIVE, 0.9, STRICT, 3125, 0.04103050, 0.49216, -0.0196532, 0.0573116, 0.9574347, (2.6, 8.0)),
    (FIVE, 0.9, MID, 3125, 0.04103050, 0.51776, 0.0445324, 0.0725329, 0.9685390, (2.6, 8.2)),
    (THREE, 0.8, STRICT, 27, 0.05727027, 0.407407, -0.2342192, 0.0516652, 0.8105545, (0.3333, 3.3333)),
    (THREE, 0.8, MID, 27, 0.05727027, 0.518519, 0.0464357, 0.1341285, 0.9310605, (0.49578, 3.66667)),
]


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: f"{len(row[0])} values, {row[2]}")
def test_all_resamples_of_a_small_sample_give_the_numbers_of_the_table(row: tuple) -> None:
    data, level, ties, resamples, a, p, z0, low, high, interval = row
    asked = ours.IntervalKind(level, ties)
    made = ours.sample(data, asked)
    share = ours.exact_share(*ours.enumerated(made), made, ties)
    found = corrected(share, acceleration(made.row), level)
    assert acceleration(made.row) == pytest.approx(a, abs=5e-9)
    assert share == pytest.approx(p, abs=5e-7)
    assert (found.z0, found.low, found.high) == pytest.approx((z0, low, high), abs=5e-8)
    exact = bca_exact(data, level, ties)
    assert (exact.low, exact.high) == pytest.approx(interval, abs=5e-5)
    assert (exact.replicates, exact.method, exact.why) == (resamples, f"BCa ({ties})", None)


def test_the_sums_of_the_27_resamples_of_three_values_are_those_listed() -> None:
    made = ours.sample(THREE, ours.IntervalKind(0.8, MID))
    found, ways = ours.enumerated(made)
    sums = [round(3 * made.back(value)) for value, times in zip(found, ways, strict=True) for _ in range(times)]
    assert sums == [0, 1, 1, 1, 2, 2, 2, 3, 5, 5, 5, *[6] * 6, 7, 7, 7, 10, 10, 10, 11, 11, 11, 15]


@pytest.mark.parametrize("row", COUNTED[:2], ids=lambda row: f"{row[2]}")
def test_drawn_resamples_give_the_interval_of_all_of_them(row: tuple) -> None:
    data, level, ties, *_, interval = row
    found = bca(data, level, 200_000, 7, ties)
    assert (found.low, found.high) == pytest.approx(interval)


@pytest.mark.slow
def test_scipy_has_the_same_intervals_by_the_mid_convention() -> None:
    values = np.random.default_rng(5).lognormal(size=301)
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=40_000, batch=500, method="BCa", rng=1)
    found = bca(values, replicates=400_000)
    expected = (theirs.confidence_interval.low, theirs.confidence_interval.high)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.04 * theirs.standard_error)


def test_the_wristwatch_has_scipys_interval() -> None:
    found = bca((10.07, 9.99, 9.94, 10.00, 10.01, 10.00, 10.01, 10.01, 10.01, 9.99), replicates=100_000, seed=1)
    assert (found.low, found.high) == pytest.approx((9.985, 10.023), abs=1e-9)


def test_the_acceleration_of_a_mean_is_its_skewness_over_6_roots_of_n() -> None:
    values = np.random.default_rng(1).gamma(2, size=57)
    assert acceleration(values) == pytest.approx(scipy.stats.skew(values) / (6 * np.sqrt(57)))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((), "3 values are needed, but there are 0"),
        ((1,), "3 values are needed, but there is 1"),
        ((1, 2), "3 values are needed, but there are 2"),
        ((1, 2, float("nan"), 4), "1 of 4 values are not finite numbers"),
        ((float("inf"), 2, float("nan"), 4), "2 of 4 values are not finite numbers"),
        ((1.7e308, -1.7e308, 0), "the values are too far apart, or too close together, for 64-bit numbers"),
    ],
)
def test_where_there_is_no_interval_it_says_why(values: tuple, why: str) -> None:
    for found in (bca(values), bca_exact(values)):
        assert (found.low, found.high, found.width, found.half, found.why) == (None, None, None, None, why)
        assert not found.holds(1)


def test_values_that_are_all_alike_have_an_interval_of_width_0_that_warns() -> None:
    found = bca([0.1] * 30)
    assert (found.low, found.high, found.width) == (0.1, 0.1, 0)
    assert found.why == "all 30 values are equal: a width of 0 says nothing about other values"


def test_a_single_replicate_is_either_below_or_above_the_mean() -> None:
    whys = {bca([1, 2, 4, 7.5], replicates=1, seed=seed, ties=STRICT).why for seed in range(20)}
    assert whys == {
        "no replicate is below the estimate: its bias cannot be corrected",
        "every replicate is below the estimate: its bias cannot be corrected",
    }


def test_an_acceleration_beyond_the_level_is_refused() -> None:
    assert "too large" in str(corrected(0.5, 0.6, 0.95).why)


@pytest.mark.parametrize(
    "wrong",
    [{"level": 0}, {"level": 1}, {"ties": "half"}, {"replicates": 0}],
)
def test_an_unknown_convention_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"."):
        bca(FIVE, **wrong)


def test_too_many_values_cannot_be_enumerated() -> None:
    with pytest.raises(ValueError, match="at most 8 values"):
        bca_exact(range(9))


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = np.random.default_rng(3).normal(size=300)
    assert bca(values, seed=4) == bca(values, seed=4)
    assert bca(values, seed=4) != bca(values, seed=5)


def test_the_unit_and_the_origin_of_the_values_do_not_matter() -> None:
    values = np.random.default_rng(8).lognormal(size=40).round(3)
    plain, moved = bca(values, replicates=5000), bca(1e6 + 1e-3 * values, replicates=5000)
    assert moved.low == pytest.approx(1e6 + 1e-3 * plain.low, abs=1e-9)
    assert moved.high == pytest.approx(1e6 + 1e-3 * plain.high, abs=1e-9)


@settings(deadline=None)
@given(st.integers(1, 20_000), st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_the_ends_are_numpys_quantiles(count: int, seed: int, q: float, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    replicates = rng.integers(0, 4, count).astype(float) if tied else rng.standard_t(2, count)
    low, high = quantiles(replicates, q / 10, 1 - q / 10)
    wanted = np.quantile(replicates, (q / 10, 1 - q / 10))
    assert (low, high) == pytest.approx(tuple(wanted), rel=1e-9, abs=1e-12)
