"""Widths and coverage of samples of a population: all subsets counted out, and drawn ones."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.stats.subsampling import subsampling
from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import bca, generator
from cbench.stats.interval import BCA, MID, STRICT, T, t_interval

SIX = np.array([1.0, 2, 2, 3, 3, 13])
COUNTED = [(2, 13 / 15), (3, 17 / 20), (4, 10 / 15), (5, 5 / 6)]
"""Values in a sample, and the share of all such samples whose interval by t holds the mean of the six."""


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: f"n={row[0]}")
def test_drawn_subsamples_come_near_all_subsets(row: tuple) -> None:
    n, coverage = row
    found, _ = subsampling(SIX, [n], 4000, replicates=10, seed=1)
    assert found.coverage == pytest.approx(coverage, abs=5 * found.coverage_error)
    assert found.coverage_error == pytest.approx(np.sqrt(coverage * (1 - coverage) / 4000), rel=0.1)


POPULATION = np.random.default_rng(6).lognormal(size=1000)


def test_the_intervals_of_many_samples_are_those_of_each_of_them() -> None:
    samples = np.stack([POPULATION[start : start + 40] for start in (0, 40, 80)])
    low, high = t_ends(samples, 0.95)
    alone = [t_interval(each) for each in samples]
    assert low.tolist() == pytest.approx([each.low for each in alone])
    assert high.tolist() == pytest.approx([each.high for each in alone])
    for ties in (MID, STRICT):
        low, high = bca_ends(samples, 0.9, 200_000, ties, generator(1))
        single = [bca(each, 0.9, 200_000, ties=ties) for each in samples]
        near = 0.01 * (high - low).min()
        assert low.tolist() == pytest.approx([each.low for each in single], abs=near)
        assert high.tolist() == pytest.approx([each.high for each in single], abs=near)


@pytest.mark.parametrize("ties", [MID, STRICT])
def test_ties_in_many_samples_are_counted_as_in_one(ties: str) -> None:
    low, high = bca_ends(np.array([[0, 1, 5.0]] * 3), 0.8, 100_000, ties, generator(1))
    assert low.tolist() == pytest.approx([1 / 3] * 3)
    assert high.tolist() == pytest.approx([{MID: 11 / 3, STRICT: 10 / 3}[ties]] * 3)


def test_a_study_has_an_entry_of_each_method_by_size_and_narrower_intervals_of_larger_samples() -> None:
    found = subsampling(POPULATION, [5, 20, 80], 300, replicates=2000, seed=3)
    assert [(each.n, each.method) for each in found] == [(n, m) for n in (5, 20, 80) for m in (T, BCA)]
    for method in (T, BCA):
        entries = [each for each in found if each.method == method]
        widths = [each.width_quartiles[1] for each in entries]
        assert widths == sorted(widths, reverse=True)
        assert all(list(each.width_quartiles) == sorted(set(each.width_quartiles)) for each in entries)
        assert entries[-1].coverage > entries[0].coverage - 0.05


def test_other_sizes_do_not_change_what_is_drawn() -> None:
    alone = subsampling(POPULATION, [10], 50, replicates=500, seed=3)
    among = subsampling(POPULATION, [5, 10, 30], 50, replicates=500, seed=3)
    assert [each for each in among if each.n == 10] == list(alone)
    assert alone != subsampling(POPULATION, [10], 50, replicates=500, seed=4)


def test_samples_of_values_that_are_all_alike_have_width_0_and_miss() -> None:
    population = np.array([1.0] * 99 + [100.0])
    t, bca_entry = subsampling(population, [5], 400, replicates=500)
    for found in (t, bca_entry):
        assert (*found.width_quartiles[:2], found.without) == (0, 0, 0)
        assert found.coverage < 0.15


def test_a_sample_of_two_has_no_bca_interval_and_counts_as_a_miss() -> None:
    _, found = subsampling(SIX, [2], 30, replicates=100)
    assert (found.width_quartiles, found.coverage, found.without, found.subsamples) == ((None,) * 3, 0, 30, 30)


@pytest.mark.slow
def test_a_study_of_the_published_size_takes_seconds_a_size() -> None:
    found = subsampling(np.random.default_rng(1).lognormal(size=5000), [40], 15_000)
    assert 0.88 < found[1].coverage < 0.93
