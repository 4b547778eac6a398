"""Hosts beside each other: p-values agree with scipy's and with the published formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from cbench.stats.hosts import HostMean, against_others, difference_of, interaction_p, mean_of, outlier_p


def test_welchs_test_of_two_means_is_students_with_welchs_degrees_of_freedom() -> None:
    draw = np.random.default_rng(1)
    first, second = draw.normal(0, 1, 9), draw.normal(1, 3, 14)
    means = [HostMean(float(x.mean()), float(x.var(ddof=1)) / x.size, x.size - 1) for x in (first, second)]
    assert interaction_p(means) == pytest.approx(scipy_stats.ttest_ind(first, second, equal_var=False).pvalue)


def test_welchs_test_of_three_groups_agrees_with_his_formula() -> None:
    means = [HostMean(1.0, 0.25, 7), HostMean(2.5, 0.5, 9), HostMean(0.5, 1.0, 5)]
    w = np.array([4.0, 2.0, 1.0])
    centre = np.array([1.0, 2.5, 0.5]) @ w / w.sum()
    between = (w * (np.array([1.0, 2.5, 0.5]) - centre) ** 2).sum() / 2
    lost = ((1 - w / w.sum()) ** 2 / np.array([7, 9, 5])).sum()
    expected = scipy_stats.f.sf(between / (1 + 2 / 8 * lost), 2, 8 / (3 * lost))
    assert interaction_p(means) == pytest.approx(expected)


def test_a_level_is_compared_with_the_prediction_interval_of_the_others() -> None:
    others = [1.0, 1.2, 0.9, 1.1]
    t = (2.0 - np.mean(others)) / (np.std(others, ddof=1) * np.sqrt(1.25))
    assert outlier_p(2.0, others) == pytest.approx(2 * scipy_stats.t.sf(t, 3))
    assert outlier_p(2.0, others[:2]) is None


def test_a_difference_of_two_samples_is_welchs() -> None:
    draw = np.random.default_rng(3)
    first, second = draw.normal(0, 1, 9), draw.normal(1, 3, 14)
    found = difference_of(first, second)
    known = scipy_stats.ttest_ind(second, first, equal_var=False)
    assert found.mean / np.sqrt(found.variance) == pytest.approx(known.statistic)
    assert found.freedom == pytest.approx(known.df)


def test_the_host_with_another_effect_has_the_smallest_p_and_two_hosts_have_none() -> None:
    draw = np.random.default_rng(4)
    means = [mean_of(draw.normal(3.0 if host == 2 else 0.0, 1, 20)) for host in range(5)]
    found = [1.0 if p is None else p for p in against_others(means)]
    assert found.index(min(found)) == 2
    assert against_others(means[:2]) == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize(("unlike", "most"), [(0, 0.02), (1, 0.02), (2, 0.02)])
def test_ordinary_hosts_are_not_accused_beside_unlike_ones(unlike: int, most: float) -> None:
    """Five hosts with eight pairs each; the others must not be accused (Holm, at 1 %) more often than that."""
    draw, studies, accused = np.random.default_rng(3), 1000, 0
    for _ in range(studies):
        values = draw.normal(0, 0.014, (5, 8))
        values[:unlike] -= 0.08
        found = [1.0 if p is None else p for p in against_others([mean_of(row) for row in values])]
        adjusted = np.maximum.accumulate(np.sort(found) * np.arange(5, 0, -1))
        accused += bool((adjusted[np.argsort(np.argsort(found))][unlike:] < 0.01).any())
    assert accused / studies <= most
