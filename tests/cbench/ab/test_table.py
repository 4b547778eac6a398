"""The sentences of a comparison: its outcome first, then what limits it."""

from __future__ import annotations

import random
from dataclasses import replace
from math import exp

import pytest

from cbench.ab.analyze import WITHIN_FLOOR, analyze
from cbench.ab.design import order_of
from cbench.ab.options import AbOptions, Arm
from cbench.ab.result import AbResult, ab_result
from cbench.ab.table import about, lines, percent
from cbench.external.measure import CommandSeries, Measured
from cbench.external.options import ExternalCommand
from cbench.external.result import commands_result
from cbench.model import Counter, Trial, TrialCause

NAMES = ("./old", "./old (copy)", "./new")


def report(
    blocks: int,
    slower: float = 0.0,
    second: float = 0.0,
    noise: float = 0.001,
    copy: float = 0.0,
    not_copied: str = "",
    after_new: float = 0.0,
    layouts: int = 1,
) -> AbResult:
    """Of simulated runs of 10 ms: slower, copy: log ratios of ./new and of A'; second: at the second position."""
    draw = random.Random(5)
    orders = [order_of(block, 3, 1) for block in range(blocks)]
    times: list[list[float]] = []
    for order in orders:
        values = [0.0, copy, slower]
        for place, arm in enumerate(order):
            values[arm] += (
                draw.gauss(0, noise) + second * (place == 1) + after_new * (place > 0 and order[place - 1] == 2)
            )
        times.append([round(1e7 * exp(value)) for value in values])
    counts = {"user_us": 1, "system_us": 1}
    every = tuple(
        CommandSeries(
            ExternalCommand(name, "", (name,)),
            trials=[
                Trial(int(row[arm]), 0, counts=counts, causes=(TrialCause("migration"),) if block == 0 else ())
                for block, row in enumerate(times)
            ],
        )
        for arm, name in enumerate(NAMES)
    )
    measured = Measured(every, Counter("wall", "ns", True, ""), frozenset({0}), False, frozenset(), (), "")
    options = AbOptions(arms=(Arm("./old", "./old"), Arm("./new", "./new")), folder="/", layouts=layouts)
    analysis = analyze(times, orders, layouts=layouts)
    return ab_result(
        commands_result(measured),
        options,
        analysis,
        not_copied=not_copied,
        distinct=layouts,
        ended="effect",
        seconds=2.5,
    )


def test_a_difference_is_the_first_line_and_nothing_is_advised() -> None:
    found = lines(report(30, slower=-0.0252))
    assert found[0].startswith(("./new is 2.4 % faster than ./old (2.", "./new is 2.5 % faster than ./old (2."))
    assert found[0].endswith(" %), 30 blocks in 2.5 s")
    assert found[1].startswith("  ./old: median 9.9") or found[1].startswith("  ./old: median 10")
    assert found[-2] == "disturbed: 3 of 90 trials (trials by cause: migration 3)"
    assert found[-1] == "causes are counted, not traced: `quiet why -- CMD` names the tasks"
    assert len(found) <= 14


def test_the_floor_names_the_copy_or_why_there_is_none() -> None:
    assert "./old differs from itself (a copy under another path) by at most 0.0" in lines(report(30))[3]
    line = lines(report(30, not_copied="it runs in a shell"))[3]
    assert "(run once more, because it runs in a shell) by at most" in line


def test_a_slower_second_position_is_named_and_not_called_a_difference() -> None:
    result = report(30, second=0.03)
    assert not result.differs
    found = lines(result)
    assert found[0].startswith("./new: no difference from ./old")
    (order,) = (line for line in found if line.startswith("order: "))
    assert order.startswith("order: runs at position 2 of 3 are 3.")
    assert order.endswith(" slower (p < 0.0001); each arm takes each position equally often")


def test_an_arm_that_slows_the_next_one_down_is_named_and_raises_the_floor() -> None:
    result = report(60, after_new=0.03)
    assert not result.differs
    found = lines(result)
    assert any(line.startswith("order: runs right after ./new are ") and "try --prepare" in line for line in found)
    assert any(line.endswith("the effect of the predecessor on a run") for line in found)


@pytest.mark.parametrize(
    ("result", "last"),
    [
        (report(3), "allow more time with --budget S, or more blocks with --blocks N"),
        (report(30, noise=0.01), "detecting 1 % takes about "),
        (report(30, copy=0.05), "1 % is below the noise floor; a quieter host lowers the floor: --profile bench"),
        (report(30), "causes are counted, not traced: "),
    ],
    ids=["few", "noisy", "unlike itself", "enough"],
)
def test_if_nothing_is_shown_the_last_line_gives_advice(result: AbResult, last: str) -> None:
    assert lines(result)[-1].startswith(last)


def test_the_advised_budget_is_for_the_advised_number_of_blocks() -> None:
    result = report(30, noise=0.01)
    assert result.blocks_needed is not None
    assert result.budget_needed_s is not None
    assert result.blocks_needed > 30
    assert result.budget_needed_s >= result.blocks_needed * 2.5 / 30


def test_advised_numbers_are_rounded_up_to_two_digits() -> None:
    assert [about(count) for count in (7, 43, 120, 121, 309_692)] == [7, 43, 120, 130, 310_000]


def test_shares_have_the_digits_that_matter() -> None:
    assert [percent(share) for share in (0.00351, 0.0214, 0.12, 3.0, 12.5)] == [
        "0.35 %",
        "2.1 %",
        "12.0 %",
        "300 %",
        "1,250 %",
    ]


def test_layouts_are_counted_in_the_first_line_and_explained() -> None:
    found = lines(report(24, slower=0.05, layouts=8))
    assert " slower than ./old (" in found[0]
    assert found[0].endswith(", 24 blocks of 8 layouts in 2.5 s")
    assert "layouts: 8 builds of each arm; the interval is over layouts" in found
    assert "layouts: 8 builds" not in "".join(lines(report(24)))


def test_builds_that_are_the_same_bytes_are_counted() -> None:
    result = replace(report(24, layouts=8), distinct_builds=3)
    assert "layouts: 8 builds of each arm (at least 3 distinct programs); the interval is over layouts" in lines(result)


def test_more_layouts_are_advised_where_blocks_of_the_same_would_not_help() -> None:
    result = report(24, noise=0.02, layouts=8)
    assert result.blocks_needed is None
    assert result.layouts_needed is not None
    assert result.budget_needed_s is not None
    assert result.layouts_needed > 8
    few = replace(result, layouts_needed=43, budget_needed_s=130)
    assert lines(few)[-1] == "detecting 1 % takes about 43 layouts: --layouts 43 --budget 130"
    many = replace(result, layouts_needed=2000)
    assert lines(many)[-1] == "detecting 1 % takes more than 200 layouts, the most that can be built"


def test_within_the_floor_no_difference_is_shown_beyond_the_floor() -> None:
    result = report(60, slower=0.05, copy=0.08)
    assert result.comparisons[0].outcome == WITHIN_FLOOR
    assert lines(result)[0].startswith("./new: no difference from ./old shown beyond the noise floor (")
