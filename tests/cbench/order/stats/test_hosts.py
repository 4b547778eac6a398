"""Several hosts: their effects of the order, and hosts that are unlike the others."""

from __future__ import annotations

import numpy as np

from cbench.order.stats.hosts import compare as compared
from cbench.order.stats.hosts import spread_p


def test_the_host_with_a_different_effect_of_the_order_has_the_smallest_p() -> None:
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


def test_a_spread_that_differs_only_between_hosts_is_not_an_effect_of_the_order() -> None:
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
