"""BCa intervals: small samples counted out, the conventions, scipy's own, and samples that have no interval."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.stats import bca as ours
from cbench.stats.bca import bca, bca_exact
from cbench.stats.bca_correction import acceleration, corrected, quantiles
from cbench.stats.interval import INVERTED, LINEAR, MEAN, MEDIAN, MID, STRICT

FIVE, THREE = (1, 2, 4, 7, 11), (0, 1, 5)
COUNTED = [
    # data, statistic, level, ties; resamples, a, P, z0, alpha1, alpha2, interval
    (FIVE, MEAN, 0.9, STRICT, 3125, 0.04103050, 0.49216, -0.0196532, 0.0573116, 0.9574347, (2.6, 8.0)),
    (FIVE, MEAN, 0.9, MID, 3125, 0.04103050, 0.51776, 0.0445324, 0.0725329, 0.9685390, (2.6, 8.2)),
    (FIVE, MEDIAN, 0.9, STRICT, 3125, 0.00980214, 0.31744, -0.4748695, 0.0053638, 0.7607410, (1, 7)),
    (FIVE, MEDIAN, 0.9, MID, 3125, 0.00980214, 0.5, 0, 0.0527501, 0.9527189, (1, 11)),
    (THREE, MEAN, 0.8, STRICT, 27, 0.05727027, 0.407407, -0.2342192, 0.0516652, 0.8105545, (0.3333, 3.3333)),
    (THREE, MEAN, 0.8, MID, 27, 0.05727027, 0.518519, 0.0464357, 0.1341285, 0.9310605, (0.49578, 3.66667)),
]


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: f"{len(row[0])} values, {row[1]}, {row[3]}")
def test_all_resamples_of_a_small_sample_give_the_numbers_of_the_table(row: tuple) -> None:
    data, statistic, level, ties, resamples, a, p, z0, low, high, interval = row
    asked = ours.IntervalKind(level, statistic, ties, LINEAR)
    made = ours.sample(data, asked)
    share = ours.exact_share(*ours.enumerated(made), made, ties)
    found, _ = ours.correction(made, share, level)
    assert found.a == pytest.approx(a, abs=5e-9)
    assert found.p == pytest.approx(p, abs=5e-7)
    assert (found.z0, found.low, found.high) == pytest.approx((z0, low, high), abs=5e-8)
    exact = bca_exact(data, level, statistic, ties)
    assert (exact.low, exact.high) == pytest.approx(interval, abs=5e-5)
    assert (exact.replicates, exact.method, exact.why) == (resamples, f"BCa ({ties})", None)


def test_the_sums_of_the_27_resamples_of_three_values_are_those_listed() -> None:
    made = ours.sample(THREE, ours.IntervalKind(0.8, MEAN, MID, LINEAR))
    found, ways = ours.enumerated(made)
    sums = [round(3 * made.back(value)) for value, times in zip(found, ways, strict=True) for _ in range(times)]
    assert sums == [0, 1, 1, 1, 2, 2, 2, 3, 5, 5, 5, *[6] * 6, 7, 7, 7, 10, 10, 10, 11, 11, 11, 15]


def test_without_interpolation_an_end_is_a_replicate() -> None:
    found = bca_exact(THREE, 0.8, quantile=INVERTED)
    assert (found.low, found.high) == pytest.approx((1 / 3, 11 / 3))
    drawn = bca(THREE, 0.8, quantile=INVERTED)
    assert (drawn.low, drawn.high) == pytest.approx((1 / 3, 11 / 3))


@pytest.mark.parametrize("row", COUNTED[:4], ids=lambda row: f"{row[1]}, {row[3]}")
def test_drawn_resamples_give_the_interval_of_all_of_them(row: tuple) -> None:
    data, statistic, level, ties, *_, interval = row
    found = bca(data, level, 200_000, 7, statistic, ties)
    assert (found.low, found.high) == pytest.approx(interval)


@pytest.mark.parametrize("statistic", [MEAN, MEDIAN])
def test_scipy_has_the_same_intervals_by_the_mid_convention(statistic: str) -> None:
    values = np.random.default_rng(5).lognormal(size=301)
    of = {MEAN: np.mean, MEDIAN: np.median}[statistic]
    theirs = scipy.stats.bootstrap((values,), of, n_resamples=40_000, batch=500, method="BCa", rng=1)
    found = bca(values, replicates=400_000, statistic=statistic)
    near = 0.02 * theirs.standard_error if statistic == MEAN else 0.1 * theirs.standard_error
    expected = (theirs.confidence_interval.low, theirs.confidence_interval.high)
    assert (found.low, found.high) == pytest.approx(expected, abs=2 * near)


def test_the_wristwatch_has_scipys_interval() -> None:
    found = bca((10.07, 9.99, 9.94, 10.00, 10.01, 10.00, 10.01, 10.01, 10.01, 9.99), replicates=100_000, seed=1)
    assert (found.low, found.high) == pytest.approx((9.985, 10.023), abs=1e-9)


def test_the_acceleration_of_a_mean_is_its_skewness_over_6_roots_of_n() -> None:
    values = np.random.default_rng(1).gamma(2, size=57)
    assert acceleration(values, MEAN) == pytest.approx(scipy.stats.skew(values) / (6 * np.sqrt(57)))


@pytest.mark.parametrize("n", [3, 4, 5, 6, 30, 31])
def test_the_acceleration_of_a_median_is_that_of_medians_with_each_value_left_out(n: int) -> None:
    values = np.random.default_rng(n).integers(0, 9, n) + np.arange(n) % 3 * 0.5
    left = np.array([np.median(np.delete(values, at)) for at in range(n)])
    away = left.mean() - left
    wanted = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    assert acceleration(values, MEDIAN) == pytest.approx(wanted)


@pytest.mark.parametrize("statistic", [MEAN, MEDIAN])
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((), "3 values are needed, there are 0"),
        ((1,), "3 values are needed, there is 1"),
        ((1, 2), "3 values are needed, there are 2"),
        ((1, 2, float("nan"), 4), "1 of 4 values are no finite numbers"),
        ((float("inf"), 2, float("nan"), 4), "2 of 4 values are no finite numbers"),
        ((1.7e308, -1.7e308, 0), "the values are too far apart, or too close, for numbers of 64 bits"),
    ],
)
def test_where_there_is_no_interval_it_says_why(values: tuple, why: str, statistic: str) -> None:
    for found in (bca(values, statistic=statistic), bca_exact(values, statistic=statistic)):
        assert (found.low, found.high, found.width, found.half, found.why) == (None, None, None, None, why)
        assert not found.holds(1)


@pytest.mark.parametrize("statistic", [MEAN, MEDIAN])
def test_values_that_are_all_alike_have_an_interval_of_width_0_that_warns(statistic: str) -> None:
    found = bca([0.1] * 30, statistic=statistic)
    assert (found.low, found.high, found.width) == (0.1, 0.1, 0)
    assert found.why == "all 30 values are alike: its width of 0 is no promise for others"


def test_a_median_that_no_replicate_is_below_has_no_interval_by_the_strict_convention() -> None:
    values = [1, 1, 1, 1, 5]
    found = bca(values, statistic=MEDIAN, ties=STRICT)
    assert (found.low, found.why) == (None, "no replicate is below the estimate: its bias cannot be corrected")
    assert bca_exact(values, statistic=MEDIAN, ties=STRICT).why == found.why
    assert "without acceleration" in str(bca(values, statistic=MEDIAN).why)


def test_a_single_replicate_is_below_the_mean_or_above_it() -> None:
    whys = {bca([1, 2, 4, 7.5], replicates=1, seed=seed, ties=STRICT).why for seed in range(20)}
    assert whys == {
        "no replicate is below the estimate: its bias cannot be corrected",
        "every replicate is below the estimate: its bias cannot be corrected",
    }


def test_an_acceleration_beyond_the_level_is_refused() -> None:
    assert "too much" in str(corrected(0.5, 0.6, 0.95).why)


@pytest.mark.parametrize(
    "wrong",
    [{"level": 0}, {"level": 1}, {"statistic": "mode"}, {"ties": "half"}, {"quantile": "x"}, {"replicates": 0}],
)
def test_what_is_not_known_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"."):
        bca(FIVE, **wrong)


def test_too_many_values_cannot_be_counted_out() -> None:
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
@given(
    st.integers(1, 20_000), st.integers(0, 10**6), st.sampled_from([LINEAR, INVERTED]), st.floats(0, 1), st.booleans()
)
def test_the_ends_are_numpys_quantiles(count: int, seed: int, rule: str, q: float, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    replicates = rng.integers(0, 4, count).astype(float) if tied else rng.standard_t(2, count)
    low, high = quantiles(replicates, q / 10, 1 - q / 10, rule)
    wanted = np.quantile(replicates, (q / 10, 1 - q / 10), method=rule)
    assert (low, high) == pytest.approx(tuple(wanted), rel=1e-9, abs=1e-12)
