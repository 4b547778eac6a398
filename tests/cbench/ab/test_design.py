"""Orders are balanced, and stopping depends only on widths."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from cbench.ab.analyze import SmallestEffect, detectable
from cbench.ab.design import BLOCKS, BUDGET, StoppingRule, order_of, whole_squares


@pytest.mark.parametrize("arms", [3, 4, 5, 6])
def test_over_whole_squares_each_arm_has_each_position_and_each_predecessor_equally_often(arms: int) -> None:
    orders = [order_of(block, arms, 7) for block in range(whole_squares(20, arms))]
    places = Counter((place, arm) for order in orders for place, arm in enumerate(order))
    neighbors = Counter(pair for order in orders for pair in pairwise(order))
    assert len(places) == arms * arms
    assert len(neighbors) == arms * (arms - 1)
    assert len(set(places.values())) == len(set(neighbors.values())) == 1


def test_the_seed_alone_decides_the_order_of_a_block() -> None:
    first = [order_of(block, 4, 1) for block in range(40)]
    assert first == [order_of(block, 4, 1) for block in range(40)]
    assert first != [order_of(block, 4, 2) for block in range(40)]


def test_interim_checks_are_at_whole_squares_and_increasingly_far_apart() -> None:
    rule = StoppingRule(arms=4, effect=0.01, budget_s=10, strict=False)
    looks = [rule.first_look]
    while looks[-1] < 100:
        looks.append(rule.next_look(looks[-1]))
    assert looks[:4] == [12, 16, 24, 32]
    assert all(look % 4 == 0 for look in looks)


@pytest.mark.parametrize(
    ("strict", "blocks", "done", "spent", "why"),
    [
        (False, None, 5, 1000.0, ""),  # fewer than ten blocks: without --budget, time is not a reason
        (False, None, 12, 1000.0, BUDGET),
        (False, None, 12, 1.0, ""),
        (True, None, 1, 6.0, BUDGET),  # another block would not end in time
        (True, None, 1, 4.0, ""),
        (False, 30, 29, 1000.0, ""),  # --blocks alone: however long it takes
        (False, 30, 30, 1.0, BLOCKS),
        (True, 30, 20, 10.0, BUDGET),
    ],
)
def test_blocks_end_with_the_budget_or_the_requested_number(
    strict: bool, blocks: int | None, done: int, spent: float, why: str
) -> None:
    rule = StoppingRule(arms=3, effect=0.01, budget_s=10.0, strict=strict, blocks=blocks)
    assert rule.over(done, spent) == why


def test_the_location_of_the_values_does_not_affect_when_to_stop() -> None:
    orders = [order_of(block, 3, 1) for block in range(12)]
    times = [[1.0 + 0.01 * ((5 * block + 3 * arm) % 7) for arm in range(3)] for block in range(12)]
    moved = [[first, 1.5 * copy, 2.5 * other] for first, copy, other in times]
    a, b = detectable(times, orders), detectable(moved, orders)
    assert a is not None
    assert b is not None
    assert a.effect == pytest.approx(b.effect)


def test_a_requested_number_of_blocks_is_measured_even_if_the_effect_is_detectable_earlier() -> None:
    found = SmallestEffect(0.001, 12)
    assert StoppingRule(arms=3, effect=0.01, budget_s=1, strict=False).enough(found)
    assert not StoppingRule(arms=3, effect=0.01, budget_s=1, strict=False, blocks=50).enough(found)
    assert not StoppingRule(arms=3, effect=0.0005, budget_s=1, strict=False).enough(found)
    assert found.units_for(0.0005) == 48
