"""Summaries, steps, warm-up and the spread of several processes, worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.quantum import quantum
from cbench.stats.settling import settled
from cbench.stats.summary import by_level, floor, mode, percentile, spread, summarise


def test_the_mode_is_the_most_frequent_value_and_of_several_the_lowest() -> None:
    assert mode([5, 7, 7, 5, 9]) == (5, 2)
    assert mode([9, 8, 8, 8, 1]) == (8, 3)
    assert mode([3, 2, 4]) == (2, 1)


def test_the_floor_is_the_lowest_value_that_repeats() -> None:
    assert floor([10, 12, 12, 11, 11, 30]) == 11
    assert floor([10, 11, 12]) is None


def test_percentiles_are_nearest_ranks() -> None:
    ordered = list(range(1, 11))
    assert [percentile(ordered, p) for p in (1, 10, 11, 90, 99, 100)] == [1, 1, 2, 9, 10, 10]
    assert percentile([4], 90) == 4


def test_a_summary_gives_percentiles_as_differences_from_the_mode() -> None:
    summary = summarise([100] * 89 + [110] * 9 + [90, 500])
    assert (summary.mode, summary.mode_count, summary.minimum) == (100, 89, 90)
    assert (summary.p90, summary.p99, summary.max) == (0, 10, 400)
    assert (summary.floor, summary.at_floor, summary.range) == (100, 89, 410)


def test_trials_within_one_step_of_the_floor_are_counted_separately() -> None:
    summary = summarise([49, 49, 74, 98, 24], quantum=25)
    assert (summary.at_floor, summary.near_floor) == (2, 4)


def test_the_mode_is_that_of_the_clean_trials_and_counted_in_all() -> None:
    summary = summarise([5, 5, 5, 5, 7, 7], base=[5, 7, 7])
    assert (summary.mode, summary.mode_count) == (7, 2)
    assert summarise([5, 5, 5, 7, 7], base=[5, 5, 7]).mode_count == 3


def test_without_a_repeating_value_nothing_is_on_the_floor() -> None:
    summary = summarise([3, 1, 2], quantum=10)
    assert (summary.floor, summary.at_floor, summary.near_floor) == (None, 0, 0)


def test_an_empty_series_cannot_be_summarized() -> None:
    with pytest.raises(ValueError, match="no trials"):
        summarise([])


@given(st.lists(st.integers(0, 50), min_size=1))
def test_a_summary_is_consistent_for_any_trials(values: list[int]) -> None:
    summary = summarise(values)
    assert summary.p90 <= summary.p99 <= summary.max == max(values) - summary.mode
    assert summary.range == max(values) - min(values)
    assert summary.floor is None or min(values) <= summary.floor <= summary.mode


def test_a_step_of_24_and_a_half_ticks_is_found_and_rounded_up() -> None:
    assert quantum([49] * 40 + [73] * 150 + [74] * 150 + [98] * 340 + [122] * 170 + [123] * 170) == 25


def test_a_counter_that_counts_by_ones_has_a_step_of_one() -> None:
    assert quantum([value for value in range(40, 60) for _ in range(10)]) == 1


def test_a_counter_that_counts_in_twos_has_a_step_of_two() -> None:
    assert quantum([value for value in range(40, 60, 2) for _ in range(10)]) == 2


def test_an_interruption_is_not_mistaken_for_a_step() -> None:
    assert quantum([50] * 500 + [75] * 499 + [60]) == 25


def test_one_value_alone_shows_no_step() -> None:
    assert quantum([50] * 100) == 1


def test_warm_up_ends_when_two_windows_have_the_same_minimum() -> None:
    assert settled([200] * 9 + [100] + [180] * 9 + [100], quantum=1)
    assert not settled([200] * 10 + [100] * 10, quantum=1)
    assert not settled([100] * 19, quantum=1)


def test_warm_up_treats_a_step_or_a_thousandth_as_equal() -> None:
    assert settled([100] * 10 + [125] * 10, quantum=25)
    assert settled([100_000] * 10 + [100_100] * 10, quantum=1)
    assert not settled([100_000] * 10 + [100_101] * 10, quantum=1)


def test_variance_components_are_those_of_a_worked_example() -> None:
    """By hand: means 2, 6, 10; MSW = 1, MSB = 48, n0 = 3, so the variance between is (48 - 1) / 3."""
    found = spread([[1, 2, 3], [5, 6, 7], [9, 10, 11]])
    assert found is not None
    assert found.within == pytest.approx(1)
    assert found.between**2 == pytest.approx(47 / 3)
    assert found.share_between == pytest.approx(47 / 50)
    assert (found.floors, found.medians) == (8, 8)


def test_processes_that_all_measured_the_same_have_no_spread_at_all() -> None:
    found = spread([[8_432_476] * 50] * 10)
    assert found is not None
    assert (found.floors, found.within, found.between, found.share_between) == (0, 0, 0, 0)


def test_one_process_has_no_spread_between_processes() -> None:
    assert spread([[1, 2, 3]]) is None
    assert spread([[1, 2, 3], [5]]) is None


@given(st.lists(st.lists(st.integers(0, 1000), min_size=2, max_size=20), min_size=2, max_size=6))
def test_large_values_lose_no_digits(groups: list[list[int]]) -> None:
    near, far = spread(groups), spread([[value + 2**60 for value in group] for group in groups])
    assert near is not None
    assert far is not None
    assert far.within == pytest.approx(near.within)
    assert far.between == pytest.approx(near.between)


def test_floors_are_shown_by_level_only_where_the_factor_has_few() -> None:
    assert by_level([0, 1, 0, 1], [100, 140, 102, 140]) == {"0": 101, "1": 140}
    assert by_level([0, 0], [1, 2]) == {}
    assert by_level([0, 1], [1, 2]) == {}
    assert by_level([1, 2, 3, 4], [1, 2, 3, 4]) == {}
