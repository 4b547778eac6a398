"""Whether two metrics agree, and the properties of readings if instruments work."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cbench.validate.agreement import agreement
from cbench.validate.face_validity import (
    cpu_drop,
    cpu_drop_alone,
    cpu_within_elapsed,
    elapsed_alike,
    pegged,
    user_system_is_clock,
)
from cbench.validate.judge import _near

RNG = np.random.default_rng(12)
FIRST = RNG.lognormal(2, 0.1, 40)
SECOND = 1.02 * FIRST + RNG.normal(0.05, 0.01, 40)


def test_differences_of_the_same_trials_have_the_interval_of_a_paired_t_test() -> None:
    found = agreement(FIRST, SECOND, paired=True)
    theirs = scipy.stats.ttest_rel(SECOND, FIRST).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))
    assert found.difference == pytest.approx((SECOND - FIRST).mean())
    assert found.percent == pytest.approx(100 * (SECOND - FIRST).mean() / FIRST.mean())


def test_the_limits_of_agreement_hold_95_of_100_normal_differences() -> None:
    found = agreement(FIRST, SECOND, paired=True)
    each = SECOND - FIRST
    low, high = found.limits
    assert (low + high) / 2 == pytest.approx(each.mean())
    assert high - low == pytest.approx(2 * 1.96 * each.std(ddof=1))
    assert found.limits_error == pytest.approx(np.sqrt(3 / 40) * each.std(ddof=1))


def test_a_difference_that_grows_with_the_value_is_a_trend() -> None:
    found = agreement(FIRST, SECOND, paired=True)
    assert found.trend == pytest.approx(np.corrcoef(SECOND - FIRST, (FIRST + SECOND) / 2)[0, 1])
    assert found.trend > 0.5


def test_separate_runs_are_compared_by_welch() -> None:
    found = agreement(FIRST, SECOND[:25], paired=False, level=0.9)
    theirs = scipy.stats.ttest_ind(SECOND[:25], FIRST, equal_var=False).confidence_interval(0.9)
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))
    assert (found.n, found.limits, found.trend) == ((40, 25), None, None)


@pytest.mark.parametrize("paired", [True, False])
def test_the_ratio_is_that_of_geometric_means(paired: bool) -> None:
    found = agreement(FIRST, SECOND, paired)
    assert found.ratio == pytest.approx(scipy.stats.gmean(SECOND) / scipy.stats.gmean(FIRST))
    test = scipy.stats.ttest_rel if paired else lambda a, b: scipy.stats.ttest_ind(a, b, equal_var=False)
    theirs = test(np.log(SECOND), np.log(FIRST)).confidence_interval(0.95)
    assert (found.ratio_interval.low, found.ratio_interval.high) == pytest.approx(
        (np.exp(theirs.low), np.exp(theirs.high))
    )


def test_metrics_that_are_the_same_agree_exactly() -> None:
    found = agreement(FIRST, FIRST, paired=True)
    assert (found.difference, found.limits, found.trend, found.ratio) == (0, (0, 0), None, 1)
    assert "values are equal" in str(found.interval.why)
    apart = agreement([2.0] * 5, [3.0] * 4, paired=False)
    assert (apart.interval.low, apart.interval.high) == (1, 1)


def test_zeros_have_no_ratio() -> None:
    found = agreement([0, 1, 2], [1, 2, 4], paired=True)
    assert (found.ratio, found.ratio_interval, found.why) == (None, None, "no ratio: not all values are above 0")
    assert found.difference == pytest.approx(4 / 3)
    assert agreement([-1, 1], [1, 2], paired=True).percent is None


def test_an_unbounded_ratio_has_no_interval() -> None:
    found = agreement([1e-100, 1e100], [1e-100, 1e120], paired=False)
    assert (found.ratio_interval.low, found.ratio_interval.why) == (None, "the ratio is unbounded")
    assert found.ratio == pytest.approx(1e10)
    beyond = agreement([1e-300, 2e-300], [1e140, 2e140], paired=False)
    assert (beyond.ratio, beyond.why) == (None, "no ratio: it is too far from 1 for a number")
    assert beyond.percent is None


def test_separate_trials_without_an_interval_are_undecided_and_equal_ones_at_fault() -> None:
    assert _near(1.2, None, paired=False) is None
    assert _near(1.2, None, paired=True) is False
    assert _near(1.04, None, paired=False) is True


def test_values_that_cannot_be_compared_say_why() -> None:
    assert agreement([1], [2], paired=True).why == "2 values of each metric are needed, but there are 1 and 1"
    assert agreement([1, 2], [2, float("nan")], paired=False).why == "1 of 2 values are not finite numbers"
    assert agreement([1, 2], [1e200, -1e200], paired=False).why == "the values are too large to be squared"
    with pytest.raises(ValueError, match="pairs are needed, but there are 2 and 3"):
        agreement([1, 2], [1, 2, 3], paired=True)


ELAPSED = np.random.default_rng(1).normal(7.5, 0.01, 200)
CPU = ELAPSED - 0.01


def test_a_cpu_reading_that_collapses_while_the_trial_is_normal_is_the_instruments_fault() -> None:
    cpu = CPU.copy()
    assert cpu_drop(cpu, ELAPSED).holds
    cpu[[3, 90]] = 0.8
    found = cpu_drop(cpu, ELAPSED)
    assert (found.holds, found.wrong, found.n) == (False, 2, 200)
    assert found.words == "2 of 200 trials have a normal duration and a CPU reading below 0.5 of the median"


def test_a_trial_that_was_short_itself_is_not_the_instruments_fault() -> None:
    cpu, elapsed = CPU.copy(), ELAPSED.copy()
    cpu[3], elapsed[3] = 0.8, 0.9
    assert cpu_drop(cpu, elapsed).holds


def test_cpu_readings_of_mostly_zero_are_undecided() -> None:
    assert cpu_drop([0, 0, 0, 5], [1, 1, 1, 1]).holds is None


def test_cpu_time_above_elapsed_time_is_a_fault_unless_work_is_parallel() -> None:
    single = cpu_within_elapsed(8 * CPU, ELAPSED, parallel=False)
    assert (single.holds, single.wrong) == (False, 200)
    parallel = cpu_within_elapsed(8 * CPU, ELAPSED, parallel=True)
    assert (parallel.holds, parallel.wrong) == (True, 0)
    assert "utilization 7.99" in parallel.words


def test_cpu_time_may_be_above_by_the_clocks_resolution() -> None:
    assert not cpu_within_elapsed([1.003], [1.0], parallel=False).holds
    assert cpu_within_elapsed([1.003], [1.0], parallel=False, resolution=0.004).holds


def test_elapsed_times_of_all_instruments_agree_within_a_share() -> None:
    close = elapsed_alike({"bash": ELAPSED, "perf": 1.005 * ELAPSED, "own": ELAPSED[:50]})
    assert (close.holds, close.wrong, close.n) == (True, 0, 450)
    far = elapsed_alike({"bash": ELAPSED, "perf": 1.05 * ELAPSED})
    assert not far.holds
    assert far.words.startswith("medians differ by 5 % at most: bash 7.5")


def test_user_and_system_time_together_are_cpu_clock_to_their_resolution() -> None:
    user, system = np.full(9, 0.700), np.full(9, 0.050)
    assert user_system_is_clock(user, system, [0.7512] * 9, 0.001).holds
    assert not user_system_is_clock(user, system, [0.80] * 5, 0.001).holds
    assert user_system_is_clock(user, system, [0.80] * 5, 0.030).holds


def test_an_etalon_is_never_shorter_than_what_it_waits_for() -> None:
    assert pegged([10.0, 10.002, 9.9995], 10, 0.001).holds
    found = pegged([10.0, 10.002, 9.95], 10, 0.001)
    assert (found.holds, found.wrong, found.n) == (False, 1, 3)
    assert found.words == "1 of 3 trials below 10 s, the shortest 9.95 s"


def test_without_readings_no_rule_can_be_judged() -> None:
    nan = [float("nan")]
    for found in (
        cpu_drop([], []),
        cpu_drop_alone([], [[]]),
        cpu_drop_alone([1.0, 0.1], []),
        cpu_drop_alone([1.0, 0.1], [[0.0, 0.0]]),
        cpu_within_elapsed(nan, [1], parallel=False),
        elapsed_alike({"bash": [1.0]}),
        elapsed_alike({"bash": [1.0], "perf": []}),
        elapsed_alike({"bash": [0.0], "perf": [1.0]}),
        user_system_is_clock([1], [1], nan, 0.001),
        pegged([], 10, 0.001),
    ):
        assert found.holds is None
        assert found.words
    with pytest.raises(ValueError, match="same trials"):
        cpu_drop([1, 2], [1])
    with pytest.raises(ValueError, match="same trials"):
        cpu_drop_alone([1, 2], [[1, 2], [1]])
