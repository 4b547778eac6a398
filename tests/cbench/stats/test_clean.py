"""Which trials are clean."""

from __future__ import annotations

from cbench.model import INTERRUPT, Trial, TrialCause
from cbench.stats.clean import CAUSES, FLOOR, clean, rule_for

TICKED = (TrialCause(INTERRUPT, "LOC"),)


def test_in_a_virtual_machine_a_clock_is_judged_by_the_value_and_other_counters_by_the_causes() -> None:
    assert rule_for("TSC ticks", virtual=True) == FLOOR
    assert rule_for("TSC ticks", virtual=False) == CAUSES
    assert rule_for("cycles", virtual=True) == CAUSES


def test_by_causes_a_slow_trial_is_clean_and_an_interrupted_one_is_not() -> None:
    trials = [Trial(100, 1), Trial(900, 1), Trial(100, 1, TICKED)]
    assert clean(trials, 1, CAUSES) == trials[:2]


def test_by_the_floor_two_steps_are_clean_whatever_was_counted_beside_them() -> None:
    trials = [Trial(100, 1), Trial(100, 1, TICKED), Trial(150, 1), Trial(151, 1), Trial(49, 1)]
    assert clean(trials, 25, FLOOR) == trials[:3]


def test_clean_trials_are_never_wider_than_two_steps() -> None:
    """A value one step below the floor is due to the clock's own steps; then that is where two steps begin."""
    values = [950, 975, 1000, 1000, 1025, 1026, 1050]
    found = [trial.value for trial in clean([Trial(value, 1) for value in values], 25, FLOOR)]
    assert found == [975, 1000, 1000, 1025]


def test_where_two_agree_by_chance_no_trial_is_clean() -> None:
    values = [100, 150, 200, 300, 400, 400, 401, 900]
    assert clean([Trial(value, 1) for value in values], 1, FLOOR) == []
    assert len(clean([Trial(value, 1) for value in values[3:]], 1, FLOOR)) == 3


def test_a_trial_that_was_not_fully_counted_makes_no_floor() -> None:
    trials = [Trial(10, 1, valid=False)] * 5 + [Trial(100, 1)] * 2
    assert {trial.value for trial in clean(trials, 1, FLOOR)} == {100}
    assert {trial.value for trial in clean(trials, 1, CAUSES)} == {100}


def test_of_no_trials_none_are_clean() -> None:
    assert clean([], 1, CAUSES) == []
    assert clean([Trial(1, 1), Trial(2, 1)], 0, FLOOR) == []
