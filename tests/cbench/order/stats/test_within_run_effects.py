"""Position, predecessor, first trial and drift: against scipy and by leaving out by hand."""

from __future__ import annotations

from itertools import permutations
from math import factorial, isclose

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cbench.order.stats.within_run_effects import (
    COUNTED,
    WORTH,
    Ordered,
    against_others,
    drift,
    first_trial,
    grouped,
    median_of_sorted,
)

PAIRS = st.lists(st.tuples(st.integers(-4, 4), st.integers(-1, 4)), min_size=2, max_size=40)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in pairs], dtype=float), np.array([label for _, label in pairs], dtype=np.int32)


@settings(deadline=None)
@given(PAIRS)
def test_groups_are_compared_as_scipy_does(pairs: list[tuple[int, int]]) -> None:
    values, labels = columns(pairs)
    found = grouped(Ordered.of(values), labels)
    names = sorted(set(labels.tolist()))
    if len(names) < 2:
        assert found is None
        return
    assert found is not None
    groups = [values[labels == name] for name in names]
    assert found.labels.tolist() == names
    assert found.sizes.tolist() == [group.size for group in groups]
    assert found.medians.tolist() == [np.median(group) for group in groups]
    assert found.doubtful == (min(group.size for group in groups) < 5)
    if np.unique(values).size == 1:
        assert (found.test.h, found.test.p) == (0, 1)
        return
    wanted = scipy.stats.kruskal(*groups)
    assert isclose(found.test.h, wanted.statistic, rel_tol=1e-9, abs_tol=1e-9)
    assert isclose(found.test.p, wanted.pvalue, rel_tol=1e-7)


@pytest.mark.slow
@settings(deadline=None)
@given(PAIRS)
def test_each_label_is_compared_with_all_others(pairs: list[tuple[int, int]]) -> None:
    values, labels = columns(pairs)
    found = against_others(Ordered.of(values), labels)
    names = sorted(set(labels.tolist()))
    if len(names) < 2:
        assert found is None
        return
    assert found is not None
    assert found.h.size == len(names)
    for number, name in enumerate(names):
        each, inside = found[number], labels == name
        assert (found.labels[number], each.n) == (name, inside.sum())
        assert each.median == np.median(values[inside])
        assert each.median_others == np.median(values[~inside])
        if np.unique(values).size > 1:
            wanted = scipy.stats.kruskal(values[inside], values[~inside])
            assert isclose(found.h[number], wanted.statistic, rel_tol=1e-7, abs_tol=1e-12)
            if wanted.pvalue > WORTH:  # else by permutation
                assert isclose(each.p, wanted.pvalue, rel_tol=1e-7)
        else:
            assert each.p == 1


def test_the_first_trial_of_runs_against_all_others() -> None:
    found = first_trial(Ordered.of(np.array([9.0, 1, 2, 8, 3, 4])), np.array([0, 1, 2, 0, 1, 2], dtype=np.int32))
    assert found is not None
    assert (found.n, found.median, found.median_others) == (2, 8.5, 2.5)
    assert isclose(found.p, scipy.stats.kruskal([9, 8], [1, 2, 3, 4]).pvalue, rel_tol=1e-9)  # above WORTH
    assert found.delta_pct == 240
    assert first_trial(Ordered.of(np.array([1.0, 2.0])), np.array([0, 0], dtype=np.int32)) is None
    assert first_trial(Ordered.of(np.array([1.0, 2.0])), np.array([1, 2], dtype=np.int32)) is None
    around_0 = first_trial(Ordered.of(np.array([1.0, -1, 1])), np.array([0, 1, 2], dtype=np.int32))
    assert around_0 is not None
    assert around_0.delta_pct is None


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 9)), min_size=3, max_size=40))
def test_drift_is_spearmans_correlation(pairs: list[tuple[int, int]]) -> None:
    values, times = columns(pairs)
    found = drift(values, times)
    if np.unique(values).size == 1 or np.unique(times).size == 1:
        assert found is None
        return
    assert found is not None
    wanted = scipy.stats.spearmanr(values, times)
    assert isclose(found.rho, wanted.statistic, rel_tol=1e-9, abs_tol=1e-12)
    assume(abs(found.rho) < 0.999999)
    assume(found.n > COUNTED and wanted.pvalue > 1e-5)  # else not by Student's t alone
    assert isclose(found.p, wanted.pvalue, rel_tol=1e-6)


@pytest.mark.parametrize("values", [(1, 2, 4), (4, 1, 2, 8), (0, 0, 1, 3, 2), (3, 1, 4, 1, 5, 9)])
def test_drift_of_few_values_has_the_p_of_all_permutations(values: tuple[int, ...]) -> None:
    times = np.arange(len(values), dtype=np.int32)
    found = drift(np.array(values, dtype=float), times)
    assert found is not None
    every = np.array([abs(scipy.stats.spearmanr(each, times).statistic) for each in permutations(values)])
    assert found.p == pytest.approx((every >= abs(found.rho) - 1e-9).mean())


def test_a_perfect_drift_has_the_chance_of_two_permutations_and_too_few_values_have_none() -> None:
    for n in (3, 4, 8, 9, 12):
        found = drift(np.arange(n, dtype=float), np.arange(n, dtype=np.int32))
        assert found is not None
        assert (found.rho, found.n) == (1, n)
        assert found.p == pytest.approx(2 / factorial(n))
    assert drift(np.array([1.0, 2]), np.arange(2, dtype=np.int32)) is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_medians(values: list[float]) -> None:
    assert median_of_sorted(np.sort(np.array(values))) == np.median(values)
