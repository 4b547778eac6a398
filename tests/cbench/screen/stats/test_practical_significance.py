"""Effects beside the intervals of samples of usual sizes; widths and coverage of samples of a population."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.stats.practical_significance import Materiality, OwnWidths, StudiedSize, materiality, subsampling
from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import bca, generator
from cbench.stats.interval import BCA, MID, STRICT, T, t_interval

Study = tuple[StudiedSize, ...]


def material(effects: dict[str, float], spans: list[float], studies: list[Study]) -> Materiality:
    return materiality(effects, spans or [1.0], studies, OwnWidths(9, None, None))


def study(widths: dict[int, float], wider: float = 1.0) -> Study:
    """With these median widths of t intervals, and BCa ones `wider` times as wide."""
    return tuple(
        StudiedSize(n, method, (width * by / 2, width * by, width * by * 2), 0.9, 0.03, 100, 0)
        for n, width in widths.items()
        for method, by in ((T, 1.0), (BCA, wider))
    )


WIDTHS = {5: 1.0, 40: 0.2, 160: 0.06, 320: 0.04, 640: 0.01}
EFFECTS = {"os": 0.05, "fp": -0.053, "prf": 0.19}


def test_the_smallest_n_is_the_one_whose_median_width_is_below_the_median_effect() -> None:
    found = material(EFFECTS, [2.0], [study(WIDTHS, wider=1.4)])
    assert (found.median_effect, found.largest_effect, found.range) == (0.053, 0.19, 2.0)
    assert found.enough == {T: 320, BCA: 640}


def test_each_effect_is_reported_beside_range_and_width() -> None:
    found = material(EFFECTS, [2.0], [study(WIDTHS)])
    assert {name: each.magnitude for name, each in found.effects.items()} == {"os": 0.05, "fp": 0.053, "prf": 0.19}
    assert [each.of_range for each in found.effects.values()] == pytest.approx([0.025, 0.0265, 0.095])
    assert [each.detected_from[T] for each in found.effects.values()] == [320, 320, 160]
    first = found.widths[0]
    assert (first.method, first.n, first.median_width) == (T, 5, 1.0)
    assert [each.n for each in found.widths] == [5, 40, 160, 320, 640] * 2


def test_an_effect_as_wide_as_the_interval_is_not_seen() -> None:
    assert material({"a": 0.2}, [], [study({40: 0.2, 80: 0.19})]).enough[T] == 80


def test_a_size_counts_only_if_all_larger_ones_do() -> None:
    assert material({"a": 0.2}, [], [study({5: 0.1, 10: 0.4, 20: 0.1})]).enough[T] == 20


def test_an_effect_that_no_sample_size_shows_has_no_size() -> None:
    found = material({"a": 0.001}, [1.0], [study(WIDTHS)])
    assert found.enough == {T: None, BCA: None}
    assert found.effects["a"].detected_from == {T: None, BCA: None}


def test_of_several_treatments_the_median_width_and_range_count() -> None:
    studies = [study({5: width, 10: 0.1}) for width in (1.0, 3.0, 10.0)]
    studies[0] = study({5: 1.0})
    found = material({"a": 3.5}, [1.0, 2.0, 9.0], studies)
    assert [(each.n, each.median_width) for each in found.widths if each.method == T] == [(5, 3.0)]
    assert (found.range, found.enough[T]) == (2.0, 5)


def test_without_effects_or_studies_it_says_so() -> None:
    found = material({}, [], [])
    assert (found.effects, found.median_effect, found.largest_effect, found.enough) == ({}, None, None, {})
    assert found.why == "there are no effects"
    assert material({"a": float("nan"), "b": 1.0}, [0.0], [study(WIDTHS)]).why == "no finite numbers: a"
    assert material({"a": float("nan"), "b": float("inf")}, [0.0], []).why == "no finite numbers: a, b"


def test_no_range_means_no_share_of_it() -> None:
    assert material({"a": 1.0}, [0.0], []).effects["a"].of_range is None


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


@pytest.mark.slow
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
def test_a_study_of_five_thousand_values_has_the_coverage_of_a_skewed_distribution() -> None:
    found = subsampling(np.random.default_rng(1).lognormal(size=5000), [40], 4000)
    assert 0.88 < found[1].coverage < 0.93
