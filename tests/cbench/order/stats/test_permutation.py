"""The chance of a rank sum when labels are permuted: exact with ties, of unequal samples, of any size that can be
counted.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from cbench.order.stats.permutation import p_value
from cbench.stats.kruskal import of_sorted

SMALL = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def chance(first: list[float], second: list[float]) -> float:
    found = of_sorted([np.sort(np.array(each, dtype=np.float64)) for each in (first, second)])
    assert found is not None
    return p_value(found.h, found.lengths, len(first), len(second))


@pytest.mark.parametrize("each", [1, 5, 20, 30, 1000])
def test_samples_in_which_all_values_are_alike_do_not_differ(each: int) -> None:
    assert p_value(0.0, np.array([2.0 * each]), each, each) == 1


def test_one_other_value_among_sixty_three_has_the_chance_of_its_place() -> None:
    assert chance([1, 2, 2], [2] * 60) == pytest.approx(3 / 63, rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(SMALL, SMALL)
def test_with_ties_it_is_the_share_of_all_choices(first: list[float], second: list[float]) -> None:
    pool = [*first, *second]
    ranks = [sum(x < y for x in pool) + sum(x == y for x in pool) / 2 for y in pool]
    middle = len(first) * sum(ranks) / len(pool)
    sums = [abs(sum(ranks[at] for at in chosen) - middle) for chosen in combinations(range(len(pool)), len(first))]
    seen = abs(sum(ranks[: len(first)]) - middle)
    assert chance(first, second) == pytest.approx(np.mean([each >= seen - 1e-9 for each in sums]), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n"), [(5, 60), (40, 90), (300, 800), (20_000, 20_000)])
def test_two_values_have_the_hypergeometric_distribution_at_any_size(m: int, n: int) -> None:
    ones, more = (m + n) // 3, m // 3 + 2
    law = hypergeom(m + n, ones, m)
    middle = m * ones / (m + n)
    seen = abs(more - middle)
    every = np.arange(m + 1)
    wanted = law.pmf(every[np.abs(every - middle) >= seen - 1e-9]).sum()
    first, second = [0] * (m - more) + [1] * more, [0] * (n - ones + more) + [1] * (ones - more)
    assert chance(first, second) == pytest.approx(wanted, rel=1e-6)


def test_where_counting_is_too_much_skewed_ranks_are_counted_on_a_coarse_grid() -> None:
    draw = np.random.default_rng(3)
    pool = np.where(draw.random(1050) < 0.95, 0.0, draw.normal(size=1050))
    first, second = pool[:50], pool[50:]
    ranks = np.array([(pool < each).sum() + (pool == each).sum() / 2 for each in pool])
    sums = np.array([ranks[draw.permutation(1050)[:50]].sum() for _ in range(2000)])
    wanted = np.mean(np.abs(sums - ranks.mean() * 50) >= abs(ranks[:50].sum() - ranks.mean() * 50) - 1e-9)
    assert abs(chance(first.tolist(), second.tolist()) - wanted) < 0.05
