"""The Kruskal-Wallis test, and how often chance alone gives such an H: books, scipy, and counting all cases."""

from __future__ import annotations

from itertools import combinations
from math import comb, isclose

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.order.stats import permutation
from cbench.stats.kruskal import Kruskal, kruskal, of_sorted, tied

SAMPLES = st.lists(st.lists(st.integers(-6, 6), min_size=1, max_size=12), min_size=2, max_size=5)
ANY = st.floats(-1e12, 1e12, allow_subnormal=False)


def test_an_example_with_ties_by_hand() -> None:
    """1 2 2 3 | 2 3 4 4: ranks 1 3 3 5.5 | 3 5.5 7.5 7.5; rank sums 12.5 and 23.5.

    12/(8*9) (12.5^2/4 + 23.5^2/4) - 3*9 = 2.520833; ties of 3, 2 and 2: 1 - (24 + 6 + 6)/504 = 0.928571.
    """
    found = of([1, 2, 2, 3], [2, 3, 4, 4])
    assert isclose(found.h, 2.5208333333333335 / (1 - 36 / 504), rel_tol=1e-14)
    assert (found.n, found.groups) == (8, 2)
    assert isclose(found.eta2 or 0, (found.h - 1) / 6, rel_tol=1e-14)
    assert isclose(found.epsilon2 or 0, found.h / 7, rel_tol=1e-14)


def test_the_bottling_machines_of_kruskal_and_wallis() -> None:
    """Their article's table 1.2: three machines' daily output, H = 5.656."""
    found = of([340, 345, 330, 342, 338], [339, 333, 344], [347, 343, 349, 355])
    assert round(found.h, 3) == 5.656


@settings(deadline=None)
@given(SAMPLES)
def test_h_and_p_are_scipys_with_many_ties(samples: list[list[int]]) -> None:
    found = of(*samples)
    if len({value for sample in samples for value in sample}) == 1:
        assert (found.h, found.p) == (0, 1)
        return
    wanted = scipy.stats.kruskal(*samples)
    assert isclose(found.h, wanted.statistic, rel_tol=1e-9, abs_tol=1e-9)  # scipy subtracts nearly equal numbers
    assert isclose(found.p, wanted.pvalue, rel_tol=1e-7, abs_tol=1e-12)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(ANY, min_size=1, max_size=40), st.lists(ANY, min_size=1, max_size=40))
def test_h_of_two_samples_is_the_square_of_mann_and_whitneys_z(first: list[float], second: list[float]) -> None:
    if len({*first, *second}) == 1:
        return
    u = scipy.stats.mannwhitneyu(first, second, method="asymptotic", use_continuity=False)
    assert isclose(of(first, second).p, u.pvalue, rel_tol=1e-7, abs_tol=1e-12)
    assert isclose(of(first, second).h, of(second, first).h, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.slow
@given(st.lists(st.one_of(ANY, st.integers(0, 3)), min_size=1, max_size=30))
def test_ties_are_counted(values: list[float]) -> None:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    _, counts = np.unique(ordered, return_counts=True)
    lengths = tied(ordered)
    assert (counts == 1).all() if lengths is None else lengths.tolist() == counts.tolist()


def test_empty_samples_and_samples_with_nan_have_no_test() -> None:
    assert kruskal([np.array([1.0, 2.0]), np.empty(0)]) is None
    assert kruskal([np.array([1.0, np.nan]), np.array([2.0])]) is None
    one = of([1], [2])
    assert (one.n, one.eta2, one.h) == (2, None, 1.0)


# The distribution under permutation


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_the_counted_p_is_the_share_of_all_dealings_with_such_an_h(first: list[int], second: list[int]) -> None:
    pool = np.array([*first, *second], dtype=float)
    found = of(first, second)
    extreme = 0
    for chosen in combinations(range(pool.size), len(first)):
        inside = np.isin(np.arange(pool.size), chosen)
        other = of(pool[inside], pool[~inside])
        extreme += other.h >= found.h - 1e-9
    assert isclose(permuted(found, len(first), len(second)), extreme / comb(pool.size, len(first)), rel_tol=1e-9)


@pytest.mark.parametrize(("first", "second"), [(3, 3), (5, 5), (4, 9), (10, 10), (19, 20)])
def test_without_ties_the_counted_p_is_scipys_exact_one(first: int, second: int) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.normal(size=first), rng.normal(size=second) + rng.normal()
        wanted = scipy.stats.mannwhitneyu(a, b, method="exact").pvalue
        assert isclose(permuted(of(a, b), first, second), wanted, rel_tol=1e-9)


@pytest.mark.parametrize("n", [20, 30, 60])
@pytest.mark.parametrize("levels", [0, 3, 8])
def test_the_approximation_lies_within_a_step_of_the_counted_one_far_into_the_tail(n: int, levels: int) -> None:
    """It aims at the middle of a step of the distribution, which chi-squared leaves where p is small."""
    rng = np.random.default_rng([n, levels])
    for shift in (0.3, 0.6, 0.9, 1.2):
        a, b = rng.normal(size=n), rng.normal(size=n) + shift
        if levels:
            a, b = np.round(a * levels / 4), np.round(b * levels / 4)
        found = of(a, b)
        lengths = tied(np.sort(np.concatenate([a, b])))
        counts = np.ones(2 * n) if lengths is None else lengths
        every, upward = permutation._distribution(tuple(int(each) for each in counts), n, 1)
        at = int(np.searchsorted(every, found.h - 1e-9))
        after = int(np.searchsorted(every, found.h + 1e-9))
        most, least = upward[at], upward[after] if after < upward.size else 0.0
        ours = permuted(found, n, n)
        assert 0.85 * least <= ours <= (1.1 if ours > 1e-4 else 2) * most
        if levels == 0 and n > 20 and found.p < 0.01:  # fewer are counted
            assert abs(ours - (most + least) / 2) < 0.3 * abs(found.p - (most + least) / 2)


def test_the_distribution_counts_every_dealing_once() -> None:
    every, upward = permutation._distribution((1, 2, 3, 1), 3, 1)
    assert isclose(upward[0], 1)
    assert (np.diff(every) >= 0).all()
    chances = upward - np.append(upward[1:], 0)
    assert isclose(float((chances * every).sum()), 1)  # the mean of H with k - 1 = 1 is (n - 1)/(n - 1)


def test_values_that_are_all_alike_have_p_1() -> None:
    assert permuted(of([2, 2, 2], [2, 2]), 3, 2) == 1
    assert permuted(of([2] * 50, [2] * 50), 50, 50) == 1


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0, 1e4))
def test_a_p_is_a_chance_whatever_the_sizes(first: int, second: int, h: float) -> None:
    assert 0 <= permutation.p_value(h, None, first, second) <= 1


def of(*samples: object) -> Kruskal:
    found = of_sorted([np.sort(np.asarray(sample, dtype=np.float64)) for sample in samples])
    assert found is not None
    return found


def permuted(found: Kruskal, first: int, second: int) -> float:
    return permutation.p_value(found.h, found.lengths, first, second)
