"""The estimate and interval of paired differences agree with the enumerated Walsh averages."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.ab.stats import EXACT_UP_TO, MANY, interval_rank, ranked, shift, walsh

VALUES = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=1, max_size=25)


def averages(values: list[float]) -> list[float]:
    return sorted((first + second) / 2 for at, first in enumerate(values) for second in values[at:])


@pytest.mark.slow
@given(VALUES)
def test_every_walsh_average_is_found_by_its_rank(values: list[float]) -> None:
    expected = averages(sorted(values))
    found = [walsh(sorted(values), k) for k in range(1, len(expected) + 1)]
    assert found == pytest.approx(expected, abs=1e-11)


@given(VALUES)
def test_the_estimate_is_the_median_of_the_walsh_averages_and_turns_with_the_signs(values: list[float]) -> None:
    found, turned = shift(values, 0.05), shift([-value for value in values], 0.05)
    assert found.value == pytest.approx(median(averages(values)), abs=1e-11)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-11)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(("size", "skip", "level"), [(6, 1, 0.96875), (10, 9, 0.951171875), (20, 53, 0.95155907)])
def test_ranks_of_the_interval_are_those_of_the_published_tables(size: int, skip: int, level: float) -> None:
    # Hollander, Wolfe and Chicken, table A.4: P(T+ >= 47) = 0.024 for n = 10, P(T+ >= 158) = 0.024 for n = 20.
    found = interval_rank(size, 0.05)
    assert found[0] == skip
    assert found[1] == pytest.approx(level)


def test_fewer_than_six_differences_have_no_interval_at_95_percent() -> None:
    assert not shift([0.01, 0.02, 0.03, 0.04, 0.05], 0.05).attained
    assert shift([0.01, 0.02, 0.03, 0.04, 0.05, 0.06], 0.05).attained


def test_the_normal_approximation_continues_the_exact_ranks() -> None:
    exact = interval_rank(EXACT_UP_TO, 0.05)[0]
    approximate = interval_rank(EXACT_UP_TO + 1, 0.05)[0]
    assert 0 < approximate - exact < EXACT_UP_TO


def test_quantiles_stand_for_many_differences_without_moving_the_interval() -> None:
    draw = random.Random(4)
    values = [draw.gauss(0.02, 0.1) for _ in range(3 * MANY)]
    found = shift(values, 0.05)
    assert found.value == pytest.approx(median(values), abs=0.01)
    assert 2 * found.half_width == pytest.approx(2 * 1.96 * 0.1 / len(values) ** 0.5, rel=0.15)


def test_equal_values_share_their_mean_rank() -> None:
    assert ranked([3.0, 1.0, 3.0, 0.0]) == [3.5, 2.0, 3.5, 1.0]
