"""Layouts of several processes: held or drawn, and the same draw from the same seed."""

from __future__ import annotations

import pytest

from cbench.measure import layout
from cbench.model import PLAIN, Layout
from cbench.workloads.registry import find
from quiet.errors import UsageError
from tests.cbench.running import measured

HASH = find("hash")


def test_factors_that_are_not_varied_are_constant_for_every_process() -> None:
    base = Layout(False, 100, 32)
    drawn = layout.draw(layout.plan(5, "aslr", 1, base), HASH, {"n": 7})
    assert {(place.environment, place.stack) for place, _ in drawn} == {(100, 32)}
    assert all(params == {"n": 7} for _, params in drawn)


def test_switches_are_drawn_evenly_and_sizes_on_their_alignment() -> None:
    drawn = [place for place, _ in layout.draw(layout.plan(20, "all", 1, PLAIN), HASH, {"n": 7})]
    assert sum(place.aslr for place in drawn) == 10
    assert all(place.stack % 16 == 0 and place.stack < 4096 for place in drawn)
    assert len({place.environment for place in drawn}) > 10


def test_a_seed_gives_one_draw_and_another_seed_another() -> None:
    draws = [layout.draw(layout.plan(9, "stack,environment", seed, PLAIN), HASH, {"n": 7}) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize(
    ("processes", "vary", "says"),
    [
        (0, "", "--processes 0: must be from 1 to 1,000"),
        (2, "colour", "--vary 'colour': unknown; use all or aslr, environment, stack, offset, pages"),
        (1, "aslr", "request several processes with --processes N"),
    ],
)
def test_an_impossible_plan_is_refused(processes: int, vary: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        layout.plan(processes, vary, 1, PLAIN)


def test_a_stack_that_is_too_low_is_refused() -> None:
    with pytest.raises(UsageError, match="--stack 70000: must be from 0 to 65,536 bytes"):
        layout.plan(1, "", 1, Layout(stack=70000))


def test_a_factor_that_no_workload_has_is_refused() -> None:
    with pytest.raises(UsageError, match="--vary offset: no such parameter in hash"):
        layout.check(layout.plan(2, "offset", 1, PLAIN), [HASH])


def test_all_factors_are_those_that_a_workload_has() -> None:
    plan = layout.plan(4, "all", 1, PLAIN)
    layout.check(plan, [HASH])
    assert all(params == {"n": 7} for _, params in layout.draw(plan, HASH, {"n": 7}))


@pytest.mark.slow
def test_processes_are_measured_in_turn_each_in_its_layout() -> None:
    plan = {"processes": 4, "vary": "aslr,environment,stack", "params": ["n=1000"]}
    (result,) = measured("hash", **plan)["results"]
    each = result["processes"]["each"]
    assert [row["process"] for row in each] == [0, 1, 2, 3]
    assert [row["aslr"] for row in each].count(1) == 2
    assert len({row["stack"] for row in each}) > 1
    assert len(result["trials"]) == 4 * 5
    lows = [min(result["trials"][5 * number : 5 * number + 5]) for number in range(4)]
    assert result["processes"]["lowest_range"] == max(lows) - min(lows)
    assert result["processes"]["spread"] is not None or result["clean_trials"]["count"] < 20
