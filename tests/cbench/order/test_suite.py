"""The analysis of a suite: in words, in a table, on the page, and in JSON."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cbench.cli import app
from cbench.order import verdict
from cbench.order.analyze import OrderOptions, analyzed
from cbench.order.claims import Claim
from cbench.order.result import AfterMedians
from cbench.study import orders
from cbench.study.config import parse, with_tests
from cbench.study.records import Ended, Header
from cbench.study.store import StudyStore
from tests.cbench.study.suite.harness import study

NAMES = ("a.py::fill[<x>, 1]", "a.py::find", "b.py::C::other: rate")
FILL, FIND = 0, 1


def stored(
    path: Path, isolated: str, slow: float = 8.0, better: str = "lower", unit: str = "ns", runs: int = 18
) -> Path:
    """A finished study in which `find` is slower where `fill` has run before it in the same process."""
    text = study(head=f"repetitions = {runs}\ndesign = 'random'", isolated=isolated, better=f"'{better}'")
    parsed = with_tests(parse(text, "s.toml", "/"), NAMES)
    plan = orders.plan(parsed.design, len(NAMES), parsed.repetitions, parsed.seed)
    if isolated == '"both"':
        plan = orders.with_isolated(plan, parsed.seed)
    draw = random.Random(3)
    header = Header("order", "s", parsed.seed, text, "/", NAMES, {})
    with StudyStore.create(path, header, plan) as store:
        store._connection.execute("PRAGMA synchronous=OFF")
        for number, run in enumerate(plan):
            store.begin_run(number, {}, {})
            trials = []
            for position, test in enumerate(run.order):
                alone = isolated == "true" or run.kind == orders.ISOLATED
                after = not alone and test == FIND and FILL in run.order[:position]
                value = draw.gauss(100, 1) * (slow if after else 1)
                results = {"": {"unit": unit, "values": [value]}}
                values = {"": (value, repr(value))}
                trials.append(Ended(number, position, test, 0, 1, None, 0, b"", b"", values, {"results": results}))
            store.add_run(number, trials)
        store.finish()
    return path


def said(*arguments: str | Path) -> tuple[str, int]:
    done = CliRunner().invoke(app, ["order", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout, done.exit_code


def test_the_first_line_names_the_test_that_ran_earlier_and_how_much_slower_it_makes_the_other(tmp_path: Path) -> None:
    lines, code = said("analyze", stored(tmp_path / "s.db", "false"))
    first = lines.splitlines()[0]
    assert code == 1
    assert first.startswith("order matters: earlier tests in the same process have an effect: a.py::find is 8")
    assert first.endswith("times slower after a.py::fill[<x>, 1]")


def test_carry_over_without_a_difference_of_the_medians_is_in_the_first_line(tmp_path: Path) -> None:
    result = analyzed(OrderOptions(stored(tmp_path / "s.db", '"both"')))
    (earlier,) = (claim for claim in result.claims if claim.family == "earlier")
    spread = Claim("spread", earlier.level, (NAMES[FIND],), ())
    first, second, *_ = verdict.verdict(replace(result, claims=(spread, earlier)))
    assert ", but earlier tests in the same process have an effect: a.py::find is " in first
    assert second.startswith("one process for all changes how much results vary: ")


@pytest.mark.parametrize(("times", "said"), [(1410.9, "1,410 times"), (8.123, "8.12 times"), (1.04, "4 %")])
def test_factors_are_said_without_an_exponent(times: float, said: str) -> None:
    medians = AfterMedians("b", "a", 9, 100 * times, 100, None)
    assert verdict.influenced(medians, True, "") == f"b is {said} slower after a"


@pytest.mark.parametrize(
    ("slow", "better", "unit", "words"),
    [
        (8, "lower", "ns", "times slower after"),
        (0.125, "lower", "second", "times faster after"),
        (0.125, "higher", "ops/s", "as high after"),
        (8, "lower", "B/op", " times as high after"),
    ],
)
def test_slower_and_faster_are_used_only_for_times(
    slow: float, better: str, unit: str, words: str, tmp_path: Path
) -> None:
    lines, _ = said("analyze", stored(tmp_path / "s.db", "false", slow, better, unit))
    assert words in lines.splitlines()[0]


def test_isolated_tests_have_no_carry_over(tmp_path: Path) -> None:
    lines, code = said("analyze", stored(tmp_path / "s.db", "true"))
    assert (code, lines.splitlines()[0].startswith("no effect of the position")) == (0, True)


def test_both_reports_the_tests_that_differ_and_a_table_of_their_medians(tmp_path: Path) -> None:
    data = stored(tmp_path / "s.db", '"both"')
    lines, code = said("analyze", data)
    assert code == 1
    first, second, third, *_ = lines.splitlines()
    assert first.startswith("carry-over: earlier tests in the same process have an effect: a.py::find is ")
    assert second.startswith("1 of 3 tests differs between an isolated process and one process for all: a.py::find (")
    assert third.endswith(" times as large in one process)")
    assert "isolated (ns)" in lines
    assert "p adjusted" in lines
    table = [line.split() for line in lines.splitlines() if line.strip().startswith(NAMES[FIND])]
    assert table[0][-2:] == ["a.py::fill[<x>,", "1]"]
    assert "fixed" not in lines
    found = json.loads(said("analyze", data, "--json")[0])
    carried = {each["test"]: each for each in found["suite"]["carry_over"]}
    assert [name for name, each in carried.items() if each["significant"]] == [NAMES[FIND]]
    assert carried[NAMES[FIND]]["after"] == NAMES[FILL]
    assert carried[NAMES[FIND]]["isolated"] == found["tests"][NAMES[FIND]]["median_fixed"]
    assert found["tests"][NAMES[FIND]]["unit"] == "ns"


def test_with_one_kind_of_runs_the_tables_and_the_legend_compare_nothing(tmp_path: Path) -> None:
    """Three tests: position and predecessor are one family of six, and drift is one of three."""
    lines, _ = said("analyze", stored(tmp_path / "s.db", "false"), "--delta", "5")
    assert (
        "● significant in this column alone: p position and p predecessor < 0.00833, p drift < 0.0167 "
        "(Bonferroni over the column, or over both columns together).\n"
    ) in lines
    (head,) = [line for line in lines.splitlines() if line.strip().startswith("test ")]
    assert head.split() == [
        "test",
        "n",
        "random",
        "(ns)",
        "interval",
        "p",
        "position",
        "p",
        "predecessor",
        "p",
        "drift",
    ]
    assert not any(word in lines for word in ("ε²", "Hodges", "0 + 18", "runs of each order"))
    assert (
        "--delta: not applicable: the number of runs is for a comparison of two orders, and no test was compared"
        in lines
    )
    both, _ = said("analyze", stored(tmp_path / "t.db", '"both"'), "--delta", "5")
    assert "pairs of an isolated and an in-process run to detect a shift of all values by 5 %: a.py" in both


def test_with_too_few_runs_for_any_pair_the_verdict_reports_how_many_are_needed(tmp_path: Path) -> None:
    """Six ordered pairs at 0.0375: 12/C(11, 5) is below it, and 12/C(10, 5) is not."""
    few = "; too few runs for any pair of tests to be significant: about 11 are needed"
    none = "no effect of the position in the run, of the direct predecessor or of earlier tests was found in 3 tests"
    for runs, end in ((5, few), (10, few), (11, "")):
        lines, code = said("analyze", stored(tmp_path / f"{runs}.db", "true", runs=runs))
        assert (lines.splitlines()[0], code) == (none + end, 0)


def test_a_study_of_tests_has_no_key_of_suites(tmp_path: Path) -> None:
    from tests.cbench.study.storing import stored as of_tests

    data = of_tests(tmp_path / "s.db", 3, "random", 6, lambda *_: random.random())
    assert "suite" not in json.loads(said("analyze", data, "--json")[0])


@pytest.mark.slow
def test_the_page_has_both_tables_and_names_the_two_kinds_of_runs(tmp_path: Path) -> None:
    page = tmp_path / "s.html"
    said("report", stored(tmp_path / "s.db", '"both"'), "-o", page)
    text = page.read_text()
    assert "Carry-over in the suite&#39;s process" in text or "Carry-over in the suite's process" in text
    assert (
        "The medians of each test in a separate process (isolated) and in one process for all tests (in-process)."
        in text
    )
    assert "a.py::fill[&lt;x&gt;, 1]" in text
    assert "Isolated against in-process" in text
    assert "<x>" not in text
    said("report", stored(tmp_path / "t.db", "true"), "-o", page)
    assert "The medians of each test in a separate process" not in page.read_text()
