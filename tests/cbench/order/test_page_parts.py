"""The tables of a report and its facts about the study, without its figures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cbench.order import analyze, page, page_study
from cbench.order.analyze import OrderOptions
from cbench.order.page_study import StudyFacts
from cbench.order.result import OrderResult, SuiteResult
from cbench.report.page import Cell, Table
from cbench.report.text import mark
from cbench.study.example import EXAMPLE
from cbench.study.orders import plan
from cbench.study.store import Ended, Header, StudyStore
from quiet.errors import UsageError
from tests.cbench.order.pages import Outline, analysed, paged, study

NAMES = ["a", "b", "c"]
HOST = {"cpu": "Model <7>", "kernel": "6.12", "virtual": True, "governor": "performance"}


@pytest.fixture(scope="module")
def made() -> OrderResult:
    return analysed(study(NAMES))[0]


def cells(table: Table) -> list[tuple[str, str]]:
    """The lines of each cell of the rows."""
    return [(each, "") if isinstance(each, str) else (each.text, each.small) for row in table.rows for each in row]


def said(made: OrderResult) -> str:
    return "\n".join(f"{name}: {fact}" for name, fact in page_study.rows(made, StudyFacts("x")))


@pytest.mark.parametrize("many", [page.MOST_ROWS, page.MOST_ROWS + 50])
def test_every_test_is_named_however_many_there_are(many: int) -> None:
    names = [f"test {number}" for number in range(many)]
    one = study(names, n=2)
    made = analysed({key: one[key] for key in ("test", "order", "value")})[0]
    rest = page.rest(made)
    assert (rest is not None) == (many > page.MOST_ROWS)
    assert {row[0] for row in (*page.tests(made).rows, *(rest.rows if rest else ()))} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "after Bonferroni"),
        ({}, "the second line uses the chi-squared distribution"),
        ({"published": True}, "not corrected"),
        ({"published": True}, "by published ranks"),
        ({"published": True}, "at least one median lies inside"),
        ({"alpha": 0.01}, "p &lt; 0.01"),
    ],
)
def test_the_legend_says_by_which_definitions_the_table_was_made(changes: dict[str, Any], said: str) -> None:
    assert said in paged(study(["a"]), **changes)


@pytest.mark.slow
def test_symbols_and_words_of_the_table_are_explained() -> None:
    found = Outline(paged(study(NAMES)))
    explained = found.text("dt") + found.text("dd")
    assert all(word in explained for word in ("ε²", "η²", "Δ", "●", "○", "case", "median", "drift", "?", "runs for"))


def test_a_result_that_is_significant_is_marked_by_more_than_a_color(made: OrderResult) -> None:
    table = page.tests(made)
    (row,) = [row for row, yes in zip(table.rows, table.marked, strict=True) if yes]
    assert row[0] == "a"
    assert isinstance(row[2], Cell)
    assert row[2].text.endswith(f" {mark(True)}")
    assert sum(test.significant for test in made.tests.values()) == 1


def test_medians_have_their_unit(made: OrderResult) -> None:
    tests = {name: replace(made.tests[name], unit=unit) for name, unit in (("a", "µs"), ("b", "<b>"), ("c", None))}
    found = cells(page.tests(replace(made, tests=tests)))
    assert [text.partition(" ")[2] for text, small in found if small.startswith("[")] == ["µs"] * 2 + ["<b>"] * 2 + [
        ""
    ] * 2


def test_intervals_that_do_not_exist_are_reported() -> None:
    found = cells(page.tests(analysed(study(NAMES, n=1))[0]))
    assert [small for _, small in found].count("no interval below n = 6") == 6


def test_failed_trials_are_counted() -> None:
    columns = study(NAMES)
    columns["value"][:4] = [None] * 4
    made = analysed(columns)[0]
    assert {"1 failed", "2 failed"} <= {small for _, small in cells(page.tests(made))}
    assert "4 of 72 values; a failed trial excludes only itself" in said(made)


def test_predecessors_are_listed_with_the_significant_pairs_only_if_there_are_any() -> None:
    table = page.predecessors(analysed(study(NAMES, n=60))[0])
    assert table.rows
    assert all(table.marked)
    none = analysed(study(NAMES) | {"value": [7.0] * 72})[0]
    assert none.significant_pairs == "0 of 9"
    assert [str(row[-1])[-1] for row in page.predecessors(none).rows] == ["○"] * 5


@pytest.mark.slow
def test_of_very_many_pairs_those_with_the_smallest_p_are_shown_and_all_are_counted() -> None:
    names = [f"t{number}" for number in range(200)]
    made = analysed(study(names, n=150))[0]
    assert len(made.predecessors) < made.pairs
    assert max(each.p for each in made.predecessors) < 0.2  # the 1,000 smallest of more than 20,000
    of = sum(test.predecessor.labels for test in made.tests.values() if test.predecessor)
    assert re.fullmatch(rf"\d+ of {of:,}", made.significant_pairs)
    everyone = replace(made, predecessors=tuple(replace(each, significant=True) for each in made.predecessors))
    assert everyone.significant_pairs == f"at least 1,000 of {of:,}"


def test_all_pairs_of_tests_whose_order_changes_are_listed() -> None:
    names = [f"t{number}" for number in range(60)]
    columns = study(names, n=8, shift=0.5)
    made = analysed({key: columns[key] for key in ("test", "order", "value")})[0]
    first, rest = page.across(made)
    assert (made.across.changed, made.across.pairs) == (len(first.rows) + len(rest.rows), 1770)
    assert len(first.rows) == page.MOST_NAMED < made.across.changed


def test_nothing_is_reported_where_nothing_is_known() -> None:
    columns = study(["a"])
    made = analysed({key: columns[key] for key in ("test", "order", "value")})[0]
    assert not made.across.pairs
    assert not page.predecessors(made).rows
    assert not page.first_trials(made).rows
    assert "the data do not show when each run took place" in said(made)


def test_a_study_that_is_blocked_in_time_is_called_so() -> None:
    columns = study(NAMES)
    columns["run"] = [
        run + 100 * (order == "random") for run, order in zip(columns["run"], columns["order"], strict=True)
    ]
    blocked = said(analysed(columns)[0])
    assert "12 runs in fixed and 12 in random order, blocked: the orders are confounded with time (2 str" in blocked
    both = replace(analysed(study(NAMES))[0], suite=SuiteResult("go", "both"))
    assert "12 isolated and 12 in-process runs, interleaved (24 stretches of one kind)" in said(both)
    assert "interleaved (24 stretches" in said(analysed(study(NAMES))[0])


def test_the_number_of_runs_is_beside_the_difference_and_only_where_orders_are_compared(made: OrderResult) -> None:
    head = page.tests(made).head
    assert head[head.index("runs for 1 %") - 1] == Cell("Δ", "interval")
    assert "runs for 1 %" not in page.tests(analysed(study(NAMES, orders=("random",)))[0]).head


def test_medians_of_predecessors_and_first_trials_have_their_unit(made: OrderResult) -> None:
    of = replace(made, tests={name: replace(test, unit="ns") for name, test in made.tests.items()})
    for table in (page.predecessors(of), page.first_trials(of)):
        assert table.rows
        assert all(sum(str(cell).endswith(" ns") for cell in row) == 2 for row in table.rows)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The store of a study that ran for 90 minutes on a host that was quiet before its first run alone."""
    path = tmp_path / "of.db"
    source = EXAMPLE.replace('# profile = "bench" ', 'profile = "bench" ').replace('kind = "none" ', 'kind = "reboot" ')
    header = Header("order", "the <study>", 5, source, str(tmp_path), ("sort", "hash", "both"), HOST)
    with StudyStore.create(path, header, plan("interleaved", 3, 2, 5)) as store:
        for run, (quiet, lost) in enumerate(((True, 0.01), (False, 2.5))):
            verified = {"quiet": quiet, "drift": [], "cpus": {"3": {"lost_pct": lost}}}  # as host_check.look() has it
            store.begin_run(run, {}, {"boot_id": f"boot {run}", "quiet": verified})
            store.add(Ended(run, 0, 0, 1, 2, None, 0, b"", b"", {"": (1.5, "1.5")}, {}))
            store.end_run(run)
        store.end_run(2, "not reset: it did not boot")
        begin = store.header().made_ns
        store._connection.execute("UPDATE study SET ended_ns = ?", (begin + 90 * 60 * 10**9,))
    return path


