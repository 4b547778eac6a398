"""Every knob: a unique name, an order, documentation, and no change on a host where nothing can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.host.reader import Reader
from quiet.knobs.knob import RuleContext, Skip
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from tests.trees import plant


def test_the_names_of_the_knobs_are_unique() -> None:
    assert len({knob.name for knob in KNOBS}) == len(KNOBS)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_knob_comes_after_those_that_change_what_is_possible_for_it(name: str) -> None:
    earlier = list(BY_NAME)[: list(BY_NAME).index(name)]
    assert set(BY_NAME[name].after) <= set(earlier)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_knob_says_why_and_where_it_is_documented(name: str) -> None:
    knob = BY_NAME[name]
    assert all((knob.title, knob.why, knob.doc, knob.targets))
    assert not knob.why.endswith(".")
    assert "leave" in knob.choices
    assert len(knob.choices) + knob.numeric > 1
    assert all(number > 0 and reason for number, reason in knob.refusals.items())


@pytest.mark.parametrize("name", BY_NAME)
def test_on_a_host_where_nothing_can_be_read_a_knob_changes_nothing(name: str, tmp_path: Path) -> None:
    facts = Facts(Reader(str(plant(tmp_path, {"proc/": ""}))))
    cpus = CpuPartition(frozenset({1}), frozenset({0}), frozenset(), "")
    for choice in BY_NAME[name].choices:
        for item in BY_NAME[name].rule(RuleContext(facts, cpus, choice)):
            assert isinstance(item, Skip) or item.current is None
