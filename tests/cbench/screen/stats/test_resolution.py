"""Clocks that are as coarse as the noise are announced, others are not."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.stats.resolution import coarse, coarse_words


def samples(step: float, sd: float, n: int = 20) -> list[np.ndarray]:
    draw = np.random.default_rng(2)
    return [np.round((7 + sd * draw.normal(size=n)) / step) * step for _ in range(4)]


@pytest.mark.parametrize("step", [0.001, 1.0, 1 / 3])
def test_values_within_some_steps_are_coarse(step: float) -> None:
    clock = coarse(samples(step, step))
    assert clock is not None
    assert clock.step == pytest.approx(step)
    assert 1 <= clock.range <= 5
    assert coarse_words("wall", clock, "s").startswith(f"wall: read in steps of {step:.4g} s, and values of one")


@pytest.mark.parametrize(("step", "sd"), [(1e-9, 1.0), (0.001, 0.1), (1.0, 0.0)])
def test_fine_clocks_and_constant_values_are_not_coarse(step: float, sd: float) -> None:
    assert coarse(samples(step, sd)) is None


def test_too_few_values_show_neither_a_coarse_nor_a_fine_clock() -> None:
    assert coarse([np.array([1.0, 2.0])]) is None
