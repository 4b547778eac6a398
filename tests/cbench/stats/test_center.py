"""The robust center: where values lie densest, however far the others are above."""

from __future__ import annotations

import random
from math import sqrt
from statistics import median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.center import Center, across, center

VALUES = st.lists(st.floats(1, 1e9), min_size=1, max_size=60)


@given(VALUES, st.floats(0, 100))
def test_the_interval_holds_the_center_and_the_center_lies_among_the_values(values: list[float], step: float) -> None:
    found = center(values, step)
    assert found.low <= found.value <= found.high
    assert min(values) - 2 * step <= found.value <= max(values) + 2 * step


@given(VALUES, st.randoms())
def test_the_order_of_the_values_does_not_matter(values: list[float], dice: random.Random) -> None:
    shuffled = list(values)
    dice.shuffle(shuffled)
    assert center(values, 1) == center(shuffled, 1)


@given(VALUES, st.floats(0.01, 100))
def test_it_scales_with_the_values(values: list[float], factor: float) -> None:
    one, other = center(values, 0), center([value * factor for value in values], 0)
    assert other.low == pytest.approx(one.low * factor)
    assert other.high == pytest.approx(one.high * factor)


@pytest.mark.parametrize("seed", range(10))
def test_two_thirds_of_the_trials_with_added_time_do_not_move_it(seed: int) -> None:
    dice = random.Random(seed)
    values = [1e6 + dice.gauss(0, 100) + (dice.random() > 0.33) * dice.uniform(1_000, 60_000) for _ in range(1000)]
    found = center(values, 30)
    assert found.value == pytest.approx(1e6, abs=200)
    assert found.low <= 1e6 <= found.high


def test_of_normal_values_it_varies_hardly_more_than_their_mean_and_not_with_a_tenth_in_a_tail() -> None:
    dice = random.Random(9)
    errors = []
    for tail in (0.0, 0.1):
        rows = [
            [dice.gauss(0, 100) + (dice.random() < tail) * dice.expovariate(1 / 500) for _ in range(1000)]
            for _ in range(40)
        ]
        errors.append(pstdev([center([1e6 + each for each in row], 1).value for row in rows], 1e6))
    assert max(errors) < 100 / sqrt(1000) * 2


def test_values_in_steps_are_averaged_over_several_steps() -> None:
    dice = random.Random(3)
    of_many = [
        center([round((1000.4 + dice.uniform(-1, 1)) / 5) * 5 for _ in range(400)], 2.5).value for _ in range(20)
    ]
    assert max(of_many) - min(of_many) < 1


def test_of_processes_it_is_the_median_between_order_statistics() -> None:
    found = across([Center(float(value), value - 0.1, value + 0.1) for value in range(10)])
    assert found == Center(4.5, 1.0, 8.0)


def test_with_few_processes_the_interval_holds_all_of_theirs() -> None:
    assert across([Center(1.0, 0.5, 2.0), Center(3.0, 2.5, 9.0)]) == Center(2.0, 0.5, 9.0)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=30))
def test_the_median_of_processes_lies_in_their_interval(values: list[float]) -> None:
    found = across([Center(value, value - 1, value + 1) for value in values])
    assert found.value == median(values)
    assert found.low <= found.value <= found.high


def test_no_values_have_no_center() -> None:
    with pytest.raises(ValueError, match="no values"):
        center([], 1)
