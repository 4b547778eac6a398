"""Simulated experiments detect the effects that a plan promises."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cbench.screen.design.detectable import (
    MOST_VALUES,
    detectable,
    detectable_words,
    fewest_for_ranks,
    ranks_decide,
    smallest,
)
from cbench.screen.stats.anova import anova
from cbench.screen.stats.block_tests import blocked

CUBE = np.array([(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [3, 6, 9])
def test_an_effect_of_the_reported_size_is_found_in_four_of_five_experiments(iterations: int) -> None:
    """Each effect by itself; 200 experiments, three standard errors of 2.8 %."""
    size = smallest(8, iterations, 1, 0.05)
    assert size is not None
    draw = np.random.default_rng(1)
    levels = np.tile(CUBE, (iterations, 1))
    blocks = np.repeat(np.arange(iterations), 8)
    found = 0
    for _number in range(200):
        values = draw.normal(size=levels.shape[0]) + size * levels[:, 0]
        if ranks_decide(8, iterations, 1, 0.05):
            made = blocked(CUBE, values.reshape(iterations, 8)).effects
        else:
            made = anova("abc", levels, values, blocks if iterations < 6 else None).effects
        found += made[0,].p < 0.05
    assert 0.71 <= found / 200 <= 0.95


def test_more_iterations_detect_smaller_effects_and_the_reported_number_is_the_smallest() -> None:
    made = detectable(8, 12, 6, 0.05, spread=2.0)
    assert made.sd is not None
    assert made.effect == pytest.approx(2 * made.sd)
    for size, n in ((1.0, made.iterations["1"]), (0.5, made.iterations["0.5"]), (0.2, made.iterations["0.2"])):
        at = smallest(8, n, 6, 0.05)
        assert at is not None
        assert at <= size
    assert made.iterations["1"] < made.iterations["0.5"] < made.iterations["0.2"]
    assert "with a probability of 80 %; iterations needed: " in detectable_words("wall", made, "s")
    assert detectable_words("wall", detectable(8, 1, 6, 0.05), "s").startswith(
        "wall: with one iteration, the detectable effect"
    )


@pytest.mark.parametrize(("tests", "alpha", "least"), [(6, 0.05, 8), (6, 0.0025, 13), (1, 0.05, 6), (1, 0.5, 3)])
def test_ranks_of_two_treatments_decide_as_soon_as_all_signs_alike_can_be_significant(
    tests: int, alpha: float, least: int
) -> None:
    assert fewest_for_ranks(2, tests, alpha) == least
    assert tests * 2.0 ** (1 - least) < alpha <= tests * 2.0 ** (2 - least)


def test_no_further_iteration_makes_the_detectable_effect_an_eighth_larger() -> None:
    """Where ranks had decided from 8 iterations on, they found in 52 % what single values of 7 showed in 82 %."""
    for treatments in (2, 4, 8, 12, 32):
        sizes = [smallest(treatments, n, 6, 0.05) for n in range(3, 60)]
        for before, after in pairwise(sizes):
            assert before is not None
            assert after is not None
            assert after <= 1.12 * before


def test_the_iterations_that_are_reported_are_enough_and_so_are_all_more_than_these() -> None:
    for size, n in detectable(8, 12, 6, 0.05).iterations.items():
        for more in (n, n + 1, 14, 15, 2 * n):
            found = smallest(8, max(n, more), 6, 0.05)
            assert found is not None
            assert found <= float(size)


def test_too_many_values_for_an_analysis_of_variance_are_left_to_ranks_that_can_reject() -> None:
    assert ranks_decide(MOST_VALUES // 8 + 1, 8, 6, 0.05)
    assert not ranks_decide(MOST_VALUES // 8, 8, 6, 0.05)
    assert not ranks_decide(MOST_VALUES, 7, 6, 0.05)
