"""Randomized blocks in batches, and sequences of boots: their properties for any seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.screen.design.batches import Batch, batches, boot_sequence, bounds, order, sequence_words, transitions
from cbench.screen.design.factorial import Factor, full_factorial
from tests.cbench.screen.design.designs import COMPLETE, FACTORS, WITHOUT_QUESTIONABLE

SEEDS = st.integers(0, 2**64 - 1)
TN_SEQUENCE = [1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0]


@settings(deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(0, 50))
def test_each_iteration_runs_every_treatment_of_its_batch_once(seed: int, plots: int, iteration: int) -> None:
    for batch in batches(FACTORS, WITHOUT_QUESTIONABLE, plots, seed):
        assert sorted(order(batch, iteration, seed)) == list(batch.treatments)


@settings(deadline=None)
@given(SEEDS, st.integers(1, 6), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_hard_levels_are_constant_in_a_batch_and_balanced_over_batches(
    seed: int, plots: int, sizes: list[int], data: st.DataObject
) -> None:
    factors = [
        Factor(f"f{at}", tuple(str(each) for each in range(size)), hard=data.draw(st.booleans()))
        for at, size in enumerate(sizes)
    ]
    hard = [at for at, factor in enumerate(factors) if factor.hard]
    treatments = full_factorial(factors)
    found = batches(factors, treatments, plots, seed)
    for batch in found:
        assert {tuple(treatments[each][at] for at in hard) for each in batch.treatments} == {batch.levels}
    counts = Counter(batch.levels for batch in found)
    assert set(counts.values()) == {plots}
    every = Counter(each for batch in found for each in batch.treatments)
    assert every == dict.fromkeys(range(len(treatments)), plots)
    assert [batch.number for batch in found] == list(range(len(found)))
    size = len(counts)
    for start in range(0, len(found), size):  # in each round each combination once
        assert len({batch.levels for batch in found[start : start + size]}) == size


def test_orders_are_the_same_on_every_machine_and_in_every_version() -> None:
    batch = batches(FACTORS, COMPLETE, 1, seed=7)[0]
    assert (batch.levels, batch.treatments) == ((0,), (0, 1, 2, 3, 4, 5))
    assert [order(batch, iteration, 7) for iteration in range(3)] == [
        (5, 4, 0, 2, 3, 1),
        (5, 2, 4, 1, 0, 3),
        (2, 1, 4, 0, 5, 3),
    ]


def test_more_batches_begin_with_the_same_ones() -> None:
    assert batches(FACTORS, COMPLETE, 9, 3)[:6] == batches(FACTORS, COMPLETE, 3, 3)


def test_orders_of_iterations_are_drawn_independently() -> None:
    """Each of the 6 permutations of three treatments about equally often after each other one (chi-squared, 35 df)."""
    batch = Batch(0, (), (0, 1, 2))
    drawn = [order(batch, iteration, 11) for iteration in range(3601)]
    counts = Counter(pairwise(drawn))
    assert len(counts) == 36
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 66.6  # p = 0.001


def test_two_orders_of_six_treatments_agree_once_in_720() -> None:
    batch = Batch(0, (), tuple(range(6)))
    drawn = [order(batch, iteration, 5) for iteration in range(14_401)]
    same = sum(one == two for one, two in pairwise(drawn))
    assert 5 <= same <= 38  # 20 expected; outside with p = 0.0003


def test_a_sequence_of_batches_can_be_given() -> None:
    found = batches(FACTORS, COMPLETE, 1, 1, sequence=[(1,), (0,), (1,)])
    assert [batch.levels for batch in found] == [(1,), (0,), (1,)]
    with pytest.raises(ValueError, match="never has os=0"):
        batches(FACTORS, COMPLETE, 1, 1, sequence=[(1,)])
    with pytest.raises(ValueError, match="no treatment has os=0"):
        batches(FACTORS, COMPLETE[6:], 1, 1, sequence=[(1,), (0,)])


def test_the_sequence_of_the_technical_note_is_neither_alternating_nor_blocked() -> None:
    assert (len(TN_SEQUENCE), sum(TN_SEQUENCE), transitions(TN_SEQUENCE)) == (20, 10, 11)
    assert bounds(TN_SEQUENCE) == (6, 14)
    assert sequence_words(TN_SEQUENCE, "01") == (
        "20 boots, 10 of 0, 10 of 1; the level changes 11 times (6 to 14 are neither alternating nor in blocks)"
    )


@pytest.mark.parametrize(
    ("sequence", "wrong"),
    [
        ([0, 1] * 10, "nearly alternating"),
        ([0] * 10 + [1] * 10, "nearly in blocks"),
        ([0] * 9 + [1] * 3, "not balanced and nearly in blocks"),
    ],
)
def test_a_bad_sequence_of_boots_is_reported(sequence: list[int], wrong: str) -> None:
    assert sequence_words(sequence, "01").endswith(f": {wrong}")


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 12), SEEDS)
def test_sequences_of_boots_are_balanced_and_within_their_bounds(levels: int, per_level: int, seed: int) -> None:
    drawn = boot_sequence(levels, per_level, seed)
    assert Counter(drawn) == dict.fromkeys(range(levels), per_level)
    low, high = bounds(drawn)
    assert low <= transitions(drawn) <= high
    assert drawn == boot_sequence(levels, per_level, seed)


def test_all_sequences_within_bounds_are_equally_likely() -> None:
    """Three boots of two levels: of 20 sequences 16 change 2 to 4 times."""
    counts = Counter(boot_sequence(2, 3, seed) for seed in range(3600))
    assert bounds([0, 1] * 3) == (2, 4)
    assert len(counts) == 16
    assert sum((count - 225) ** 2 / 225 for count in counts.values()) < 37.7  # chi-squared, 15 df, p = 0.001
