"""docs/knobs.md and `quiet explain` say of every knob and kernel parameter what the code has, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet import render, shapes
from quiet.boot.parameters import PARAMETERS
from quiet.boot.words import name
from quiet.knob import Knob
from quiet.knobs import BY_NAME, KNOBS
from quiet.profile import Profile, load

PAGE = (Path(__file__).parents[2] / "docs" / "knobs.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables of one part of the page, without the heads."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def at_boot(profile: Profile, parameter: str) -> str:
    words = [word for word in profile.boot if name(word) == name(parameter)]
    return f"`{words[0]}`" if words else ""


def test_the_page_has_every_knob_once() -> None:
    assert sorted(row[0].strip("`") for row in rows("At run time")) == sorted(BY_NAME)


def test_the_page_says_what_a_knob_is_and_what_the_profiles_choose() -> None:
    bench, strict = load("bench").knobs, load("strict").knobs
    for knob, what, in_bench, in_strict, also in rows("At run time"):
        found = BY_NAME[knob.strip("`")]
        assert (what, in_bench, in_strict) == (found.title, bench[found.name], strict[found.name]), knob
        assert also, knob


def test_the_page_has_every_kernel_parameter_with_its_reason_and_the_profiles_choices() -> None:
    told = rows("On the kernel command line")
    expected = [
        [f"`{item.name}`", item.why, at_boot(load("bench"), item.name), at_boot(load("strict"), item.name)]
        for item in PARAMETERS
    ]
    assert told == expected


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_explain_tells_order_entanglement_targets_and_risk(knob: Knob, capsys: pytest.CaptureFixture[str]) -> None:
    told = shapes.knob(knob)
    assert (told["after"], told["targets"], told["why"]) == (list(knob.after), knob.targets, knob.why)
    assert (told["risk"], told["entangled"]) == (knob.risk or None, knob.moves or None)
    assert bool(knob.moves) == (knob.entangled is not BY_NAME["aslr"].entangled)
    render.explain(knob, [])
    words = " ".join(capsys.readouterr().out.split())
    assert all(text in words for text in (knob.why, knob.targets, knob.moves, knob.risk, *knob.after))
