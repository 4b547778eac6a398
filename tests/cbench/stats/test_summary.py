"""Summaries, steps and warm-up, worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.quantum import quantum
from cbench.stats.settling import settled
from cbench.stats.summary import floor, mode, percentile, summarise


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


def test_trials_within_one_step_of_the_floor_are_counted_apart() -> None:
    summary = summarise([49, 49, 74, 98, 24], quantum=25)
    assert (summary.at_floor, summary.near_floor) == (2, 4)


def test_the_mode_is_that_of_the_clean_trials_and_counted_in_all() -> None:
    summary = summarise([5, 5, 5, 5, 7, 7], base=[5, 7, 7])
    assert (summary.mode, summary.mode_count) == (7, 2)
    assert summarise([5, 5, 5, 7, 7], base=[5, 5, 7]).mode_count == 3


def test_without_a_repeating_value_nothing_is_on_the_floor() -> None:
    summary = summarise([3, 1, 2], quantum=10)
    assert (summary.floor, summary.at_floor, summary.near_floor) == (None, 0, 0)


def test_no_trials_cannot_be_summarised() -> None:
    with pytest.raises(ValueError, match="no trials"):
        summarise([])


@given(st.lists(st.integers(0, 50), min_size=1))
def test_a_summary_holds_together_for_any_trials(values: list[int]) -> None:
    summary = summarise(values)
    assert summary.p90 <= summary.p99 <= summary.max == max(values) - summary.mode
    assert summary.range == max(values) - min(values)
    assert summary.floor is None or min(values) <= summary.floor <= summary.mode


def test_a_step_of_24_and_a_half_ticks_is_found_and_rounded_up() -> None:
    assert quantum([49] * 40 + [73] * 150 + [74] * 150 + [98] * 340 + [122] * 170 + [123] * 170) == 25


def test_a_counter_that_counts_one_by_one_has_a_step_of_one() -> None:
    assert quantum([value for value in range(40, 60) for _ in range(10)]) == 1


def test_a_counter_that_counts_in_twos_has_a_step_of_two() -> None:
    assert quantum([value for value in range(40, 60, 2) for _ in range(10)]) == 2


def test_an_interruption_does_not_pass_for_a_step() -> None:
    assert quantum([50] * 500 + [75] * 499 + [60]) == 25


def test_one_value_alone_shows_no_step() -> None:
    assert quantum([50] * 100) == 1


def test_warm_up_ends_when_two_windows_have_the_same_minimum() -> None:
    assert settled([200] * 9 + [100] + [180] * 9 + [100], quantum=1)
    assert not settled([200] * 10 + [100] * 10, quantum=1)
    assert not settled([100] * 19, quantum=1)


def test_warm_up_takes_a_step_or_a_thousandth_for_equal() -> None:
    assert settled([100] * 10 + [125] * 10, quantum=25)
    assert settled([100_000] * 10 + [100_100] * 10, quantum=1)
    assert not settled([100_000] * 10 + [100_101] * 10, quantum=1)
