"""Variance between builds and from run to run, on simulated times."""

from __future__ import annotations

import random
from math import exp

import pytest

from cbench.layout.analyze import analyze


def simulated(seed: int, between: float, within: float, builds: int = 12, blocks: int = 30) -> list[list[float]]:
    dice = random.Random(seed)
    effects = [dice.gauss(0, between) for _ in range(builds)]
    rows = []
    for _ in range(blocks):
        drift = dice.gauss(0, 0.05)  # of the host, for all builds of a block
        rows.append([exp(drift + effect + dice.gauss(0, within)) for effect in effects])
    return rows


def test_the_components_are_those_of_the_simulation_whatever_the_host_drifts() -> None:
    found = [analyze(simulated(seed, 0.03, 0.01)) for seed in range(40)]
    assert sum(each.between for each in found) / 40 == pytest.approx(0.03, rel=0.1)
    assert sum(each.within for each in found) / 40 == pytest.approx(0.01, rel=0.1)
    inside = sum(each.share_low <= 0.9 <= each.share_high for each in found)
    assert inside >= 33  # 95 % of 40; 33 and fewer come in 1 of 500 such simulations


def test_equal_builds_are_rarely_reported_to_differ() -> None:
    found = [analyze(simulated(seed, 0, 0.01)) for seed in range(100)]
    assert sum(each.p <= 0.05 for each in found) <= 13
    assert all(each.share_low < 0.1 for each in found)


def test_a_few_interrupted_runs_are_not_layout() -> None:
    rows = simulated(3, 0.02, 0.005)
    clean = analyze(rows)
    for block in range(0, 30, 10):
        rows[block][4] *= 3
    assert analyze(rows).share == pytest.approx(clean.share, abs=0.1)


def test_one_build_cannot_claim_less_than_the_spread_of_builds_and_many_can() -> None:
    found = analyze(simulated(5, 0.03, 0.003, builds=30))
    assert found.one_build() == pytest.approx(1.96 * 2**0.5 * found.between, rel=1e-3)
    needed = found.builds_for(0.01)
    assert needed is not None
    assert needed == pytest.approx(2 * (2.8 * found.between / 0.01) ** 2, rel=0.1)
    assert found.builds_for(1e-6) is None


def test_times_without_any_noise_are_all_layout_and_equal_ones_none() -> None:
    assert analyze([[1.0, 1.1, 1.2]] * 3).share == 1
    equal = analyze([[1.0, 1.0, 1.0]] * 3)
    assert (equal.share, equal.range) == (0, 0)
    assert equal.p > 0.05


@pytest.mark.parametrize(("builds", "blocks"), [(3, 5), (10, 5), (4, 10), (4, 20)])
def test_the_interval_and_p_hold_from_the_smallest_allowed_design_on(builds: int, blocks: int) -> None:
    found = [analyze(simulated(seed, 0.02, 0.02, builds, blocks)) for seed in range(400)]
    assert sum(each.share_low > 0.5 for each in found) <= 21  # 2.5 % of 400; more come in 1 of 1,000 such simulations
    assert sum(each.share_high < 0.5 for each in found) <= 21
    none = [analyze(simulated(seed, 0, 0.02, builds, blocks)) for seed in range(400)]
    assert sum(each.p <= 0.05 for each in none) <= 35  # 5 % of 400, as above


def test_builds_that_seem_closer_than_chance_are_not_called_equal() -> None:
    found = analyze([[1.0, 1.1, 1.2], [1.2, 1.0, 1.1], [1.1, 1.2, 1.0]] * 2)
    assert found.share_low == 0
    assert found.between_high > 0.01
