"""Claims in simulated comparisons; tests/error_rates has the rates themselves."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest

from cbench.ab.analyze import (
    FASTER,
    SLOWER,
    TOO_FEW,
    WITHIN_FLOOR,
    BlockAnalysis,
    analyze,
    detectable,
    fewest_layouts,
)
from cbench.ab.design import order_of
from tests.cbench.ab.simulated import Simulated, heavy_tailed, skewed

STUDIES = 25


def claims(analysis: BlockAnalysis) -> bool:
    return any(each.outcome in (FASTER, SLOWER) for each in analysis.arms)


@pytest.mark.slow
@pytest.mark.parametrize(
    "simulated",
    [
        Simulated(),
        Simulated(blocks=12),
        Simulated(arms=5, budget=60),
        Simulated(noise=heavy_tailed, budget=60),
        Simulated(noise=skewed, budget=60),
        Simulated(drift=0.01),
        Simulated(second=0.03),
        Simulated(after_b=0.03, budget=60),
        Simulated(layouts=6, layout=0.03, blocks=60),
        Simulated(layouts=10, layout=0.03, blocks=100),
        Simulated(layouts=12, layout=0.03, blocks=12),
    ],
    ids=[
        *("quiet", "few", "five arms", "heavy tails", "skewed", "drift", "position", "predecessor"),
        *("six layouts", "ten layouts", "a block a layout"),
    ],
)
def test_identical_arms_are_not_called_different(simulated: Simulated) -> None:
    assert sum(claims(simulated.analysis(number)) for number in range(STUDIES)) <= 1


@pytest.mark.slow
def test_a_difference_of_one_percent_is_found_at_noise_of_one_percent() -> None:
    found = [Simulated(b=0.01).analysis(number).arms[0] for number in range(STUDIES)]
    assert sum(each.outcome == SLOWER for each in found) >= 0.6 * STUDIES
    assert sum(each.shift.low <= 0.01 <= each.shift.high for each in found) >= 0.8 * STUDIES


@pytest.mark.slow
def test_the_difference_is_found_also_where_the_second_position_is_slower() -> None:
    found = [Simulated(b=0.02, second=0.03, blocks=60).analysis(number) for number in range(STUDIES)]
    assert sum(claims(each) for each in found) >= 0.8 * STUDIES


def test_a_slower_second_position_is_named_with_its_effect() -> None:
    for number in range(10):
        position = Simulated(second=0.03, blocks=36).analysis(number).position
        assert position is not None
        assert position.named
        assert position.at == 1
        assert position.shift == pytest.approx(0.03, abs=0.008)


def test_an_arm_that_slows_its_successor_down_is_named_and_raises_the_floor() -> None:
    for number in range(10):
        analysis = Simulated(after_b=0.03, blocks=60).analysis(number)
        assert analysis.predecessor is not None
        assert analysis.predecessor.named
        assert analysis.predecessor.at == 2
        assert analysis.predecessor.shift == pytest.approx(0.03, abs=0.012)
        assert analysis.raised
        assert not claims(analysis)


def test_without_effects_of_the_order_they_are_rarely_named() -> None:
    found = [Simulated(blocks=24).analysis(number) for number in range(40)]
    named = [each.position and each.predecessor and (each.position.named or each.predecessor.named) for each in found]
    assert sum(map(bool, named)) <= 6  # 5 % of 40 are 2


def test_a_difference_between_a_program_and_its_copy_is_never_claimed() -> None:
    for number in range(10):
        analysis = Simulated(b=0.02, copy=0.02, blocks=60).analysis(number)
        assert analysis.arms[0].outcome == WITHIN_FLOOR
        assert analysis.floor > 0.015
        assert analysis.unlike_itself > 0.01


def rows(blocks: int, slower: float) -> tuple[list[list[float]], list[tuple[int, ...]]]:
    times = [[1.0 + 0.001 * ((3 * block + arm) % 5) for arm in range(3)] for block in range(blocks)]
    return [[a, copy, b * exp(slower)] for a, copy, b in times], [order_of(block, 3, 1) for block in range(blocks)]


def test_no_difference_below_a_large_floor_is_claimed() -> None:
    times, orders = rows(12, -0.8)
    for block, row in enumerate(times):
        row[1] *= exp(0.6 + 0.01 * (block % 3))
    analysis = analyze(times, orders)
    assert analysis.arms[0].shift.high < -analysis.floor
    assert 1 - exp(analysis.arms[0].shift.high) < exp(analysis.floor) - 1
    assert analysis.arms[0].outcome == WITHIN_FLOOR


def test_five_blocks_are_too_few_for_any_claim() -> None:
    analysis = analyze(*rows(5, 0.5))
    assert analysis.arms[0].outcome == TOO_FEW
    assert analysis.detectable is None
    assert analysis.position is None
    assert analysis.predecessor is None


def test_a_large_difference_shows_in_ten_blocks() -> None:
    assert analyze(*rows(10, 0.5)).arms[0].outcome == SLOWER
    assert analyze(*rows(10, -0.5)).arms[0].outcome == FASTER


def test_times_without_any_noise_are_analyzed() -> None:
    times, orders = [[5.0, 5.0, 5.0]] * 12, [order_of(block, 3, 1) for block in range(12)]
    analysis = analyze(times, orders)
    assert not claims(analysis)
    assert analysis.floor == 0
    found = detectable(times, orders)
    assert found is not None
    assert found.effect == 0


@pytest.mark.slow
def test_an_interval_over_layouts_includes_their_variance() -> None:
    simulated = Simulated(b=0.01, layouts=10, layout=0.02, blocks=100)
    found = [simulated.analysis(number).arms[0].shift for number in range(STUDIES)]
    assert sum(each.low <= 0.01 <= each.high for each in found) >= 0.8 * STUDIES
    conditional = [replace(simulated, layout=0.0).analysis(number).arms[0].shift for number in range(STUDIES)]
    assert sum(each.half_width for each in found) > 3 * sum(each.half_width for each in conditional)


@pytest.mark.slow
def test_a_difference_that_all_layouts_have_is_found() -> None:
    found = [Simulated(b=0.1, layouts=10, layout=0.02, blocks=60).analysis(number) for number in range(STUDIES)]
    assert sum(claims(each) for each in found) >= 0.9 * STUDIES
    assert {(each.blocks, each.layouts, each.units) for each in found} == {(60, 10, 10)}


def test_more_blocks_of_the_same_layouts_do_not_replace_more_layouts() -> None:
    few, many = (Simulated(layouts=8, layout=0.03, blocks=blocks).analysis(1).detectable for blocks in (48, 480))
    assert few is not None
    assert many is not None
    assert many.effect > few.effect / 2  # the blocks are ten times as many
    assert many.units == 8
    assert many.units_for(many.effect / 2) == 32


def test_layouts_are_too_few_where_no_level_is_attained() -> None:
    assert [fewest_layouts(arms) for arms in (3, 4, 6, 21)] == [6, 7, 8, 10]
    assert Simulated(b=0.5, layouts=5, blocks=100).analysis(1).arms[0].outcome == TOO_FEW
    assert Simulated(b=0.5, layouts=6, blocks=100).analysis(1).arms[0].outcome == SLOWER


def test_layouts_without_a_block_are_not_counted() -> None:
    analysis = analyze(*rows(7, 0.5), layouts=10)
    assert (analysis.blocks, analysis.layouts) == (7, 7)
