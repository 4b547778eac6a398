"""The adaptive number of replicates: when it stops, and its results."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.stats.adaptive import adaptive_bca, block, twice_error
from cbench.stats.bca import bca


@pytest.mark.parametrize(("level", "size"), [(0.95, 10_000), (0.99, 10_000), (0.995, 20_000), (0.999, 100_000)])
def test_a_block_has_ten_thousand_replicates_or_a_hundred_beyond_the_ends(level: float, size: int) -> None:
    assert block(level) == size


ENDS = (9.985, 9.984, 9.986, 9.985)


def test_doubled_errors_of_block_means_are_those_of_the_example() -> None:
    assert twice_error(ENDS[:1]) == float("inf")
    found = [twice_error(ENDS[:h]) for h in (2, 3, 4)]
    assert found == pytest.approx([0.0010000, 0.0011547, 0.0008165], abs=5e-8)


VALUES = np.random.default_rng(4).lognormal(size=60)


@pytest.mark.slow
def test_a_smaller_tolerance_takes_more_replicates_and_all_of_them_make_the_result() -> None:
    coarse, fine = adaptive_bca(VALUES, delta=0.05), adaptive_bca(VALUES, delta=0.005)
    assert coarse.replicates == 20_000
    assert fine.replicates > coarse.replicates
    assert fine.replicates % 10_000 == 0
    long = bca(VALUES, replicates=1_000_000, seed=9)
    assert (fine.low, fine.high) == pytest.approx((long.low, long.high), abs=0.01)
    assert (coarse.why, fine.why) == (None, None)


def test_where_the_most_replicates_are_not_enough_it_says_how_stable_they_are() -> None:
    found = adaptive_bca(VALUES, delta=1e-9, most=30_000)
    assert found.replicates == 30_000
    assert found.low is not None
    assert str(found.why).startswith("after 30,000 replicates stable within 0.0")
    assert str(found.why).endswith("not within 1e-09")
    assert "one block" in str(adaptive_bca(VALUES, most=500).why)


def test_samples_without_an_interval_have_none_here_either() -> None:
    assert "3 values are needed" in str(adaptive_bca([1, 2]).why)
    assert adaptive_bca([2, 2, 2]).width == 0
