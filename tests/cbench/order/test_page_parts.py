"""The tables of a report and what it says of the study, without its figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cbench.order import analyze, page_study, page_tables
from cbench.order.page_study import StudyFacts
from cbench.report.page_parts import table
from cbench.study.example import EXAMPLE
from cbench.study.orders import plan
from cbench.study.store import Ended, Header, StudyStore
from quiet.errors import UsageError
from tests.cbench.order.pages import NASTY, Outline, analysed, study

NAMES = ["a", "b", "c"]
HOST = {"cpu": "Model <7>", "kernel": "6.12", "virtual": True, "governor": "performance"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return analysed(study(NAMES))[0]


def test_names_are_shown_and_not_obeyed() -> None:
    found = Outline(page_tables.tests(analysed(study(NASTY))[0]))
    assert set(NASTY) <= {text for tag, text in found.texts if tag == "th"}


@pytest.mark.parametrize("many", [page_tables.MOST_ROWS, page_tables.MOST_ROWS + 50])
def test_every_test_is_named_however_many_there_are(many: int) -> None:
    names = [f"test {number}" for number in range(many)]
    one = study(names, n=2)
    text = page_tables.tests(analysed({key: one[key] for key in ("test", "order", "value")})[0])
    assert set(names) <= {words for tag, words in Outline(text).texts if tag == "th"}
    assert ("The other 50 tests" in text) == (many > page_tables.MOST_ROWS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"correction": "holm"}, "after Holm"),
        ({"correction": "none"}, "not corrected"),
        ({"correction": "bh"}, "after Benjamini and Hochberg"),
        ({"intervals": "normal"}, "by normal ranks"),
        ({"case": "prose"}, "at least one median lies inside"),
        ({"level": "99"}, "99 %"),
        ({"alpha": 0.01}, "p &lt; 0.01"),
    ],
)
def test_the_table_says_by_which_definitions_it_was_made(changes: dict[str, Any], said: str) -> None:
    assert said in page_tables.tests(analysed(study(["a"]), **changes)[0])


def test_symbols_and_words_of_the_table_are_explained(made: dict[str, Any]) -> None:
    found = Outline(page_tables.tests(made))
    explained = found.text("dt") + found.text("dd")
    assert all(word in explained for word in ("ε²", "η²", "Δ", "●", "○", "case", "median", "drift", "?", "runs for"))


def test_a_result_that_is_significant_is_marked_by_more_than_a_colour(made: dict[str, Any]) -> None:
    text = page_tables.tests(made)
    row = text[text.index('<tr class="yes">') :].split("</tr>")[0]
    assert ">a</th>" in row
    assert " ●<small>" in row
    assert text.count('<tr class="yes">') == sum(each["significant"] for each in made["tests"].values()) == 1


def test_medians_have_their_unit(made: dict[str, Any]) -> None:
    units = {"a": {"unit": "µs"}, "b": {"unit": "<b>"}, "c": {}}
    tests = {name: each | units[name] for name, each in made["tests"].items()}
    text = page_tables.tests(made | {"tests": tests})
    assert text.count(" µs<small>") == 2
    assert text.count(" &lt;b&gt;<small>") == 2


def test_intervals_that_do_not_exist_are_said() -> None:
    text = page_tables.tests(analysed(study(NAMES, n=1))[0])
    assert text.count("no interval below n = 6") == 6


def test_failed_trials_are_counted() -> None:
    columns = study(NAMES)
    columns["value"][:4] = [None] * 4
    text = page_tables.tests(analysed(columns)[0])
    assert "1 failed" in text
    assert "2 failed" in text
    said = page_study.section(analysed(columns)[0], StudyFacts("x"))
    assert "4 of 72 values; a failed trial counts as missing" in said


def test_what_ran_before_is_listed_with_the_significant_pairs_only_where_there_are_any() -> None:
    text = page_tables.predecessors(analysed(study(NAMES, n=60))[0])
    assert "Significant after Holm over all pairs: " in text
    assert all("●" in row for row in text.split("<tr")[2:])
    none = page_tables.predecessors(analysed(study(NAMES) | {"value": [7.0] * 72})[0])
    assert "Significant after Holm over all pairs: 0 of 9. Those with the smallest p:" in none
    assert none.count("○</td>") == 5


def test_of_very_many_pairs_those_with_the_smallest_p_are_shown_and_all_are_counted() -> None:
    names = [f"t{number}" for number in range(200)]
    made = analysed(study(names, n=150))[0]
    assert not page_tables.all_pairs(made)
    assert max(each["p"] for each in made["predecessors"]) < 0.2  # the 1,000 smallest of more than 20,000
    text = page_tables.predecessors(made)
    of = sum(each["predecessor"]["labels"] for each in made["tests"].values())
    assert re.search(rf"Significant after Holm over all pairs: \d+ of {of:,}\. Those", text)
    assert "at least" not in text
    everyone = made | {"predecessors": [each | {"significant": True} for each in made["predecessors"]]}
    assert page_tables.pairs(everyone) == f"at least 1,000 of {of:,}"


def test_pairs_of_tests_whose_order_changes_are_all_there() -> None:
    names = [f"t{number}" for number in range(60)]
    columns = study(names, n=8, shift=0.5)
    made = analysed({key: columns[key] for key in ("test", "order", "value")})[0]
    text = page_tables.across(made)
    assert made["across"]["changed"] > page_tables.MOST_NAMED
    assert text.count("</th><td") == len(made["across"]["named"])
    assert f"{made['across']['changed']:,} of 1,770 comparisons" in text


def test_where_nothing_is_known_nothing_is_said() -> None:
    columns = study(["a"])
    made = analysed({key: columns[key] for key in ("test", "order", "value")})[0]
    assert page_tables.across(made) == page_tables.predecessors(made) == page_tables.first_trials(made) == ""
    assert "the data do not say in which order the runs came" in page_study.section(made, StudyFacts("x"))


def test_a_study_that_is_blocked_in_time_is_called_so() -> None:
    columns = study(NAMES)
    columns["run"] = [
        run + 100 * (order == "random") for run, order in zip(columns["run"], columns["order"], strict=True)
    ]
    said = page_study.section(analysed(columns)[0], StudyFacts("x"))
    assert "12 runs in fixed and 12 in random order, blocked: the orders are confounded with time (2 stretches" in said
    assert "interleaved (24 stretches" in page_study.section(analysed(study(NAMES))[0], StudyFacts("x"))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The store of a study that ran for 90 minutes on a host that was quiet before its first run alone."""
    path = tmp_path / "of.db"
    source = EXAMPLE.replace('# profile = "bench" ', 'profile = "bench" ').replace('kind = "none" ', 'kind = "reboot" ')
    header = Header("order", "the <study>", 5, source, str(tmp_path), ("sort", "hash", "both"), HOST)
    with StudyStore.create(path, header, plan("interleaved", 3, 2, 5)) as store:
        for run, (quiet, lost) in enumerate(((True, 0.01), (False, 2.5))):
            noise = {"cpus": {"3": {"lost_pct": lost}}}
            store.begin_run(run, {}, {"boot_id": f"boot {run}", "quiet": {"quiet": quiet, "drift": [], "noise": noise}})
            store.add(Ended(run, 0, 0, 1, 2, None, 0, b"", b"", {"": (1.5, "1.5")}, {}))
            store.end_run(run)
        store.end_run(2, "not reset: it did not boot")
        begin = store.header().made_ns
        store._connection.execute("UPDATE study SET ended_ns = ?", (begin + 90 * 60 * 10**9,))
    return path


