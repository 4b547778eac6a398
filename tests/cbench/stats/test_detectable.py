"""The smallest difference that is named is the one that comparisons find, by `cbench compare`'s own test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log1p
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from cbench.compare.stats import HIGHER, LOWER, compare_samples
from cbench.stats.detectable import (
    Detectable,
    detectable,
    intervals,
    one_after_the_other,
    spread_of,
)

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

MACHINES: dict[str, Draw] = {
    "normal": lambda rng, n: 1e6 * (1 + 0.003 * rng.standard_normal(n)),
    "two states": lambda rng, n: 1e6 * (1 + 0.02 * (rng.random(n) < 0.4) + 0.001 * rng.standard_normal(n)),
    "heavy tails": lambda rng, n: 1e6 * np.exp(0.002 * rng.standard_t(2, n)),
    "interrupted": lambda rng, n: 1e6 * (1 + rng.exponential(0.005, n)),
}


def outcome(a: NDArray[np.float64], b: NDArray[np.float64]) -> str:
    return compare_samples([[float(v)] for v in a], [[float(v)] for v in b], "median", 0.05).outcome


def found_share(logs: Sequence[float], processes: int, difference: float, seed: int, draws: int) -> float:
    """The share of comparisons that detect a planted difference with the correct sign."""
    drawn = intervals(logs, processes, draws, Random(seed))
    return sum(low + log1p(difference) > 0 for low, _ in drawn) / draws


def shares(name: str) -> tuple[float, float]:
    """How often the named difference, and a third of it, are found in fresh processes of the machine."""
    rng, draw = np.random.default_rng(7), MACHINES[name]
    everything = np.log(draw(rng, 100_000)).tolist()
    found, third = [], []
    for seed in range(8):
        named = detectable(draw(rng, 60), 10, seed).difference
        found.append(found_share(everything, 10, named, 1, 500))
        third.append(found_share(everything, 10, named / 3, 1, 500))
    return float(np.mean(found)), float(np.mean(third))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "heavy tails", "interrupted"])
def test_the_named_difference_is_found_in_70_to_90_percent_and_a_third_of_it_in_less_than_30(name: str) -> None:
    found, third = shares(name)
    assert 0.7 <= found <= 0.9
    assert third < 0.3


@pytest.mark.slow
def test_on_a_machine_of_two_states_it_is_found_as_often_and_smaller_ones_by_luck() -> None:
    found, third = shares("two states")
    assert 0.7 <= found <= 0.9
    assert third < 0.6
    values = MACHINES["two states"](np.random.default_rng(7), 60)
    assert (
        detectable(values, 10, 1).third_found
        > 0.3
        > detectable(MACHINES["normal"](np.random.default_rng(7), 60), 10, 1).third_found
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_equal_code_is_called_different_in_at_most_one_of_twenty(name: str) -> None:
    named = detectable(MACHINES[name](np.random.default_rng(3), 200), 10, 1)
    assert named.false_alarms <= 0.065


def test_the_share_found_is_that_of_the_comparison_itself() -> None:
    logs = spread_of(MACHINES["normal"](np.random.default_rng(1), 40))
    random = Random(5)
    for low, high in intervals(logs, 10, 100, Random(5)):
        a, b = (np.exp(random.choices(logs, k=10)) for _ in range(2))
        called = outcome(a, b)
        assert (called == HIGHER) == (low > 0)
        assert (called == LOWER) == (high < 0)


@pytest.mark.slow
def test_the_answer_lies_in_its_range_and_a_longer_look_narrows_that() -> None:
    draw = MACHINES["normal"]
    short, long = (detectable(draw(np.random.default_rng(2), n), 10, 1) for n in (8, 200))
    for each in (short, long):
        assert each.low <= each.difference <= each.high
    assert long.high / long.low < short.high / short.low


@pytest.mark.slow
def test_four_times_the_processes_detect_half_the_difference() -> None:
    values = MACHINES["normal"](np.random.default_rng(4), 100)
    few, many = detectable(values, 10, 1), detectable(values, 40, 1)
    assert many.difference == pytest.approx(few.difference / 2, rel=0.1)
    assert few.processes_for(few.difference / 2) == 40
    logs = spread_of(values)
    assert found_share(logs, 40, few.difference / 2, 9, 2000) == pytest.approx(0.8, abs=0.06)


@pytest.mark.slow
def test_a_machine_without_any_spread_detects_one_step_of_its_counter() -> None:
    named = detectable([100.0] * 10, 10, 1, step=0.01)
    assert named == Detectable(0.01, 0.01, 0.01, 10, 1.0, 0.0)
    assert detectable([100.0] * 10, 10, 1).difference == 0


def test_too_few_processes_for_any_answer_are_refused() -> None:
    for wrong in ([1.0], [1.0, 0.0], []):
        with pytest.raises(ValueError, match="at least two"):
            detectable(wrong, 10, 1)


def test_an_unrealistic_number_of_processes_is_not_reported() -> None:
    assert Detectable(5.0, 4.0, 6.0, 10, 0.2, 0.05).processes_for(0.001) is None
    assert Detectable(0.0001, 0.0001, 0.0001, 10, 0.2, 0.05).processes_for(0.001) == 4


def test_a_drift_is_detected_when_a_runs_wholly_before_b() -> None:
    steady = MACHINES["normal"](np.random.default_rng(6), 60)
    called, of = one_after_the_other(steady, 10)
    assert of == 9
    assert called <= 2
    drifting = steady * (1 + np.arange(60) / 1000)
    assert one_after_the_other(drifting, 10) == (9, 9)
    assert one_after_the_other([1.0] * 7, 10) == (0, 0)
