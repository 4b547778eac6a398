"""The three cases of intervals, by each rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.ci_overlap import ALGORITHM, PROSE, RULES, TOOL, MedianInterval, case, gap

WHOLE = st.lists(st.integers(0, 8), min_size=3, max_size=3).map(sorted).map(lambda ends: MedianInterval(*ends))

WORKED = [
    # fixed, random, and the case by algorithm, prose, tool
    ((1, 2, 3), (4, 5, 6), 1, 1, 1),  # apart
    ((1, 2, 3), (3, 5, 6), 3, 3, 3),  # ends that touch are not apart
    ((1, 3, 5), (2, 4, 6), 2, 2, 2),  # both medians inside
    ((1, 3, 5), (2, 6, 7), 3, 2, 2),  # one inside: fixed's 3 in (2, 7)
    ((1, 2, 5), (4, 6, 7), 3, 3, 3),  # overlapping, none inside
    ((1, 3, 5), (3, 6, 7), 3, 2, 2),  # a median on an end: the tool counts it where random ends higher
    ((3, 6, 7), (1, 3, 5), 3, 2, 3),  # the same, exchanged: now it does not
    ((1, 3, 5), (3, 4, 5), 3, 2, 2),  # equal ends are not higher: strict, and random's 4 lies inside
    ((2, 2, 2), (2, 2, 2), 3, 2, 3),  # points: nothing is strictly inside
    ((2, 2, 2), (3, 3, 3), 1, 1, 1),
    ((0, 5, 9), (4, 5, 6), 2, 2, 2),
]


@pytest.mark.parametrize(("fixed", "random", "algorithm", "prose", "tool"), WORKED)
def test_worked_examples(
    fixed: tuple[int, int, int], random: tuple[int, int, int], algorithm: int, prose: int, tool: int
) -> None:
    pair = MedianInterval(*fixed), MedianInterval(*random)
    assert [case(*pair, rule) for rule in (ALGORITHM, PROSE, TOOL)] == [algorithm, prose, tool]


@given(WHOLE, WHOLE)
def test_algorithm_and_prose_say_the_same_when_the_orders_are_exchanged(
    fixed: MedianInterval, random: MedianInterval
) -> None:
    for rule in (ALGORITHM, PROSE):
        assert case(fixed, random, rule) == case(random, fixed, rule)


@given(WHOLE, WHOLE)
def test_the_rules_differ_only_in_what_is_inside(fixed: MedianInterval, random: MedianInterval) -> None:
    found = {rule: case(fixed, random, rule) for rule in RULES}
    assert len({each == 1 for each in found.values()}) == 1
    assert found[ALGORITHM] != 2 or found[PROSE] == found[TOOL] == 2
    assert found[TOOL] != 2 or found[PROSE] == 2
    assert (found[ALGORITHM] == 1) == (gap(fixed, random) > 0 or (fixed.low == fixed.high != random.low == random.high))


def test_the_gap_is_in_widths_of_the_wider_interval() -> None:
    assert gap(MedianInterval(0, 1, 2), MedianInterval(4, 5, 8)) == 0.5
    assert gap(MedianInterval(4, 5, 8), MedianInterval(0, 1, 2)) == 0.5
    assert gap(MedianInterval(0, 1, 4), MedianInterval(2, 5, 6)) == -0.5
    assert gap(MedianInterval(0, 1, 2), MedianInterval(2, 5, 6)) == 0
    assert gap(MedianInterval(1, 1, 1), MedianInterval(2, 2, 2)) == 0


def test_there_is_no_fourth_rule() -> None:
    with pytest.raises(ValueError, match="rule"):
        case(MedianInterval(0, 1, 2), MedianInterval(1, 2, 3), "guess")
