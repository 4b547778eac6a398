"""When a series has settled, and whether it stays in one state."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.settling import settled, states

NOISE = st.integers(0, 3)


def test_values_that_settled_are_not_enough_while_the_mispredictions_still_fall() -> None:
    values = [1000] * 20
    assert settled(values, 1, [50] * 10 + [49] * 10)
    assert not settled(values, 1, [50] * 10 + [20] * 10)
    assert settled(values, 1, [3] * 10 + [1] * 10)


def test_mispredictions_that_were_not_counted_for_every_trial_do_not_count() -> None:
    assert settled([1000] * 20, 1, [50] * 10)


def test_one_interrupted_trial_per_window_does_not_keep_a_series_from_settling() -> None:
    assert settled(([1000] * 9 + [90_000]) * 2, 1)


def test_two_levels_in_turn_are_called_alternating_with_both_levels() -> None:
    found = states([100, 140] * 50)
    assert found is not None
    assert (found.low, found.high, found.low_share, found.changes) == (100, 140, 0.5, 99)
    assert found.text("cycles") == "alternates between two states, 100 (50% of the trials) and 140 cycles; 99 changes"


def test_one_change_of_level_is_reported_with_its_trial() -> None:
    found = states([100] * 60 + [90] * 40)
    assert found is not None
    assert found.text("cycles").startswith("changes state once, at trial 61: 90 (40% of the trials) and 100 cycles")


def test_a_few_trials_that_are_much_slower_are_not_a_state() -> None:
    assert states([100] * 95 + [900] * 5) is None


def test_levels_within_two_steps_of_the_counter_are_one_state() -> None:
    assert states([100, 150] * 50, quantum=25) is None
    assert states([100, 151] * 50, quantum=25) is not None


def test_too_few_trials_have_no_states() -> None:
    assert states([]) is None
    assert states([1, 9]) is None


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), NOISE), min_size=20, max_size=200), st.integers(100, 10_000))
def test_states_far_apart_are_found_whatever_their_order(trials: list[tuple[bool, int]], apart: int) -> None:
    values = [1_000_000 + noise + apart * high for high, noise in trials]
    share = sum(high for high, _ in trials) / len(trials)
    found = states(values)
    if 0.25 < share < 0.75:
        assert found is not None
        assert found.changes == sum(a != b for (a, _), (b, _) in pairwise(trials))


@given(st.lists(NOISE, min_size=0, max_size=200))
def test_noise_of_a_few_steps_is_one_state(noise: list[int]) -> None:
    assert states([1_000_000 + value for value in noise], quantum=2) is None


def test_the_change_is_reported_by_its_position_among_all_trials() -> None:
    found = states([100] * 50 + [200] * 50)
    assert found is not None
    assert "at trial 71:" in found.text("cycles", 20 + found.first_change)