def test_a_page_shows_the_known_facts_about_a_stored_study(stored: Path) -> None:
    about = page_study.about(stored)
    rows = dict(about.rows)
    assert about.name == "the <study>"
    assert rows["design"] == "interleaved, 20 repetitions, seed 5"
    assert rows["time"].endswith("UTC, took 90.0 min")
    assert rows["host"] == "Model <7>, Linux 6.12, virtual machine, governor performance"
    assert rows["reset before each run"] == "reboot"
    assert rows["runs"] == "4 planned, 2 started, 1 left out"
    assert rows["boots"] == "the runs span 2 boots of the host"
    assert rows["quiet"] == "profile bench: quiet before 1 of 2 runs, at worst 2.5 % of a CPU's time lost"


def test_of_a_file_that_is_not_a_store_only_its_name_is_known(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("test,order,value\n")
    assert page_study.about(path) == StudyFacts("data")


def test_a_page_replaces_only_a_page(tmp_path: Path) -> None:
    data, other = tmp_path / "data.csv", tmp_path / "other.db"
    rows = [f"{test},{order},{run},{run}" for test in "ab" for run in range(8) for order in ("fixed", "random")]
    data.write_text("test,order,run,value\n" + "\n".join(rows) + "\n")
    other.write_text("something else")
    for target, why in ((data, "is the data file itself"), (other, "already exists and is not a page")):
        before = target.read_bytes()
        with pytest.raises(UsageError, match=why):
            analyze.reported(OrderOptions(str(data)), str(target))
        assert target.read_bytes() == before
