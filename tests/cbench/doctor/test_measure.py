"""Measurements beside the work: how busy CPUs are."""

from __future__ import annotations

from statistics import median

import pytest

from cbench.doctor.measure import DoctorOptions, busy, undisturbed, wants_more
from cbench.model import DISAGREE, SHARED, Trial, TrialCause
from quiet import UsageError, cpu_ticks

BEFORE = "cpu  9 9 9 9 9 0 0 0\ncpu0 10 0 10 70 10 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 1\n"
AFTER = "cpu  9 9 9 9 9 0 0 0\ncpu0 35 0 35 115 15 0 0 0 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0\nintr 1\n"


def test_waiting_for_a_disk_is_idle_and_everything_else_is_busy() -> None:
    before, after = cpu_ticks(BEFORE), cpu_ticks(AFTER)
    assert busy(before, after, {"cpu0"}) == pytest.approx(0.5)
    assert busy(before, after, {"cpu0", "cpu1"}) == pytest.approx(0.25)


def test_without_cpus_or_time_nothing_is_known() -> None:
    before = cpu_ticks(BEFORE)
    assert busy(before, before, {"cpu0"}) is None
    assert busy(before, cpu_ticks(AFTER), ()) is None
    assert busy(before, {}, {"cpu0"}) is None


def test_a_trial_that_calibration_rejects_is_not_interrupted_for_that() -> None:
    """On a shared core, a remedy against interruptions would otherwise get the gain of an unshared core."""
    interrupt = TrialCause("interrupt", "LOC (Local timer interrupts)")
    causes = [(), (TrialCause(SHARED),), (TrialCause(DISAGREE),), (interrupt,), (interrupt, TrialCause(DISAGREE))]
    trials = [Trial(10 * n, 1, causes[n % 5]) for n in range(20)]
    assert undisturbed(trials) == median(10 * n for n in range(20) if n % 5 < 3)
    assert undisturbed([Trial(1, 1, (interrupt,))] * 20) is None


def test_fewer_than_four_processes_per_side_are_refused() -> None:
    with pytest.raises(UsageError, match="--processes 3: must be from 4"):
        DoctorOptions(processes=3)


def test_it_measures_while_there_is_time_and_a_few_processes_in_any_case() -> None:
    assert wants_more(20, 50, 5, 60)
    assert not wants_more(20, 56, 5, 60)
    assert wants_more(7, 170, 30, 60)
    assert not wants_more(7, 181, 30, 60)
    assert wants_more(3, 1000, 300, 60)
