"""Effects by signed ranks within blocks: scipy's Wilcoxon test, exact chances, missing values, and what is inert."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.screen.design.fractional import fraction
from cbench.screen.design.plackett import plackett_burman
from cbench.screen.stats.block_tests import EffectTest, blocked, differences
from cbench.screen.stats.signed_rank import COUNTED, flip_test, signed_ranks
from tests.cbench.screen.design.designs import COMPLETE, FP, MATCHED_ONLY, OS, PRF, WITHOUT_QUESTIONABLE
from tests.cbench.screen.planted import LEVELS, experiment, significant
from tests.cbench.screen.stats.test_effects import PLANT, YIELD

PAIR = np.array([[0], [1]])


def effects_of(levels: np.ndarray, values: np.ndarray, **more: object) -> dict[tuple[int, ...], EffectTest]:
    return dict(blocked(levels, values, **more).effects)  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", [6, 9, COUNTED])
def test_two_treatments_are_compared_by_wilcoxons_exact_test(blocks: int) -> None:
    values = np.random.default_rng(blocks).normal([0, 0.8], size=(blocks, 2))
    found = effects_of(PAIR, values)[0,]
    wanted = scipy.stats.wilcoxon(values[:, 1], values[:, 0], method="exact")
    assert found.p == pytest.approx(wanted.pvalue, rel=1e-12)
    assert found.estimate == pytest.approx(np.diff(values, axis=1).mean())
    assert found.se == pytest.approx(scipy.stats.sem(np.diff(values, axis=1).ravel()))


@pytest.mark.parametrize("blocks", [13, 20, 40, 50])
@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6, 0.9])
def test_more_blocks_come_close_to_wilcoxons_exact_test(blocks: int, shift: float) -> None:
    values = np.random.default_rng(blocks).normal([0, shift], size=(blocks, 2))
    wanted = scipy.stats.wilcoxon(values[:, 1], values[:, 0], method="exact").pvalue
    assert effects_of(PAIR, values)[0,].p == pytest.approx(wanted, rel=0.08)


def test_the_plain_test_comes_close_to_students_t_for_many_blocks() -> None:
    values = np.random.default_rng(3).normal([0, 0.3], size=(200, 2))
    assert effects_of(PAIR, values)[0,].p_plain == pytest.approx(scipy.stats.ttest_rel(*values.T).pvalue, rel=0.05)


def test_no_p_is_smaller_than_all_signs_alike() -> None:
    for blocks in (3, COUNTED, 30, 200):
        certain = np.tile([1.0, 2.0], (blocks, 1))
        assert effects_of(PAIR, certain)[0,].p == 2.0 ** (1 - blocks)


def test_the_estimates_are_those_of_the_treatments_means() -> None:
    values = YIELD + np.random.default_rng(1).normal(size=(9, 8))
    values += 25 - values.mean(axis=0) - 25 + YIELD  # each mean exactly the plant's
    found = effects_of(PLANT, values)
    wanted = {(0,): 23, (1,): -5, (2,): 1.5, (0, 1): 1.5, (0, 2): 10, (1, 2): 0}
    assert {factors: each.estimate for factors, each in found.items()} == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_shifting_whole_blocks_or_reordering_changes_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.round(experiment(seed, 15), 6)
    one = effects_of(LEVELS, values)
    shifts = np.round(random.normal(scale=50, size=(15, 1)), 1)
    treatments, blocks = random.permutation(12), random.permutation(15)
    two = effects_of(LEVELS[treatments], (values + shifts)[blocks][:, treatments])
    for factors, each in one.items():
        assert two[factors].p == pytest.approx(each.p, rel=0.05, abs=1e-6)  # rounding moves ties
        assert two[factors].estimate == pytest.approx(each.estimate, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_reversing_every_block_reverses_the_effect_and_keeps_its_p(seed: int) -> None:
    values = experiment(seed, 14)
    one, two = effects_of(LEVELS, values), effects_of(LEVELS, -values)
    for factors, each in one.items():
        assert two[factors].p == pytest.approx(each.p)
        if each.se is not None:
            assert two[factors].estimate == pytest.approx(-(each.estimate or 0))


def test_rounding_makes_no_effect_where_values_are_exact() -> None:
    """A counter that always reads the same: 0.1 more with the first factor, nothing else."""
    values = np.tile(0.3 + 0.1 * LEVELS[:, 0], (40, 1)) + np.arange(40)[:, np.newaxis] * 0.7
    found = effects_of(LEVELS, values)
    assert found[0,].p < 1e-6
    assert [each.p for factors, each in found.items() if factors != (0,)] == [1.0] * 5


def test_an_empty_cell_keeps_the_remaining_pairs() -> None:
    """fp by the boxes that have both levels: the adjusted effect 2.5 of the worked example, not the plain 2.6667."""
    levels = np.array([each[1:] for each in WITHOUT_QUESTIONABLE[:5]])
    means = np.array(
        [{(0, 0): 10, (0, 1): 14, (1, 0): 11, (1, 1): 18, (1, 2): 15}[tuple(each)] for each in levels.tolist()]
    )
    found = effects_of(levels, np.tile(means, (9, 1)) + np.random.default_rng(2).normal(scale=1e-9, size=(9, 5)))
    assert found[0,].estimate == pytest.approx(2.5, abs=1e-6)
    assert found[0, 1].df == 1


def test_fully_aliased_factors_are_not_tested() -> None:
    found = blocked(np.array(MATCHED_ONLY), np.random.default_rng(1).normal(size=(20, 4)))
    assert list(found.effects) == [(OS,)]
    assert set(found.untested) == {(FP,), (PRF,), (OS, FP), (OS, PRF), (FP, PRF)}


def test_hard_factors_are_left_to_the_batches() -> None:
    levels = np.array(COMPLETE)
    values = np.full((40, 12), np.nan)
    random = np.random.default_rng(4)
    for block in range(40):
        level = block // 20
        values[block, levels[:, OS] == level] = random.normal(size=6) + 2 * levels[:6, FP] + 100 * level
    found = blocked(levels, values, hard=[OS])
    assert (found.blocks, found.dropped) == (40, 0)
    assert set(found.untested) == {(OS,), (OS, FP), (OS, PRF)}
    assert set(found.effects) == {(FP,), (PRF,), (FP, PRF)}
    assert significant(found) == {(FP,)}
    assert found.effects[FP,].estimate == pytest.approx(2, abs=0.5)


def test_a_block_with_a_missing_value_keeps_the_differences_that_do_not_need_it() -> None:
    values = experiment(2, 20)
    values[3, 5] = np.nan
    found = blocked(LEVELS, values)
    assert (found.blocks, found.partial, found.dropped) == (20, 1, 0)
    whole = blocked(LEVELS, np.delete(values, 3, axis=0)).effects
    assert found.effects.keys() == whole.keys()
    assert all(found.effects[each].p != whole[each].p for each in ((FP,), (FP, PRF)))


def test_a_tenth_of_the_trials_may_fail_and_nearly_all_iterations_count() -> None:
    """Where one missing value had dropped its iteration, 28 of 40 were lost."""
    random = np.random.default_rng(4)
    values = experiment(4, 40, (0.8, 0.0, 0.0))
    values[random.random(values.shape) < 0.1] = np.nan
    found = blocked(LEVELS, values)
    assert (found.blocks, found.dropped) == (40, 0)
    assert found.partial > 25
    assert significant(found) == {(0,)}


def test_a_treatment_that_never_has_a_value_is_as_if_it_were_not_there() -> None:
    values = experiment(2, 20)
    values[:, 2] = np.nan
    assert (
        blocked(LEVELS, values).effects == blocked(np.delete(LEVELS, 2, axis=0), np.delete(values, 2, axis=1)).effects
    )


@pytest.mark.parametrize("values", [np.empty((0, 12)), np.ones((1, 12)), np.full((4, 12), np.nan)])
def test_with_fewer_than_two_blocks_nothing_is_tested(values: np.ndarray) -> None:
    assert blocked(LEVELS, values).effects == {}


def test_a_fraction_is_tested_by_all_its_treatments_at_once() -> None:
    design = np.array(fraction("abcd", ["D=ABC"]).treatments)
    values = np.random.default_rng(5).normal(size=(30, 8)) + 3 * design[:, 3] + 100 * np.arange(30)[:, np.newaxis]
    found = blocked(design, values)
    assert significant(found) == {(3,)}
    assert found.effects[3,].estimate == pytest.approx(3, abs=0.5)
    assert set(found.untested) == set(combinations(range(4), 2))  # each is another one's alias


def test_interactions_that_are_aliased_with_main_effects_are_not_tested() -> None:
    design = np.array(fraction("abcdefg", ["D=AB", "E=AC", "F=BC", "G=ABC"]).treatments)
    found = blocked(design, np.random.default_rng(5).normal(size=(30, 8)))
    assert set(found.effects) == {(each,) for each in range(7)}


def test_a_plackett_burman_design_finds_its_main_effects() -> None:
    design = np.array(plackett_burman("abcdefghijk").treatments)
    values = np.random.default_rng(6).lognormal(size=(40, 12)) + 2 * design[:, 4] - 2 * design[:, 9]
    found = blocked(design, values)
    assert significant(found) == {(4,), (9,)}
    assert found.effects[4,].estimate == pytest.approx(2, abs=0.6)


def test_matched_differences_are_all_pairs_of_levels_in_each_box() -> None:
    batch = np.zeros(12, dtype=np.intp)
    sizes = {(0,): 6, (1,): 6, (2,): 3 * 4, (0, 1): 3, (0, 2): 3 * 2, (1, 2): 3 * 2}
    for effect, size in sizes.items():
        found = differences(LEVELS, effect, batch)
        assert found is not None
        assert found.at.shape == (size, 2 ** len(effect))
        assert found.weights.sum() == 0
        assert found.shows.shape[1] == (2 if 2 in effect else 1)
        assert found.signed == (2 not in effect)


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_signed_ranks_are_scipys_ranks_of_magnitudes(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=float)
    wanted = np.sign(values) * scipy.stats.rankdata(np.abs(values))
    assert signed_ranks(values[:, np.newaxis], 1e-9).ravel().tolist() == wanted.tolist()
    with_gap = np.append(values, np.nan)[:, np.newaxis]
    assert signed_ranks(with_gap, 1e-9).ravel().tolist() == [*wanted.tolist(), 0]


def test_all_signs_of_few_blocks_are_enumerated() -> None:
    scores = np.random.default_rng(7).normal(size=(8, 2)) + 0.5
    found = flip_test(scores)
    assert found is not None
    inverse = np.linalg.inv(scores.T @ scores)
    every = [
        float((np.array(signs) @ scores) @ inverse @ (np.array(signs) @ scores)) for signs in product((1, -1), repeat=8)
    ]
    assert found.statistic == pytest.approx(float(scores.sum(axis=0) @ inverse @ scores.sum(axis=0)))
    assert found.p == np.mean([each >= found.statistic * (1 - 1e-9) for each in every])


@pytest.mark.parametrize("df", [1, 2])
def test_the_approximations_are_close_to_enumeration(df: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        scores = np.random.default_rng(seed).normal(0.25, size=(14, df))
        beta = flip_test(scores)
        monkeypatch.setattr("cbench.screen.stats.signed_rank.COUNTED", 14)
        counted = flip_test(scores)
        monkeypatch.undo()
        assert beta is not None
        assert counted is not None
        assert beta.p == pytest.approx(counted.p, rel=0.1, abs=0.003)


def test_one_outlier_does_not_suppress_other_differences() -> None:
    values = experiment(3, 20)
    values[4, 7] = 1e13
    plain, far = (effects_of(LEVELS, each) for each in (np.delete(values, 4, axis=0), values))
    assert [each for each in plain if plain[each].p < 1e-3]
    for factors, each in plain.items():
        assert far[factors].p == pytest.approx(each.p, rel=9, abs=1e-4)  # one block in twenty is another
        assert (far[factors].p < 1e-3) == (each.p < 1e-3)


def test_a_step_of_three_units_in_the_last_place_is_a_difference_and_one_of_one_is_rounding() -> None:
    values = 1e15 + 0.125 * np.tile([0.0, 3.0], (10, 1))
    assert effects_of(PAIR, values)[0,].p == 2.0**-9
    assert effects_of(PAIR, np.tile([0.1 + 0.2, 0.3], (10, 1)))[0,].p == 1.0


def test_sums_of_many_values_differ_by_rounding_only_where_nothing_has_an_effect() -> None:
    design = np.array(plackett_burman("abcdefghijk").treatments)
    values = np.array([0.1, 0.7, 1.3])[np.arange(40) % 3, np.newaxis] * np.ones(12)
    assert {each.p for each in blocked(design, values).effects.values()} == {1.0}
