"""Several hosts: their effects of the order, and hosts that are unlike the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from cbench.order.stats.hosts import HostMean, interaction_p, outlier_p, spread_p
from cbench.order.stats.hosts import compare as compared


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


def test_a_host_whose_order_has_another_effect_is_the_one_with_the_smallest_p() -> None:
    draw = np.random.default_rng(2)
    host = np.repeat(np.arange(6), 20).astype(np.int32)
    random = np.tile(np.arange(20) % 2 == 1, 6)
    value = (100 + 40 * host + draw.normal(size=120)) * np.where(random & (host == 3), 1.05, 1.0)
    hosts, interaction, pooled = compared(value, random, host, [f"node{each}" for each in range(6)], None)
    assert min(hosts, key=lambda each: each.p_effect or 1.0).host == "node3"
    assert interaction is not None
    assert interaction < 1e-4
    assert pooled is not None
    assert pooled > 0.2


def test_a_spread_that_only_differs_between_hosts_is_no_effect_of_the_order() -> None:
    """The noisy host has three of four random runs, so that pooled distances would differ between the orders."""
    p = []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        host = np.repeat([0, 1], 20).astype(np.int32)
        random = np.concatenate([np.arange(20) < 5, np.arange(20) < 15])
        value = draw.normal(size=40) * np.where(host == 1, 10.0, 1.0)
        found = spread_p(value, random, host)
        assert found is not None
        p.append(found)
    assert sum(each < 0.05 for each in p) <= 6
    assert min(p) > 1e-4


def test_a_spread_that_differs_between_orders_on_each_host_is_found() -> None:
    draw = np.random.default_rng(4)
    host, random = np.repeat(np.arange(4), 20).astype(np.int32), np.tile(np.arange(20) % 2 == 1, 4)
    found = spread_p(100 * host + draw.normal(size=80) * np.where(random, 4.0, 1.0), random, host)
    assert found is not None
    assert found < 1e-4
