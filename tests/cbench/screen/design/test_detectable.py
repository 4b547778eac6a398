"""Simulated experiments detect the effects that a plan promises."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.design.detectable import detectable, detectable_words, smallest
from cbench.screen.stats.anova import anova

CUBE = np.array([(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [3, 6])
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
        found += anova("abc", levels, values, blocks if iterations < 6 else None).effects[0,].p < 0.05
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
    assert "with a chance of 80 %; iterations needed: " in detectable_words("wall", made, "s")
    assert detectable_words("wall", detectable(8, 1, 6, 0.05), "s").startswith("wall: one iteration: what can be found")
