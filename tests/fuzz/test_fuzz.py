"""A short part of `make fuzz`: damaged input of each kind ends in a documented exit code and one line."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.__main__ import run
from tests.fuzz.execute import Outcome, faults
from tests.fuzz.kinds import KINDS
from tests.fuzz.seeds import Seeds

SEED, CASES, MOST_S = 20261123, 25, 60.0


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds(tmp_path_factory.mktemp("fuzz") / "seeds")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [make.__name__ for make in KINDS])
def test_damaged_input_gets_one_line_and_a_documented_exit_code(seeds: Seeds, kind: str) -> None:
    cases = 4 if kind == "user_code" else CASES
    tally = run(seeds, SEED, iter(range(cases)), time.monotonic() + MOST_S, kind)
    assert tally.cases[kind] > 0
    assert tally.broken == []


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Outcome(1, "", "Traceback (most recent call last):\n", False, False), "traceback"),
        (Outcome(2, "", "quiet: error: internal error: KeyError: 1\n", False, False), "internal error"),
        (Outcome(-9, "", "", True, True), "hang"),
        (Outcome(5, "", "", False, False), "exit code 5"),
        (Outcome(2, "", "", False, False), "0 error lines"),
        (Outcome(0, "", "x" * 501, False, False), "long line"),
        (Outcome(0, "\x1b]0;t", "", False, False), "steers the terminal: ['\\x1b']"),
    ],
)
def test_every_rule_can_be_broken(outcome: Outcome, fault: str) -> None:
    assert faults(outcome) == [fault]


def test_output_of_measured_code_is_exempt_and_cbenchs_messages_are_judged() -> None:
    said = "a.c:1: error: no\n\x1b]0;t" + "x" * 501 + "\ncbench: error: "
    assert faults(Outcome(2, "", f"{said}a.c: does not compile\n", False, False), foreign=True) == []
    assert faults(Outcome(2, "", f"{said}\x1b\n", False, False), foreign=True) == ["steers the terminal: ['\\x1b']"]


def test_a_clean_end_breaks_no_rule() -> None:
    assert faults(Outcome(2, "", "quiet: error: no such file\n", False, False)) == []
    assert faults(Outcome(0, "a\tb\n", "", False, False)) == []
