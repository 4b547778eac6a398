"""The sequential test of one group: how many values it takes, and how often it errs."""

from __future__ import annotations

import random

import pytest

from cbench.knobs.judge import ALIKE, LOUDER, MOST_REPEATS, QUIETER, QuietLevel


def level(values: list[float], range_: float = 100.0) -> QuietLevel:
    return QuietLevel(0.01, 0.05, 48, values, range_=range_)


CALM = [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.1, 9.9]


@pytest.mark.parametrize(("value", "sign"), [(10.0, ALIKE), (10.05, ALIKE), (12.0, LOUDER), (8.0, QUIETER)])
def test_one_value_is_enough_if_it_is_clear(value: float, sign: int) -> None:
    assert level(CALM).judge([value]) == sign


def test_an_undecided_value_is_measured_again_before_the_decision() -> None:
    found = level(CALM)
    between = found.center + found.matters / 2
    assert found.judge([between]) is None
    assert found.judge([between] * MOST_REPEATS) is not None


def test_a_level_without_noise_divides_by_nothing() -> None:
    found = level([0.0, 0.0, 0.0], range_=5.0)
    assert found.judge([0.0]) == ALIKE
    assert found.judge([5.0]) == LOUDER


def test_an_outlier_among_many_values_leaves_the_deviation_as_it_is() -> None:
    assert level([*CALM, 30.0]).deviation < 5 * level(CALM).deviation


def test_a_decision_from_few_values_is_cautious() -> None:
    few, many = level(CALM[:3]), level(CALM * 4)
    assert few.cautious / few.deviation > 2
    assert many.cautious / many.deviation < 1.1


def test_the_smallest_effect_that_matters_is_at_least_the_tolerated_share() -> None:
    assert QuietLevel(0.5, 0.05, 48, CALM, range_=100.0).matters == pytest.approx(5.0)


def test_a_level_that_begins_again_keeps_what_is_known_of_the_noise() -> None:
    found = level(list(CALM))
    before = found.freedom
    found.begin_anew([7.0])
    assert found.center == 7.0
    assert found.freedom == before


def test_nothing_is_called_louder_in_fewer_than_the_stated_share() -> None:
    draw, wrong = random.Random(1), 0
    for _ in range(2000):
        found = level([draw.gauss(10, 0.1) for _ in range(3)])
        values: list[float] = []
        while (sign := found.judge(values) if values else None) is None:
            values.append(draw.gauss(10, 0.1))
        wrong += sign == LOUDER
    assert wrong <= 20
