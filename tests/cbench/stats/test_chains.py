"""Cycles from the times of chains, on simulated cores: the frequency walks and jumps, others take the core."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cbench.model import DISAGREE, INTERRUPT, SHARED, SWITCH, TASK, ChainTimes, Trial, TrialCause
from cbench.stats import chains
from cbench.stats.headline import Headline, figures, headline
from quiet.noise.chains import ALWAYS, EMULATOR, chains_agree
from tests.cbench.stats.cores import CALIBRATION, COUNTER, CYCLES, EDGE, LENGTH, STEP, Core, trials

SEEDS = range(6)


def headline_of(*processes: Sequence[Trial]) -> Headline:
    return headline(processes, processes, COUNTER)


def exact(found: Headline, share: float = 0.0002, cycles: float = CYCLES + EDGE / 0.754) -> bool:
    """Whether a headline is right to a share, and its interval holds the right value."""
    assert found.value is not None
    assert found.interval is not None
    low, high = found.interval
    return abs(found.value / cycles - 1) <= share and low <= cycles <= high


def test_a_core_at_one_frequency_gives_the_cycles_of_the_work() -> None:
    found = trials(Core(interrupted=0))
    assert all(not trial.causes for trial in found)
    assert exact(headline_of(found), 0.0001)


@pytest.mark.parametrize("seed", SEEDS)
def test_interruptions_anywhere_do_not_move_the_headline(seed: int) -> None:
    assert exact(headline_of(trials(Core(interrupted=0.5, random=random.Random(seed)))))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_frequency_that_walks_does_not_move_it_either(seed: int) -> None:
    walk, dice = [0.754], random.Random(seed)
    for _ in range(10_000):
        walk.append(min(max(walk[-1] * dice.gauss(1, 3e-5), 0.6), 0.9))
    assert exact(headline_of(trials(Core(rate=lambda now: walk[int(now // 50_000) % len(walk)], random=dice))))


@pytest.mark.parametrize("seed", SEEDS)
def test_jumps_of_the_frequency_are_left_out_where_they_fall_into_a_trial(seed: int) -> None:
    steps = [random.Random(seed + number).choice([0.63, 0.754, 0.9]) for number in range(2000)]
    found = trials(Core(rate=lambda now: steps[int(now // 5e6) % 2000], random=random.Random(seed)))
    assert any(cause.kind == DISAGREE for trial in found for cause in trial.causes)
    assert exact(headline_of(found))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_frequency_that_changes_a_little_in_every_trial_leaves_trials_and_does_not_move_the_headline(
    seed: int,
) -> None:
    dice = random.Random(seed)
    steps = [0.754 * (1 + dice.uniform(-0.0015, 0.0015)) for _ in range(4001)]  # within each trial
    found = trials(Core(rate=lambda now: steps[int(now // 1e5) % 4001], random=random.Random(seed)))
    assert sum(any(cause.kind == DISAGREE for cause in trial.causes) for trial in found) < 0.2 * len(found)
    assert exact(headline_of(found))


def test_chains_that_the_shortest_interruption_separates_disagree() -> None:
    assert chains_agree(61_000, 61_150, STEP)
    assert not chains_agree(61_000, 61_000 + 1000, STEP)  # 0.4 us of a clock of 2.5 GHz


@pytest.mark.parametrize("seed", SEEDS)
def test_an_intermittent_neighbor_is_detected_and_its_trials_are_left_out(seed: int) -> None:
    core = Core(shared=lambda now: int(now // 30e6) % 3 > 0, random=random.Random(seed))
    found = trials(core)
    assert any(cause.kind == SHARED for trial in found for cause in trial.causes)
    assert exact(headline_of(found))


@pytest.mark.parametrize("slowdown", [1.0, 1.24, 2.0])
def test_a_permanent_neighbor_leaves_no_number(slowdown: float) -> None:
    found = headline_of(trials(Core(shared=lambda _now: True, slowdown=slowdown)))
    assert (found.value, found.interval) == (None, None)
    assert "cannot tell: the core is shared all the time: parallel additions take 1.8 times as long" in found.how


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_hypervisor_that_takes_most_of_the_time_the_interval_holds_the_cycles_or_there_is_none(
    seed: int,
) -> None:
    found = headline_of(trials(Core(interrupted=4, random=random.Random(seed))))
    assert found.value is None or exact(found, 1)


@pytest.mark.parametrize("clean", [40, 60])
def test_where_the_tick_interrupts_nearly_every_trial_the_few_others_are_the_headline(clean: int) -> None:
    timer = TrialCause("interrupt", "LOC (Local timer interrupts)", 1)
    found = trials(Core(interrupted=0), 1000)
    ticked = [
        replace(trial, chains=replace(trial.chains, ticks=round(1.005 * trial.chains.ticks)), causes=(timer,))
        for trial in found[clean:]
        if trial.chains
    ]
    assert exact(headline_of([*found[:clean], *ticked]))


@pytest.mark.parametrize(
    "cause", [TrialCause(SWITCH, "0 voluntary, 7 involuntary", 7), TrialCause(TASK, "kworker/1:0", ns=30_000)]
)
def test_trials_in_which_another_task_ran_are_not_used_and_leave_no_number_if_nearly_all_are_such(
    cause: TrialCause,
) -> None:
    """A neighbor that runs for 30 us of every 500 us: the headline had been 1.06 to 1.8 times the value."""
    found = trials(Core(interrupted=0))
    switched = [replace(trial, causes=(*trial.causes, cause)) for trial in found]
    longer = [
        replace(trial, chains=replace(trial.chains, ticks=trial.chains.ticks * 2)) for trial in switched if trial.chains
    ]
    assert exact(headline_of([*longer[: len(found) // 2], *found[len(found) // 2 :]]))
    none = headline_of([*longer[20:], *found[:20]])
    assert none.value is None
    assert "another task ran in 9" in none.how
    assert "use another CPU" in none.how


def test_a_wide_chain_that_no_other_thread_makes_so_long_was_interrupted() -> None:
    usual = trials(Core(interrupted=0))
    first = usual[0].chains
    assert first is not None
    for times, expected in ((1.8, SHARED), (4.0, DISAGREE)):
        wide = replace(first, wide_after=round(first.wide_after * times))
        marked = chains.marked([replace(usual[0], chains=wide), *usual[1:]], CALIBRATION)
        assert [cause.kind for cause in marked[0].causes] == [expected]
    interrupt = TrialCause(INTERRUPT, "LOC", 1)
    wide = replace(first, wide_after=round(first.wide_after * 1.8))
    marked = chains.marked([replace(usual[0], chains=wide, causes=(interrupt,)), *usual[1:]], CALIBRATION)
    assert [cause.kind for cause in marked[0].causes] == [INTERRUPT, DISAGREE]


def test_few_trials_that_seem_undisturbed_among_many_that_are_not_are_not_an_answer() -> None:
    quiet, busy = Core(interrupted=0), Core(shared=lambda _now: True)
    mixed = [trial.chains for trial in (*trials(quiet, 12), *trials(busy, 388)) if trial.chains]
    made = [Trial(round(chains.cycles(each, CALIBRATION)), 7, chains=each) for each in mixed]
    found = headline_of(chains.marked(made, CALIBRATION))
    assert found.value is None
    assert "only 12 of 400 trials" in found.how


def test_an_emulator_takes_as_long_for_both_chains_and_is_not_a_clock_of_cycles() -> None:
    times = [replace(Core(interrupted=0).trial(CYCLES), wide_before=108_600, wide_after=108_600) for _ in range(100)]
    found, why = chains.marks(times, STEP, "x86_64")
    assert set(found) == {SHARED}
    assert why == EMULATOR


def test_an_arm_core_with_two_adders_is_not_treated_as_shared() -> None:
    times = [
        replace(each, wide_before=round(each.before * 0.53), wide_after=round(each.after * 0.53))
        for each in [Core(interrupted=0).trial(CYCLES) for _ in range(50)]
    ]
    assert chains.marks(times, STEP, "aarch64") == ([""] * 50, "")
    assert chains.marks(times, STEP, "x86_64")[1].startswith(ALWAYS)


def test_a_single_trial_is_judged_by_its_own_chains() -> None:
    assert chains.marks([Core(interrupted=0).trial(CYCLES)], STEP, "x86_64") == ([""], "")
    assert chains.marks([Core(interrupted=0, shared=lambda _: True).trial(CYCLES)], STEP, "x86_64")[0] == [SHARED]


def test_trials_that_disagree_are_never_shown_as_a_tiny_number_of_cycles() -> None:
    times = replace(Core(interrupted=0).trial(CYCLES), before=5_000_000, after=9_000_000)
    assert chains.cycles(times, CALIBRATION) > 0.95 * CYCLES


def test_chains_without_a_length_of_time_give_zero_and_no_error() -> None:
    assert chains.cycles(ChainTimes(100, LENGTH, 0, 0, 0, 0), CALIBRATION) == 0.0


def test_several_processes_give_the_median_and_an_interval_that_holds_it() -> None:
    processes = [trials(Core(random=random.Random(seed)), 100) for seed in range(10)]
    found = headline_of(*processes)
    assert exact(found)
    assert "median of 10 processes" in found.how


def test_undecided_processes_are_left_out_up_to_half_of_them() -> None:
    good = [trials(Core(random=random.Random(seed)), 100) for seed in range(3)]
    bad = [trials(Core(shared=lambda _now: True), 100) for _ in range(3)]
    assert exact(headline_of(*good, *bad[:2]))
    assert headline_of(*good, *bad).value is None


def test_the_frequency_of_the_run_is_a_by_product() -> None:
    found = trials(Core(rate=lambda now: 0.754 if now < 100e6 else 0.8, interrupted=0))
    made = figures([found], CALIBRATION, headline_of(found), [2.445e9])
    assert made.hz is not None
    assert made.high_hz == pytest.approx(2.445e9 / 0.754, rel=1e-3)
    assert made.low_hz == pytest.approx(2.445e9 / 0.8, rel=1e-3)
    assert made.below is not None
    assert 0.3 < made.below < 0.8
    assert made.value_ns == pytest.approx((CYCLES + EDGE) / made.hz * 1e9, rel=1e-3)
    assert (made.trials, made.disagree + made.shared) == (200, pytest.approx(1 - made.kept / 200))


def test_without_calibrated_cycles_there_is_no_headline() -> None:
    counter = replace(COUNTER, calibration=replace(CALIBRATION, obstacle=EMULATOR))
    found = trials(Core(interrupted=0))
    assert headline([found], [found], counter).how == f"cannot tell: {EMULATOR}"
