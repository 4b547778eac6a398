"""Student's intervals of a mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cbench.stats.interval import t_interval

WATCH = (10.07, 9.99, 9.94, 10.00, 10.01, 10.00, 10.01, 10.01, 10.01, 9.99)


def test_the_interval_of_five_values_is_that_of_the_table() -> None:
    found = t_interval((1, 2, 4, 7, 11), 0.9)
    assert (found.low, found.high) == pytest.approx((1.12731, 8.87269), abs=5e-6)
    assert (found.method, found.replicates, found.why) == ("t", 0, None)


def test_the_interval_of_the_wristwatch_is_that_of_the_table() -> None:
    found = t_interval(WATCH)
    assert (found.low, found.high) == pytest.approx((9.980366, 10.025634), abs=5e-7)
    assert found.holds(10)
    assert not found.holds(10.03)


def test_intervals_are_scipys() -> None:
    values = np.random.default_rng(2).lognormal(size=61)
    theirs = scipy.stats.t.interval(0.99, 60, values.mean(), scipy.stats.sem(values))
    found = t_interval(values, 0.99)
    assert (found.low, found.high) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((), "2 values are needed, but there are 0"),
        ((1,), "2 values are needed, but there is 1"),
        ((1, float("nan")), "1 of 2 values are not finite numbers"),
        ((1e308, -1e308), "the values are too large to be squared"),
    ],
)
def test_where_there_is_no_interval_it_says_why(values: tuple, why: str) -> None:
    found = t_interval(values)
    assert (found.low, found.high, found.why) == (None, None, why)


def test_values_that_are_all_alike_have_an_interval_of_width_0_that_warns() -> None:
    found = t_interval([0.1] * 7)
    assert (found.low, found.high) == (0.1, 0.1)
    assert "all 7 values are equal" in str(found.why)
