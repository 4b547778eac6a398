"""Whether the orders were mixed in time: stretches of equal orders, enumerated."""

from __future__ import annotations

from itertools import combinations
from math import comb, isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.analysis import sequence
from cbench.stats import stretches
from cbench.stats.stretches import few


def runs(text: str) -> np.ndarray:
    return np.array([letter == "R" for letter in text])


@pytest.mark.parametrize("a", range(6))
@pytest.mark.parametrize("b", range(6))
def test_the_chance_of_few_stretches_is_the_share_of_all_sequences(a: int, b: int) -> None:
    counts = []
    for chosen in combinations(range(a + b), b):
        ones = np.isin(np.arange(a + b), chosen)
        counts.append(1 + int((ones[1:] != ones[:-1]).sum()))
    for most in range(1, a + b + 1):
        wanted = sum(count <= most for count in counts) / len(counts) if a and b else 1.0
        assert isclose(few(a, b, most), wanted, abs_tol=1e-15)


def test_the_table_of_swed_and_eisenhart_has_these_values() -> None:
    """P(at most so many runs) for 5 and 5, and 10 and 10."""
    assert [round(few(5, 5, r), 3) for r in range(2, 7)] == [0.008, 0.040, 0.167, 0.357, 0.643]
    assert round(few(10, 10, 6), 3) == 0.019


@pytest.mark.parametrize("a", [3, 400, 700, 1500])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.51, 1.0, 1.1])
def test_the_chance_is_the_same_from_logarithms(a: int, share: float) -> None:
    count = max(2, int(share * 2 * min(a, 800)))
    exact = sum(stretches._ways(a, 800, number) for number in range(2, count + 1)) / comb(a + 800, a)
    summed = sum(stretches._probability(a, 800, number) for number in range(2, count + 1))
    assert isclose(summed, exact, rel_tol=1e-8)


@pytest.mark.parametrize(
    ("order", "interleaved"),
    [
        ("FR" * 50, True),
        ("F" * 50 + "R" * 50, False),
        ("R" * 3 + "F" * 3, False),  # too short for chance to tell, but nothing is between
        ("FR", True),
        ("FFR", False),
        ("F" * 20, False),
        ("F" * 25 + "R" * 50 + "F" * 25, False),
        ("FFRRFRRF" * 5, True),
        ("", False),
    ],
)
def test_sequences(order: str, interleaved: bool) -> None:
    found = sequence(runs(order))
    assert found.interleaved is interleaved
    assert (found.fixed, found.random) == (order.count("F"), order.count("R"))


@given(st.text("FR", min_size=1, max_size=40))
def test_the_orders_may_be_exchanged(text: str) -> None:
    one, other = sequence(runs(text)), sequence(~runs(text))
    assert (one.stretches, one.p_few, one.interleaved) == (other.stretches, other.p_few, other.interleaved)