def test_a_store_says_what_is_known_of_its_study(stored: Path) -> None:
    about = page_study.about(stored)
    rows = dict(about.rows)
    assert about.name == "the <study>"
    assert rows["design"] == "interleaved, 20 repetitions, seed 5"
    assert rows["time"].endswith("UTC, took 90.0 min")
    assert rows["host"] == "Model <7>, Linux 6.12, virtual machine, governor performance"
    assert rows["reset before each run"] == "reboot"
    assert rows["runs"] == "4 planned, 2 begun, 1 left out"
    assert rows["boots"] == "the runs lie in 2 boots of the host"
    assert rows["quiet"] == "profile bench: quiet before 1 of 2 runs, at worst 2.5 % of a CPU's time lost"


def test_what_is_known_of_a_study_is_shown_and_not_obeyed(stored: Path, made: dict[str, Any]) -> None:
    assert "Model &lt;7&gt;" in page_study.section(made, page_study.about(stored))


def test_of_a_file_that_is_no_store_only_its_name_is_known(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("test,order,value\n")
    assert page_study.about(path) == StudyFacts("data")


def test_a_table_has_heads_for_its_columns_and_rows() -> None:
    found = Outline(table(("one", "two", "three"), [("a", "b", "1")], names=2))
    scopes = [attrs.get("scope") for tag, attrs in found.tags if tag == "th"]
    assert scopes == ["col", "col", "col", "row"]
    assert [attrs.get("class") for tag, attrs in found.tags if tag == "td"] == ["name", None]


def test_a_page_takes_the_place_of_a_page_only(tmp_path: Path) -> None:
    data, other = tmp_path / "data.csv", tmp_path / "other.db"
    rows = [f"{test},{order},{run},{run}" for test in "ab" for run in range(8) for order in ("fixed", "random")]
    data.write_text("test,order,run,value\n" + "\n".join(rows) + "\n")
    other.write_text("something else")
    for target, why in ((data, "is the data itself"), (other, "is there already and is no page")):
        before = target.read_bytes()
        with pytest.raises(UsageError, match=why):
            analyze.reported(analyze.OrderAnalysisRequest(str(data)), str(target))
        assert target.read_bytes() == before
