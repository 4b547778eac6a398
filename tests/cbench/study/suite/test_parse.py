"""An error in a table `[suite]` is one line with the correction."""

from __future__ import annotations

import pytest

from cbench.study.config import parse
from cbench.study.suite.presets import PRESETS, Preset
from quiet.errors import UsageError
from tests.cbench.study.suite.harness import study

OWN, SEED = '["x", "{filter}"]', '["x", "{tests}", "{seed}"]'
WRONG = [
    ({"preset": '"junit"'}, "", "suite.preset: 'junit': must be one of pytest-benchmark, google-benchmark, go"),
    (
        {"discover": "[]"},
        "",
        "suite.discover: is missing: write a list of words, or set preset to one of pytest-benchmark",
    ),
    ({"program": "[]"}, "", "suite.program: is missing: write the words that start the harness"),
    ({"run": '["x"]'}, "", "suite.run: selects no tests: one of its words must contain {tests} or {order} or {filter}"),
    ({"run": '["x={tests}"]'}, "", "suite.run: {tests} must be a separate word: it expands to several"),
    ({"isolated": '"some"'}, "", "suite.isolated: 'some': must be one of both"),
    ({"isolated": "1"}, "", "suite.isolated: 1: must be true or false"),
    ({"names": "'('"}, "", "suite.names: '(': missing )"),
    ({"names": "'(a)(b)'"}, "", "suite.names: '(a)(b)': must have exactly one group"),
    ({"other": "1"}, "", "suite.other: unknown; valid here: preset, program"),
    (
        {"run": OWN},
        "design = 'random'",
        "study.design: 'random': must be subsets here: the suite runs tests in its own order",
    ),
    (
        {"run": SEED},
        "design = 'fixed'",
        "study.design: 'fixed': must be one of interleaved, shuffled, random, williams, subse",
    ),
    (
        {"run": SEED},
        "design = 'williams'",
        "study.design: 'williams': must be random here: the suite draws the order itself",
    ),
    (
        {"isolated": '"both"'},
        "design = 'shuffled'",
        "study.design: 'shuffled': must be random or williams or subsets here: iso",
    ),
    ({}, "read = 'wall'", "suite: lists its tests and reads their results itself: remove [[test]] and study.read"),
]


@pytest.mark.parametrize(("keys", "head", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_an_error_is_one_line_with_the_place_and_a_correction(keys: dict[str, str], head: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(study(head=f"repetitions = 1\n{head}", **keys), "s.toml", "/")
    assert "\n" not in str(raised.value)
    assert str(raised.value).split(": ", 1)[1].startswith(message)
    assert str(raised.value).startswith("s.toml:")


def test_a_suite_and_tests_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"remove \[\[test\]\]"):
        parse(study() + "[[test]]\nname = 'a'\ncommand = 'b'\n", "s.toml", "/")


@pytest.mark.parametrize(
    ("keys", "design"),
    [
        ({}, "interleaved"),
        ({"isolated": '"both"'}, "random"),
        ({"run": OWN}, "subsets"),
        ({"run": OWN, "isolated": '"both"'}, "subsets"),
        ({"run": OWN, "isolated": "true"}, "interleaved"),
        ({"run": SEED}, "random"),
        ({"preset": '"google-benchmark"', "run": "[]"}, "random"),
        ({"preset": '"google-benchmark"', "run": OWN}, "subsets"),
    ],
)
def test_the_default_design_is_one_that_the_harness_can_run(keys: dict[str, str], design: str) -> None:
    assert parse(study(**keys), "s.toml", "/").design == design


@pytest.mark.parametrize("preset", PRESETS, ids=[each.name for each in PRESETS])
@pytest.mark.parametrize("isolated", ["false", "true", '"both"'])
def test_each_preset_is_a_suite_that_needs_only_its_program(preset: Preset, isolated: str) -> None:

    text = f"[study]\nrepetitions = 2\n[suite]\npreset = '{preset.name}'\nprogram = ['./x']\nisolated = {isolated}\n"
    made = parse(text, "s.toml", "/").suite
    assert made is not None
    words = made.command(["a b", "c"], 7, "/r", "/o")
    assert words[0] == "./x"
    assert not [word for word in (*words, *made.discovery("/r"), *made.variables("/r").values()) if "{" in word]
