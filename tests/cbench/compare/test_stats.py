"""The statistics of `cbench compare`: published numbers, brute force, and laws that must hold for any values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from math import comb, exp, isclose, log

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cbench.compare import stats as outcomes
from cbench.compare.stats import Comparison, NoHeadline, compare_samples, cycle_exact
from cbench.stats.rank import EXACT_UP_TO, nth_ratio, rank_sum, ratio_interval, tail

TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]
"""Hollander, Wolfe, Chicken, table 4.1: water through the human chorioamnion at term and at 12 to 26 weeks."""

SMALL = st.lists(st.integers(1, 12), min_size=1, max_size=6)
VALUES = st.lists(st.integers(1, 2**40), min_size=1, max_size=30)
PROCESSES = st.lists(st.lists(st.integers(1, 2**30), min_size=1, max_size=5), min_size=1, max_size=6)


def test_the_distribution_of_u_is_the_one_in_mann_and_whitneys_table() -> None:
    assert [round(p, 3) for p in tail(3, 3)[:5]] == [0.050, 0.100, 0.200, 0.350, 0.500]
    assert [round(p, 3) for p in tail(4, 4)[:9]] == [0.014, 0.029, 0.057, 0.100, 0.171, 0.243, 0.343, 0.443, 0.557]


def test_the_books_example_has_the_books_p() -> None:
    found = rank_sum(TERM, EARLY)
    assert (found.u, found.exact) == (15, True)
    assert isclose(found.p, 2 * 0.1272, abs_tol=1e-4)


def test_the_books_example_has_the_books_estimate_and_interval() -> None:
    found = ratio_interval([exp(v) for v in TERM], [exp(v) for v in EARLY], 0.05)
    assert [round(log(v), 3) for v in (found.ratio, found.low, found.high)] == [-0.305, -0.760, 0.150]
    assert round(found.level, 2) == 0.96
    assert found.attained


def test_the_example_of_scipys_documentation_has_its_p() -> None:
    assert isclose(rank_sum([20, 11, 17, 12], [19, 22, 16, 29, 24]).p, 0.1111111111111111, rel_tol=1e-12)


def test_with_many_ties_the_normal_approximation_is_scipys() -> None:
    """mannwhitneyu(b, a, method="asymptotic") of scipy 1.17.1."""
    a, b = [(i * 7) % 13 for i in range(40)], [(i * 5) % 11 + 3 for i in range(35)]
    found = rank_sum(a, b)
    assert (found.u, found.exact) == (908, False)
    assert isclose(found.p, 0.027095201796419822, rel_tol=1e-9)


@pytest.mark.slow
@settings(deadline=None)
@given(SMALL, SMALL)
def test_the_exact_p_is_the_share_of_all_choices_that_are_as_extreme(a: list[int], b: list[int]) -> None:
    def distance(b_values: Sequence[int], a_values: Sequence[int]) -> int:
        wins = sum((y > x) - (y < x) for x in a_values for y in b_values)
        return abs(wins)

    pool = [*a, *b]
    wanted = distance(b, a)
    extreme = 0
    for chosen in combinations(range(len(pool)), len(b)):
        rest = [pool[i] for i in range(len(pool)) if i not in chosen]
        extreme += distance([pool[i] for i in chosen], rest) >= wanted
    assert isclose(rank_sum(a, b).p, extreme / comb(len(pool), len(b)), rel_tol=1e-12)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 9))
def test_the_tail_counts_choices(m: int, n: int) -> None:
    counts = [0] * (m * n + 1)
    for chosen in combinations(range(m + n), n):
        counts[sum(chosen) - n * (n - 1) // 2] += 1
    found = tail(m, n)
    assert len(found) == m * n + 1
    assert all(isclose(p, sum(counts[: u + 1]) / comb(m + n, n), rel_tol=1e-12) for u, p in enumerate(found))


def test_exact_and_normal_agree_where_one_hands_over_to_the_other() -> None:
    draw = random.Random(4)
    half = EXACT_UP_TO // 2
    a = [draw.randint(0, 40) for _ in range(half)]
    b = [draw.randint(4, 44) for _ in range(half)]
    exact, normal = rank_sum(a, b), rank_sum([*a, 20], b)
    assert exact.exact
    assert not normal.exact
    assert isclose(exact.p, normal.p, rel_tol=0.2)


@pytest.mark.slow
@settings(deadline=None)
@given(VALUES, VALUES, st.data())
def test_the_nth_ratio_is_found_without_sorting_them_all(a: list[int], b: list[int], data: st.DataObject) -> None:
    ratios = sorted(y / x for x in a for y in b)
    k = data.draw(st.integers(1, len(ratios)))
    assert nth_ratio(sorted(a), sorted(b), k) == ratios[k - 1]


def test_three_against_three_reach_90_percent_and_the_report_states_it() -> None:
    found = ratio_interval([1, 2, 3], [4, 5, 6], 0.05)
    assert (found.low, found.high, found.attained) == (4 / 3, 6, False)
    assert isclose(found.level, 0.9)
    assert ratio_interval([1, 2, 3, 4], [4, 5, 6, 7], 0.05).attained


def test_an_interval_covers_the_true_ratio_as_often_as_stated() -> None:
    draw, covered, studies = random.Random(11), 0, 600
    for _ in range(studies):
        a = [draw.lognormvariate(0, 0.1) for _ in range(7)]
        b = [1.05 * draw.lognormvariate(0, 0.1) for _ in range(9)]
        found = ratio_interval(a, b, 0.05)
        covered += found.low <= 1.05 <= found.high
    assert 0.93 <= covered / studies <= 0.98


@pytest.mark.parametrize("empty", [([], [1]), ([1], [])])
def test_no_values_are_an_error(empty: tuple[list[int], list[int]]) -> None:
    for call in (rank_sum, lambda a, b: ratio_interval(a, b, 0.05)):
        with pytest.raises(ValueError, match="two samples"):
            call(*empty)


def test_a_ratio_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([0, 1], [1, 2], 0.05)


MIRRORED = {outcomes.LOWER: outcomes.HIGHER, outcomes.HIGHER: outcomes.LOWER}


@pytest.mark.slow
@settings(deadline=None)
@given(PROCESSES, PROCESSES, st.sampled_from(["median", "min", "mean"]), st.none() | st.floats(0.001, 0.5))
def test_swapping_the_sides_mirrors_the_answer(
    a: list[list[int]], b: list[list[int]], headline: str, threshold: float | None
) -> None:
    there, back = (compare_samples(*sides, headline, 0.05, threshold) for sides in ((a, b), (b, a)))
    assert isclose(there.ratio, 1 / back.ratio, rel_tol=1e-12)
    assert there.test.p == back.test.p
    if there.interval and back.interval:
        assert isclose(there.interval.low, 1 / back.interval.high, rel_tol=1e-12)
        assert isclose(there.interval.high, 1 / back.interval.low, rel_tol=1e-12)
        edges = (1.0, 1 + (threshold or 0), 1 / (1 + (threshold or 0)))
        bounds = (there.interval.low, there.interval.high)
        assume(not any(isclose(bound, edge, rel_tol=1e-9) for bound in bounds for edge in edges))
    assert back.outcome == MIRRORED.get(there.outcome, there.outcome)


@pytest.mark.slow
@settings(deadline=None)
@given(PROCESSES, PROCESSES, st.sampled_from(["median", "min", "mean"]), st.integers(1, 10))
def test_the_unit_makes_no_difference(a: list[list[int]], b: list[list[int]], headline: str, power: int) -> None:
    def scaled(side: list[list[int]]) -> list[list[int]]:
        return [[value * 2**power for value in values] for values in side]

    one, other = compare_samples(a, b, headline, 0.05), compare_samples(scaled(a), scaled(b), headline, 0.05)
    assert (one.ratio, one.interval, one.test, one.outcome) == (
        *(other.ratio, other.interval, other.test, other.outcome),
    )


def sets(centre: float, processes: int, seed: int, spread: float = 0.01) -> list[list[float]]:
    """Processes that differ; within each, the trials lie close together."""
    draw = random.Random(seed)
    means = [centre * exp(draw.gauss(0, spread)) for _ in range(processes)]
    return [[mean * exp(draw.gauss(0, spread / 100)) for _ in range(200)] for mean in means]


def of(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], threshold: float | None = None) -> Comparison:
    return compare_samples(a, b, "median", 0.05, threshold)


def test_a_difference_beyond_the_noise_is_shown_and_has_its_direction() -> None:
    a, b = sets(100, 10, 1), sets(105, 10, 2)
    assert of(a, b).outcome == outcomes.HIGHER
    assert of(b, a).outcome == outcomes.LOWER
    assert 1.03 < of(a, b).ratio < 1.07


def test_with_ties_a_difference_is_shown_although_its_interval_begins_at_no_change() -> None:
    a, b = [[each] for each in (99, 100, 99, 99, 97, 102, 99, 102)], [[each] for each in (103, *[102] * 6, 101)]
    found = of(a, b)
    assert found.interval
    assert found.interval.low == 1 < found.interval.high
    assert found.test.p < 0.05
    assert (found.outcome, of(b, a).outcome) == (outcomes.HIGHER, outcomes.LOWER)
    assert of(a, b, threshold=0.05).outcome == outcomes.SAME


def test_processes_are_counted_and_not_trials() -> None:
    """Two processes that differ by chance: thousands of trials would swear that they are different."""
    wrong = [of(sets(100, 6, seed), sets(100, 6, seed + 1000)).outcome != outcomes.NOTHING for seed in range(150)]
    assert sum(wrong) / len(wrong) < 0.09
    naive = [
        rank_sum([v for s in sets(100, 6, seed) for v in s], [v for s in sets(100, 6, seed + 1000) for v in s]).p < 0.05
        for seed in range(30)
    ]
    assert sum(naive) / len(naive) > 0.5


def test_no_difference_is_not_the_same_as_the_same() -> None:
    a, b = sets(100, 10, 3), sets(100, 10, 4)
    assert of(a, b).outcome == outcomes.NOTHING
    assert of(a, b, threshold=0.05).outcome == outcomes.SAME
    assert of(a, b, threshold=0.0001).outcome == outcomes.NOTHING


def test_a_difference_within_the_threshold_is_the_same_though_it_is_shown() -> None:
    a, b = sets(100, 10, 5, 0.0001), sets(100.2, 10, 6, 0.0001)
    assert of(a, b).outcome == outcomes.HIGHER
    assert of(a, b, threshold=0.01).outcome == outcomes.SAME


@pytest.mark.slow
def test_the_smallest_difference_that_could_have_shown_shows_about_as_often_as_stated() -> None:
    sizes = [of(sets(100, 12, seed), sets(100, 12, seed + 500)).detectable for seed in range(20)]
    size = sum(found for found in sizes if found) / 20
    shown = [
        of(sets(100, 12, s), sets(100 * (1 + size), 12, s + 500)).outcome == outcomes.HIGHER for s in range(40, 140)
    ]
    assert 0.65 < sum(shown) / len(shown) < 0.95


def test_too_few_processes_are_reported_as_too_few() -> None:
    found = of(sets(100, 3, 1), sets(200, 3, 2))
    assert found.outcome == outcomes.TOO_FEW
    assert found.detectable is None
    assert found.interval
    assert not found.interval.attained


@pytest.mark.parametrize("other", [1, 10])
@pytest.mark.parametrize("headline", ["median", "mean", "min"])
def test_one_process_per_side_shows_nothing_of_a_program(headline: str, other: int) -> None:
    """92 % of such comparisons found a difference between processes of one program."""
    for seed in range(20):
        found = compare_samples(sets(100, 1, seed), sets(100, other, seed + 50), headline, 0.05)
        assert found.outcome == outcomes.TOO_FEW
        assert found.spread_a is None


def test_two_layouts_drawn_by_each_process_make_no_exact_difference() -> None:
    """Each process has one of two constant values: with few of them all of A have the one, all of B the other."""
    draw = random.Random(1)
    wrong = 0
    for number in range(600):
        sides = [[[draw.choice((100, 110))] * 9 for _ in range(number % 6 + 1)] for _ in range(2)]
        wrong += compare_samples(*sides, "floor", 0.05).outcome in (outcomes.LOWER, outcomes.HIGHER)
    assert wrong <= 10


EXACT = [
    ([[10, 10, 14], [10, 10, 19]] * 2, [[10, 10]] * 4, 1, 0, outcomes.EQUAL),
    ([[1000, 1000]] * 4, [[1020, 1020]] * 4, 25, 20, outcomes.STEP),
    ([[1000, 1000]] * 4, [[1020, 1020]] * 4, 1, 20, outcomes.HIGHER),
    ([[2**60] * 2] * 5, [[2**60 - 1] * 2] * 4, 1, -1, outcomes.LOWER),
    ([[1000, 1000]] * 3, [[1020, 1020]] * 3, 1, None, outcomes.TOO_FEW),
]


@pytest.mark.parametrize(("a", "b", "quantum", "difference", "outcome"), EXACT)
def test_data_that_repeat_exactly_have_an_exact_difference(
    a: list[list[int]], b: list[list[int]], quantum: int, difference: int | None, outcome: str
) -> None:
    found = compare_samples(a, b, "floor", 0.05, None, quantum)
    assert (found.difference, found.outcome) == (difference, outcome)
    assert (found.interval is None) == (difference is not None)


def test_an_exact_floor_shows_no_more_about_one_process() -> None:
    assert compare_samples([[100, 100, 137]], [[110, 110, 155]], "floor", 0.05).outcome == outcomes.TOO_FEW
    assert cycle_exact([[100, 100]], 1)


def test_two_single_values_do_not_count_as_exact_data() -> None:
    found = compare_samples([[100]], [[110]], "median", 0.05)
    assert found.difference is None
    assert found.outcome == outcomes.TOO_FEW


CYCLE_EXACT = [
    ([[5, 5, 5], [6, 6]], 1, True),
    ([[5, 5, 6]], 1, False),
    ([[500, 500, 525]], 25, True),
    ([[500, 500, 526]], 25, False),
    ([[475, 500, 500]], 25, True),
    ([[5, 6]], 1, False),
    ([[5]], 1, False),
    ([[]], 1, False),
    ([], 1, False),
]


@pytest.mark.parametrize(("clean", "quantum", "exact"), CYCLE_EXACT)
def test_cycle_exact_is_all_undisturbed_trials_on_the_floor(clean: list[list[int]], quantum: int, exact: bool) -> None:
    assert cycle_exact(clean, quantum) is exact


def test_a_process_without_a_repeating_value_has_no_floor() -> None:
    with pytest.raises(NoHeadline):
        compare_samples([[1, 2], [3, 3]], [[1, 1], [3, 3]], "floor", 0.05)
