"""The etalon against a wristwatch, and the first run of a series."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
import scipy.stats

from cbench.stats.bca import acceleration
from cbench.stats.etalon import etalon, first_run

WATCH = (10.07, 9.99, 9.94, 10.00, 10.01, 10.00, 10.01, 10.01, 10.01, 9.99)
WARM = (10.0102, *(10 + each / 10_000 for each in (1, 2, 1, 3, 2, 1, 2, 3, 2)))


def test_the_wristwatch_example_has_the_numbers_of_the_table() -> None:
    found = etalon(WATCH, 10.0, replicates=100_000, seed=1)
    assert (found.n, found.wanted, found.why) == (10, 10.0, None)
    assert (found.mean, found.median) == pytest.approx((10.003, 10.005), abs=1e-12)
    assert found.sd == pytest.approx(0.03164034, abs=5e-9)
    assert found.sem == pytest.approx(0.01000555, abs=5e-9)
    assert found.t == pytest.approx(0.299833, abs=5e-7)
    assert found.p == pytest.approx(0.771114, abs=5e-7)
    assert 100 * found.cv == pytest.approx(0.31631, abs=5e-6)
    assert (found.t_mean.low, found.t_mean.high) == pytest.approx((9.980366, 10.025634), abs=5e-7)
    assert found.t_mean.holds(10)
    assert (found.bca_mean.low, found.bca_mean.high) == pytest.approx((9.985, 10.023), abs=1e-9)
    assert acceleration(np.array(WATCH)) == pytest.approx(0.00928396, abs=5e-9)


def test_without_its_first_value_the_wristwatch_example_is_narrower() -> None:
    found = etalon(WATCH[1:], replicates=1000)
    assert found.mean == pytest.approx(9.995556, abs=5e-7)
    assert found.sd == pytest.approx(0.0224227, abs=5e-8)


def test_the_test_is_scipys() -> None:
    values = np.random.default_rng(3).normal(10.1, 0.2, 33)
    theirs = scipy.stats.ttest_1samp(values, 10)
    found = etalon(values, replicates=100)
    assert (found.t, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((), "there are no values"),
        ((10.0,), "2 values are needed for a spread, but there is 1"),
        ((10.0, inf), "1 of 2 values are not finite numbers"),
        ((10.0, 1e200, 3), "the values are too large to be squared"),
        ((0.1,) * 7, "all 7 values are equal: there is no spread to compare a difference with"),
    ],
)
def test_an_etalon_that_cannot_be_tested_says_why(values: tuple, why: str) -> None:
    found = etalon(values)
    assert (found.t, found.p, found.why) == (None, None, why)


def test_an_etalon_of_zeros_has_no_cv() -> None:
    assert etalon((-1, 1), 0).cv is None


def test_a_first_run_that_dominates_the_spread_is_flagged() -> None:
    found = first_run(WARM)
    assert found.sd == pytest.approx(3.16665e-3, abs=5e-9)
    assert found.sd_without == pytest.approx(7.81736e-5, abs=5e-11)
    assert found.ratio == pytest.approx(40.51, abs=5e-3)
    assert found.flagged
    assert found.p < 1e-10


def test_the_first_of_the_wristwatch_is_one_of_the_others() -> None:
    found = first_run(WATCH)
    assert (found.flagged, found.why) == (False, None)
    assert 1 < found.ratio < found.threshold


@pytest.mark.parametrize("n", [5, 10, 1000])
def test_a_first_value_with_p_of_one_in_a_thousand_is_at_the_threshold(n: int) -> None:
    others = np.random.default_rng(n).normal(size=n - 1)
    t = scipy.stats.t.ppf(0.9995, n - 2)
    edge = others.mean() + t * others.std(ddof=1) * sqrt(n / (n - 1))
    below, above = first_run((edge - 1e-6, *others)), first_run((edge + 1e-6, *others))
    assert below.threshold == pytest.approx(below.ratio, rel=1e-5)
    assert above.ratio > above.threshold > below.ratio
    assert (below.p, above.p) == pytest.approx((0.001, 0.001), rel=1e-3)


@pytest.mark.slow
def test_normal_series_are_flagged_once_in_a_thousand() -> None:
    series = np.random.default_rng(2).normal(size=(4000, 20))
    assert sum(first_run(each).flagged for each in series) <= 12


def test_an_outlier_elsewhere_does_not_flag_the_first() -> None:
    found = first_run((*WARM[1:], WARM[0]))
    assert not found.flagged
    assert found.ratio < 1


def test_an_outlying_first_value_among_larger_outliers_is_reported_but_not_flagged() -> None:
    found = first_run((10.0, *[0.0] * 500, 11.0))
    assert (found.flagged, found.why) == (False, "the first is far from the others, but not the farthest")


@pytest.mark.parametrize(
    ("values", "ratio", "flagged", "why"),
    [
        ((1, 2, 3, 4), None, False, "5 values are needed, but there are 4"),
        ((1,), None, False, "5 values are needed, but there is 1"),
        ((0.1,) * 6, None, False, "all 6 values are equal"),
        ((2, *(0.1,) * 6), inf, True, "all values but the first are equal"),
        ((1, 2, 3, float("nan"), 5), None, False, "1 of 5 values are not finite numbers"),
    ],
)
def test_series_that_cannot_be_judged_say_why(values: tuple, ratio: float | None, flagged: bool, why: str) -> None:
    found = first_run(values)
    assert (found.ratio, found.flagged, found.why) == (ratio, flagged, why)


def test_alpha_is_a_probability() -> None:
    with pytest.raises(ValueError, match="alpha"):
        first_run(WATCH, 0)
