"""The words of a suite's commands: the replacements of placeholders, and that every name is taken literally."""

from __future__ import annotations

import re

import pytest

from cbench.study.config import parse
from cbench.study.suite.suite import Suite, expression
from tests.cbench.study.suite.harness import NAMES, study

NASTY = (*NAMES, "a.b*c+d?", "x{2}|y", "^$\\(z)", "BM_copy<int, 3>/8")


def suite(**keys: str) -> Suite:
    made = parse(study(**keys), "s.toml", "/").suite
    assert made is not None
    return made


def test_each_name_is_one_word_in_the_order_given() -> None:
    words = suite().command(NAMES, 1, "/r", "/o")
    assert words == ["python3", "harness.py", "run", "/r", *NAMES]


def test_a_placeholder_within_a_name_is_not_replaced() -> None:
    words = suite(run='["x", "--filter={filter}", "{results}"]').command(["{results}{seed}"], 1, "/r", "/o")
    assert words == ["x", "--filter=^(\\{results}\\{seed})$", "/r"]


@pytest.mark.parametrize("name", NASTY)
def test_a_filter_matches_exactly_the_names_selected(name: str) -> None:
    for other in NASTY:
        assert bool(re.fullmatch(expression([name]), other)) == (name == other)
    assert all(re.fullmatch(expression(NASTY), each) for each in NASTY)


def test_a_filter_contains_no_escape_that_posix_leaves_undefined() -> None:
    """libstdc++ refuses a backslash before ], } and letters in extended expressions, which google/benchmark uses."""
    assert expression(["a: [x] {y}-z/8"]) == "^(a: \\[x] \\{y}-z/8)$"


def test_a_file_of_names_has_one_per_line_with_the_escapes_that_the_harness_needs() -> None:
    catch2 = suite(preset='"catch2"', program='["./c"]', discover='["x"]', run='["{program}", "{order}", "{seed}"]')
    assert catch2.order_file(["one, [x]", "two"]) == "one\\, \\[x\\]\ntwo\n"
    assert suite(run='["x", "{order}"]').order_file(["one, [x]"]) == "one, [x]\n"


@pytest.mark.parametrize(
    ("run", "control"),
    [
        ('["x", "{tests}"]', "given"),
        ('["x", "@{order}"]', "given"),
        ('["x", "-f={filter}"]', "own"),
        ('["x", "{filter}", "{seed}"]', "drawn"),
    ],
)
def test_the_placeholders_determine_who_decides_the_order(run: str, control: str) -> None:
    head = "repetitions = 1\ndesign = 'random'"
    if control == "own":
        head = "repetitions = 1"
    made = parse(study(head=head, run=run), "s.toml", "/").suite
    assert made is not None
    assert made.control == control
