"""The table of coverage: drawn samples have the expected means, and parts of the table are reproduced."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import generator
from cbench.stats.interval import MID
from tests.benchmarks.screen_coverage import DISTRIBUTIONS, covered


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_that_intervals_should_hold_is_the_distributions(name: str) -> None:
    draw, mean = DISTRIBUTIONS[name]
    values = draw(generator(1), (1000, 400))
    assert values.mean() == pytest.approx(mean, abs=5 * values.std() / sqrt(values.size))


def test_t_intervals_of_normal_values_have_the_nominal_coverage() -> None:
    draw, mean = DISTRIBUTIONS["normal"]
    for n in (2, 5, 10):
        share, error = covered(t_ends(draw(generator(2, n), (20_000, n)), 0.95), mean)
        assert share == pytest.approx(95, abs=5 * error)


@pytest.mark.parametrize(
    ("name", "n", "wanted"),
    [
        ("normal", 5, 84.0),
        ("normal", 40, 94.3),
        ("log-normal (sigma 1)", 10, 83.2),
        ("two modes (80 %, 20 %)", 5, 65.9),
    ],
)
def test_bca_intervals_have_the_coverage_of_the_table(name: str, n: int, wanted: float) -> None:
    draw, mean = DISTRIBUTIONS[name]
    share, error = covered(bca_ends(draw(generator(3, n), (1500, n)), 0.95, 2000, MID, generator(4, n)), mean)
    assert share == pytest.approx(wanted, abs=5 * error)


def test_a_missing_interval_contains_nothing() -> None:
    share, _ = covered((np.array([np.nan, 0.0]), np.array([np.nan, 2.0])), 1.0)
    assert share == 50
