"""The orders of a study: reproducible, fair, balanced."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.random_draws import Stream
from cbench.study.orders import DESIGNS, FIXED, INTERLEAVED, RANDOM, SHUFFLED, WILLIAMS, drawn_order, plan, square

ORDERS_OF_42 = [(4, 0, 2, 1, 3), (3, 0, 1, 4, 2), (0, 2, 4, 3, 1)]
SEEDS = st.integers(-(2**70), 2**70)


@given(st.integers(1, 40))
def test_in_a_williams_design_each_test_follows_each_other_and_is_at_each_position_equally_often(tests: int) -> None:
    rows = square(tests)
    assert len(rows) == (2 * tests if tests % 2 and tests > 1 else tests)
    places = Counter((place, test) for row in rows for place, test in enumerate(row))
    assert set(places.values()) == {len(rows) // tests}
    assert len(places) == tests * tests
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == tests * (tests - 1)
    assert len(set(follows.values())) <= 1


@given(st.integers(1, 12), st.integers(1, 4), SEEDS)
def test_a_plan_of_squares_is_balanced_whatever_the_seed(tests: int, squares: int, seed: int) -> None:
    runs = plan(WILLIAMS, tests, squares * len(square(tests)), seed)
    follows = Counter(pair for run in runs for pair in pairwise(run.order))
    assert len(set(follows.values())) <= 1
    assert len(follows) == tests * (tests - 1)
    places = Counter((place, test) for run in runs for place, test in enumerate(run.order))
    assert set(places.values()) == {len(runs) // tests}
    assert {run.kind for run in runs} == {WILLIAMS}


@given(st.sampled_from([each for each in DESIGNS if each != WILLIAMS]), st.integers(1, 9), st.integers(1, 9), SEEDS)
def test_each_run_has_each_test_once_and_the_seed_gives_the_same_orders_again(
    design: str, tests: int, repetitions: int, seed: int
) -> None:
    runs = plan(design, tests, repetitions, seed)
    assert all(sorted(run.order) == list(range(tests)) for run in runs)
    assert runs == plan(design, tests, repetitions, seed)
    assert plan(design, tests, repetitions + 1, seed)[: len(runs)] == runs
    drawn = [run.order for run in runs if run.kind == RANDOM]
    assert drawn == [drawn_order(tests, number, seed) for number in range(repetitions)]


@given(st.integers(1, 6), st.integers(1, 30), SEEDS)
def test_with_a_fixed_order_there_are_as_many_fixed_runs_as_random_ones_side_by_side(
    tests: int, repetitions: int, seed: int
) -> None:
    for design in (INTERLEAVED, SHUFFLED):
        runs = plan(design, tests, repetitions, seed)
        pairs = [(one.kind, other.kind) for one, other in zip(runs[::2], runs[1::2], strict=True)]
        assert all(sorted(pair) == [FIXED, RANDOM] for pair in pairs)
        assert all(run.order == tuple(range(tests)) for run in runs if run.kind == FIXED)
        assert design == SHUFFLED or set(pairs) == {(FIXED, RANDOM)}


def test_the_shuffled_design_starts_with_either_order() -> None:
    firsts = Counter(run.kind for run in plan(SHUFFLED, 3, 1000, seed=1)[::2])
    assert 400 < firsts[FIXED] < 600


def test_every_permutation_is_equally_likely() -> None:
    found = Counter(drawn_order(4, number, seed=7) for number in range(24_000))
    assert len(found) == 24
    chi2 = sum((count - 1000) ** 2 / 1000 for count in found.values())
    assert chi2 < 49.7  # the 0.999 quantile of chi-squared with 23 degrees of freedom


@pytest.mark.slow
def test_a_number_below_a_limit_is_fair_where_the_limit_is_not_a_power_of_two() -> None:
    stream = Stream(3, "fair")
    found = Counter(stream.below(300) for _ in range(300_000))
    assert set(found) == set(range(300))
    assert sum((count - 1000) ** 2 / 1000 for count in found.values()) < 381.4  # 0.999 quantile, 299 degrees
    with pytest.raises(ValueError, match="limit = 0: must be at least 1"):
        stream.below(0)


def test_the_orders_of_a_seed_never_change() -> None:
    assert [drawn_order(5, number, 42) for number in range(3)] == ORDERS_OF_42


def test_an_impossible_plan_of_runs_says_why() -> None:
    with pytest.raises(ValueError, match="no such design: alternating"):
        plan("alternating", 3, 3, 0)
    with pytest.raises(ValueError, match="3 tests need a multiple of 6 repetitions for Williams's design, not 4"):
        plan(WILLIAMS, 3, 4, 0)
    with pytest.raises(ValueError, match="at least one test"):
        plan(INTERLEAVED, 0, 1, 0)
