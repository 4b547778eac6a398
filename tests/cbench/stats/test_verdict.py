"""The verdict in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cbench.measure.causes import decided
from cbench.model import INTERRUPT, LINES, MULTIPLEXED, SWITCH, Trial, TrialCause
from cbench.stats.summary import summarise
from cbench.stats.verdict import singular, verdict

CLEAN = Trial(100, 1)
NONE = "\nno trial differs, range 0 TSC ticks"


def ticked(value: int, name: str = "LOC (Local timer interrupts)") -> Trial:
    return Trial(value, 1, (TrialCause(INTERRUPT, name),), interrupts={name: 1})


def said(trials: Sequence[Trial], quantum: int = 1, virtual: bool = False) -> str:
    return verdict(trials, summarise([t.value for t in trials], quantum), "TSC ticks", quantum=quantum, virtual=virtual)


def test_trials_that_are_all_alike_repeat_to_the_tick() -> None:
    assert said([CLEAN] * 1000) == "repeats to the tick: 1,000 of 1,000 trials on the floor 100" + NONE


def test_differences_that_all_have_one_cause_are_named_with_their_lines() -> None:
    trials = [CLEAN] * 987 + [ticked(120)] * 11 + [ticked(130, "27 (virtio1-virtqueues)")] * 2
    assert said(trials) == (
        "repeats to the tick: 987 of 1,000 trials on the floor 100\n13 differ, all interrupted (LOC 11, IRQ 27 2)"
    )


def test_an_interrupted_trial_on_the_floor_is_not_a_difference() -> None:
    assert said([CLEAN] * 8 + [ticked(100)] * 2) == "repeats to the tick: 10 of 10 trials on the floor 100" + NONE


def test_unexplained_differences_are_reported_with_their_share_and_in_a_vm_with_the_suspect() -> None:
    trials = [CLEAN] * 6 + [ticked(120)] + [Trial(150, 1)] * 3
    assert said(trials, virtual=True) == (
        "does not repeat to the tick; undisturbed trials span 50 (50.0000 %): 6 of 10 trials on the floor 100\n"
        "4 differ, 1 interrupted (LOC 1), 3 unexplained (75 %; in a VM: likely the host)"
    )
    assert "host" not in said(trials)


def test_values_within_a_step_of_a_coarse_clock_repeat_to_the_step() -> None:
    trials = [CLEAN] * 5 + [Trial(124, 1), Trial(125, 1)]
    assert said(trials, quantum=25) == (
        "repeats to one step of the counter (25 TSC ticks): 5 of 7 trials on the floor 100 (7 within one step of 25)\n"
        "no trial differs by more than the counter's step"
    )


def test_trials_do_not_repeat_if_no_two_agree() -> None:
    assert said([Trial(1, 1), Trial(5, 1), ticked(9)]) == (
        "does not repeat: no two of 3 trials agree; they span 8 TSC ticks\n1 interrupted (LOC 1), 2 unexplained (67 %)"
    )


def test_without_an_undisturbed_trial_no_repetition_is_claimed() -> None:
    assert said([ticked(100)] * 3).startswith("no undisturbed trial: 3 of 3")


def test_each_trial_counts_once_under_its_gravest_cause() -> None:
    switched = Trial(
        300, 1, (TrialCause(SWITCH, "0 voluntary, 1 involuntary"), TrialCause(INTERRUPT, "LOC")), 1, 0, {"LOC": 1}
    )
    assert said([CLEAN] * 2 + [switched]).endswith("1 differs, with a context switch")


def test_a_multiplexed_counter_is_not_passed_off_as_a_measurement() -> None:
    bad = Trial(90, 1, (TrialCause(MULTIPLEXED),), valid=False)
    assert said([CLEAN] * 2 + [bad]).endswith("1 differs, not fully counted")


def test_one_undisturbed_trial_is_not_repetition() -> None:
    assert said([CLEAN] + [ticked(100)] * 3).startswith("only one undisturbed trial: 4 of 4")


def test_one_trial_alone_shows_no_repetition() -> None:
    assert said([CLEAN]).startswith("one trial cannot show whether it repeats: 100 TSC ticks")


def test_a_trial_in_which_only_the_kernel_was_counted_is_reported_as_such() -> None:
    ran = decided(Trial(150, 1, kernel=50))
    assert said([CLEAN] * 9 + [ran]).endswith("1 differs, while the kernel ran")
    lines = Trial(150, 1, (TrialCause(LINES),))
    assert said([CLEAN] * 9 + [lines]).endswith("1 differs, while the interrupt lines changed")


@pytest.mark.parametrize(
    ("unit", "one"),
    [("cycles", "cycle"), ("TSC ticks", "tick"), ("misses", "miss"), ("switches", "switch"), ("branches", "branch"),
     ("ns", "ns"), ("faults", "fault")],
)  # fmt: skip
def test_the_singular_of_each_unit_is_used(unit: str, one: str) -> None:
    assert singular(unit) == one


def test_two_that_agree_far_above_others_agree_by_chance() -> None:
    trials = [Trial(value, 1) for value in (100, 200, 300, 400, 400, 500)]
    assert "2 of 6 trials on the floor 400, where they agree only by chance: 3 lie below\n" in said(trials)
    assert "chance" not in said([Trial(99, 1), *[CLEAN] * 5, Trial(150, 1)])
