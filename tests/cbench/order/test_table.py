"""The tables of `cbench order analyze`: whole in a pipe, and on a terminal never wider than it is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cbench.order import table
from tests.cbench.order.pages import NASTY, analysed, study

NAMES = ["sort", "hash", "scan"]
PLAIN = ("test", "order", "value")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The output on a terminal of some width; None: a pipe."""

    def shown(made: Any, width: int | None) -> list[str]:
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        if width is not None:
            for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm"}.items():
                monkeypatch.setenv(name, value)
        table.analysis(made)
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    return shown


def lines_with(found: list[str], name: str) -> list[str]:
    return [line for line in found if line.strip().startswith(f"{name} ")]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_on_a_terminal_no_line_is_too_long_and_no_number_is_cut(terminal: Any, width: int) -> None:
    made, _ = analysed(study(NAMES))
    found = terminal(made, width)
    assert max(len(line) for line in found) <= width
    assert not any("…" in line for line in found)
    tables = 1 if width == 200 else 2
    assert all(len(lines_with(found, name)) == tables for name in NAMES)
    assert any(f"{made.tests['sort'].median_random:,.6g}" in line for line in lines_with(found, "sort"))


def test_in_a_pipe_each_test_is_one_line_with_all_figures(terminal: Any) -> None:
    made, _ = analysed(study(NASTY, n=8))
    found = terminal(made, None)
    for name in NASTY:
        line = next(line for line in found if line.strip().startswith(f"{name} "))
        ends = made.tests[name].ci_random
        assert f"[{ends[0]:,.6g}, {ends[1]:,.6g}]" in line


def test_a_very_long_name_is_cut_in_its_middle_on_a_terminal(terminal: Any) -> None:
    made, _ = analysed(study(["begin" + "x" * 300 + "end", "other"]))
    text = "\n".join(terminal(made, 200)[2:])
    assert re.search(r"beginx+…x+end ", text)


def test_the_verdict_comes_first_and_the_words_of_the_table_are_explained(terminal: Any) -> None:
    found = terminal(analysed(study(NAMES))[0], None)
    assert found[0].startswith("order matters: 1 of 3 tests differs")
    text = "\n".join(found)
    assert "● significant in this column alone: p < 0.0167 (Bonferroni over the column)" in text
    assert "case 1: the intervals do not overlap; 2: they overlap, and each median is inside the other interval" in text
    assert "tests within the random runs; only the direct predecessor counts. p drift: test of all runs" in text


def test_columns_without_data_are_omitted(terminal: Any) -> None:
    columns = study(NAMES, n=2)
    found = terminal(analysed({key: columns[key] for key in PLAIN})[0], 80)
    text = "\n".join(found)
    assert not any(word in text for word in ("interval  ", "p position", "p drift"))
    assert "-: an order with fewer than 6 results has no interval at 95 %." in text
    assert len(lines_with(found, "sort")) == 1


@pytest.mark.slow
def test_of_many_tests_those_with_the_smallest_p_are_shown_and_the_others_counted(terminal: Any) -> None:
    columns = study([f"t{number}" for number in range(2000)], n=2)
    made, _ = analysed({key: columns[key] for key in PLAIN})
    found = terminal(made, 80)
    shown = [line.split()[0] for line in found if re.match(r" t\d+ ", line)]
    smallest = sorted(made.tests, key=lambda name: made.tests[name].p_permutation or 0)[: table.MOST]
    assert shown == smallest
    assert any("the 60 tests with the smallest p of 2,000" in line for line in found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "12 pairs of a fixed and a random run, by signed ranks"),
        ({}, "each median is inside the other interval"),
        ({"published": True}, "p < 0.05, not corrected"),
        ({"published": True}, "a median is inside the other interval"),
        ({"published": True}, "98.33 % by published ranks"),
    ],
)
def test_the_legend_says_by_which_definitions_it_was_made(terminal: Any, changes: dict[str, bool], said: str) -> None:
    assert said in " ".join(terminal(analysed(study(NAMES), **changes)[0], None))
