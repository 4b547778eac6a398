"""The median's interval by ranks against published tables and scipy, and the three cases of two intervals."""

from __future__ import annotations

from math import isclose

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.median_ci import MedianInterval, case, gap
from cbench.stats.median_ranks import ranks

TABLE = [
    # n, exact and its coverage, published and its coverage; at 95 %
    (5, None, None, (1, 5), 0.9375),
    (6, (1, 6), 0.9688, (1, 6), 0.9688),
    (8, (1, 8), 0.9922, (2, 8), 0.9609),
    (10, (2, 9), 0.9785, (2, 10), 0.9883),
    (12, (3, 10), 0.9614, (3, 12), 0.9805),
    (20, (6, 15), 0.9586, (6, 17), 0.9780),
    (30, (10, 21), 0.9572, (10, 23), 0.9760),
    (36, (12, 25), 0.9712, (13, 26), 0.9617),
    (50, (18, 33), 0.9672, (19, 34), 0.9599),
    (70, (27, 44), 0.9586, (27, 46), 0.9735),
    (71, (27, 45), 0.9681, (28, 46), 0.9631),
    (100, (40, 61), 0.9648, (41, 62), 0.9611),
    (120, (49, 72), 0.9647, (50, 73), 0.9616),
    (240, (105, 136), 0.9548, (105, 138), 0.9656),
    (600, (276, 325), 0.9546, (276, 327), 0.9621),
]
LEVELS = st.floats(0.5, 0.9999)
WHOLE = st.lists(st.integers(0, 8), min_size=3, max_size=3).map(sorted).map(lambda ends: MedianInterval(*ends))

WORKED = [
    # fixed, random, and the case by the algorithm and by the tool
    ((1, 2, 3), (4, 5, 6), 1, 1),  # apart
    ((1, 2, 3), (3, 5, 6), 3, 3),  # ends that touch are not apart
    ((1, 3, 5), (2, 4, 6), 2, 2),  # both medians inside
    ((1, 3, 5), (2, 6, 7), 3, 2),  # one inside: fixed's 3 in (2, 7)
    ((1, 2, 5), (4, 6, 7), 3, 3),  # overlapping, none inside
    ((1, 3, 5), (3, 6, 7), 3, 2),  # a median on an end: the tool counts it where random ends higher
    ((3, 6, 7), (1, 3, 5), 3, 3),  # the same, exchanged: now it does not
    ((1, 3, 5), (3, 4, 5), 3, 2),  # equal ends are not higher: strict, and random's 4 lies inside
    ((2, 2, 2), (2, 2, 2), 3, 3),  # points: nothing is strictly inside
    ((2, 2, 2), (3, 3, 3), 1, 1),
    ((0, 5, 9), (4, 5, 6), 2, 2),
]


def coverage(n: int, j: int, k: int) -> float:
    """P(j <= B <= k - 1) for B ~ Binomial(n, 1/2)."""
    tail = scipy.stats.binom(n, 0.5).cdf
    return float(tail(k - 1) - tail(j - 1))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"n={row[0]}")
def test_the_ranks_at_95_percent_are_those_of_the_table(row: tuple) -> None:
    n, exact, exact_covers, published, published_covers = row
    assert (ranks(n, 0.95), ranks(n, 0.95, published=True)) == (exact, published)
    for found, covers in ((exact, exact_covers), (published, published_covers)):
        if found is not None:
            assert isclose(coverage(n, *found), covers, abs_tol=5e-5)


@pytest.mark.slow
@given(st.integers(0, 80), LEVELS)
def test_the_exact_ranks_are_the_innermost_symmetric_ones_that_keep_the_level(n: int, level: float) -> None:
    tail = scipy.stats.binom(n, 0.5).cdf
    fitting = [j for j in range(1, n // 2 + 1) if tail(j - 1) <= (1 - level) / 2 * (1 + 1e-12)]
    assert ranks(n, level) == ((fitting[-1], n + 1 - fitting[-1]) if fitting else None)


@given(st.integers(1, 500), LEVELS, st.booleans())
def test_ranks_lie_in_the_sample_and_wider_levels_give_wider_ones(n: int, level: float, published: bool) -> None:
    found, wider = ranks(n, level, published), ranks(n, (1 + level) / 2, published)
    if found is not None:
        assert 1 <= found[0] <= found[1] <= n
    if wider is not None:
        assert found is not None
        assert wider[1] - wider[0] >= found[1] - found[0]


@pytest.mark.parametrize("n", [999, 1000, 1001, 5000, 100_000])
def test_large_samples_have_the_ranks_that_scipys_binomial_gives(n: int) -> None:
    found = ranks(n, 0.95)
    assert found is not None
    assert coverage(n, *found) >= 0.95
    assert coverage(n, found[0] + 1, found[1] - 1) < 0.95


def test_an_unattainable_interval_is_none() -> None:
    corrected = 1 - 0.05 / 20
    assert (ranks(9, corrected), ranks(10, corrected)) == (None, (1, 10))
    assert isclose(coverage(10, 1, 10), 0.998046875)
    assert ranks(0, 0.95) is ranks(0, 0.95, published=True) is None


@pytest.mark.parametrize(("fixed", "random", "algorithm", "tool"), WORKED)
def test_the_papers_worked_examples_give_its_cases(
    fixed: tuple[int, int, int], random: tuple[int, int, int], algorithm: int, tool: int
) -> None:
    pair = MedianInterval(*fixed), MedianInterval(*random)
    assert (case(*pair), case(*pair, published=True)) == (algorithm, tool)


@given(WHOLE, WHOLE)
def test_the_algorithm_says_the_same_when_the_orders_are_exchanged(
    fixed: MedianInterval, random: MedianInterval
) -> None:
    assert case(fixed, random) == case(random, fixed)


@given(WHOLE, WHOLE)
def test_the_rules_differ_only_in_the_meaning_of_inside(fixed: MedianInterval, random: MedianInterval) -> None:
    algorithm, tool = case(fixed, random), case(fixed, random, published=True)
    assert (algorithm == 1) == (tool == 1)
    assert algorithm != 2 or tool == 2
    assert (algorithm == 1) == (gap(fixed, random) > 0 or (fixed.low == fixed.high != random.low == random.high))


def test_the_gap_is_in_widths_of_the_wider_interval() -> None:
    assert gap(MedianInterval(0, 1, 2), MedianInterval(4, 5, 8)) == 0.5
    assert gap(MedianInterval(4, 5, 8), MedianInterval(0, 1, 2)) == 0.5
    assert gap(MedianInterval(0, 1, 4), MedianInterval(2, 5, 6)) == -0.5
    assert gap(MedianInterval(0, 1, 2), MedianInterval(2, 5, 6)) == 0
    assert gap(MedianInterval(1, 1, 1), MedianInterval(2, 2, 2)) == 0
