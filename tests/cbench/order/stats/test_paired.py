"""Runs side by side in time are compared with each other: drift over the study cancels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.order.stats.paired import matched, pairs_of_runs, signed_ranks


def kinds(text: str) -> np.ndarray:
    return np.array([each == "R" for each in text])


CASES = [
    ("FRFRFR", [0, 0, 1, 1, 2, 2]),
    ("RFFRRF", [0, 0, 1, 1, 2, 2]),
    ("FRFRF", [0, 0, 1, 1, -1]),
    ("FFFRRR", None),
    ("FFFF", None),
    ("F", None),
    ("FRFFRRFRFRFRFRFRFRFRFR", [*(0, 0, -1, 1, 1), *(2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, -1)]),
]


@pytest.mark.parametrize(("text", "pairs"), CASES)
def test_neighboring_runs_of_different_order_are_paired_if_few_runs_are_left_over(text: str, pairs: object) -> None:
    found = pairs_of_runs(kinds(text))
    assert (None if found is None else found.tolist()) == pairs


def test_only_pairs_with_a_value_in_each_order_count() -> None:
    pair = np.array([0, 0, 1, 1, 2, 2, -1], dtype=np.int32)
    keep = np.array([0, 1, 2, 4, 5, 6])
    fixed, random = matched(np.arange(7.0)[keep], kinds("FRFRRFF")[keep], pair[keep])
    assert (fixed.tolist(), random.tolist()) == ([0, 5], [1, 4])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-4, 4), min_size=6, max_size=9))
def test_p_is_the_share_of_all_signs(away: list[int]) -> None:
    size = np.abs(away)
    ranks = scipy.stats.rankdata(size) * (size > 0)
    seen = abs(float((np.sign(away) * ranks).sum()))
    every = [abs(float((np.array(signs) * ranks).sum())) for signs in product((1, -1), repeat=len(away))]
    found = signed_ranks(np.array(away, dtype=np.float64))
    assert found is not None
    assert found.p == pytest.approx(np.mean([each >= seen - 1e-9 for each in every]), rel=1e-9)


@pytest.mark.parametrize("n", [30, 100, 400])
def test_of_many_pairs_p_is_scipys(n: int) -> None:
    away = np.random.default_rng(n).normal(size=n) + 0.2
    found = signed_ranks(away)
    assert found is not None
    assert found.p == pytest.approx(scipy.stats.wilcoxon(away, method="exact").pvalue, rel=0.02)


def test_too_few_pairs_have_no_test() -> None:
    assert signed_ranks(np.arange(5.0)) is None


def test_on_a_drifting_host_pairs_detect_twice_as_many_effects() -> None:
    """A shift of half a deviation in a random walk of 0.3 deviations per run, 100 runs of each order."""
    draw, found = np.random.default_rng(2), np.zeros(2)
    for _ in range(100):
        value = np.cumsum(0.3 * draw.normal(size=200)) + draw.normal(size=200)
        value[1::2] += 0.5
        ranks = signed_ranks(value[1::2] - value[::2])
        assert ranks is not None
        found += ranks.p < 0.05, scipy.stats.mannwhitneyu(value[::2], value[1::2]).pvalue < 0.05
    assert found[0] >= 85
    assert found[1] <= 60
