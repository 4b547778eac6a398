"""An analysis reports its limits: failures, tests that were not compared, missing data."""

from __future__ import annotations

import json
import random
import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cbench.cli import app
from cbench.order import verdict
from cbench.study.store import StudyStore
from quiet.errors import UsageError
from tests.cbench.order.pages import analysed
from tests.cbench.order.pages import study as made_up
from tests.cbench.order.studies import analyze, refused, write
from tests.cbench.study.storing import stored

PLAIN = "test,order,value"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.csv"


def rows(*tests: str, orders: tuple[str, ...] = ("fixed", "random"), n: int = 8) -> list[str]:
    return [f"{test},{order},{10 + number % 5}" for test, order, number in product(tests, orders, range(n))]


def shown(path: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["order", "analyze", str(path), *options])


def test_failed_trials_of_a_table_are_reported(path: Path) -> None:
    write(path, [*rows("a", "b"), "a,fixed,", "b,random,NA"], PLAIN)
    made, _ = analyze(path)
    assert made["design"]["warnings"] == ["2 of 34 trials failed"]
    assert "beware: 2 of 34 trials failed" in shown(path).stdout
    columns = {"test": ["a"] * 4, "order": ["fixed", "fixed", "random", "random"], "value": [1.0, None, 2.0, 3.0]}
    pq.write_table(pa.table(columns), path.with_suffix(".parquet"))
    assert analyze(path.with_suffix(".parquet"))[0]["design"]["warnings"] == ["1 of 4 trials failed"]


def test_a_few_negative_values_among_positive_ones_are_reported(path: Path) -> None:
    write(
        path,
        [*rows("a", "b"), "a,fixed,-1", *(f"c,{order},{n - 4}" for order in ("fixed", "random") for n in range(8))],
        PLAIN,
    )
    said = "a few values are negative: a (1 of 17); correct the data if they cannot be negative"
    assert analyze(path)[0]["design"]["warnings"] == [said]
    assert f"beware: {said}" in shown(path).stdout


def test_of_several_metrics_results_are_missing(path: Path) -> None:
    write(path, ["a,fixed,1,m", "a,random,,m", "a,random,3,m"], f"{PLAIN},metric")
    assert analyze(path)[0]["design"]["warnings"] == ["1 of 3 results are missing"]


def test_tests_that_were_not_compared_are_named_with_the_order_that_is_missing(path: Path) -> None:
    six = [f"t{number}" for number in range(6)]
    write(path, [*rows("a"), *rows(*six, orders=("fixed",)), *rows("z", orders=("random",)), "none,fixed,"], PLAIN)
    assert analyze(path)[0]["design"]["warnings"] == [
        "1 of 73 trials failed",
        "t0, t1, t2, t3, t4 and 1 more (all in --json) were not compared: no results in random order",
        "z was not compared: no results in fixed order",
        "none was not compared: no results in fixed or random order",
    ]


@pytest.mark.parametrize("lines", [rows("a", "b", orders=("fixed",)), ["a,fixed,", "a,random,"], ["a,random,1"]])
def test_where_nothing_was_compared_it_ends_with_2_and_one_line(path: Path, lines: list[str]) -> None:
    made, code = analyze(write(path, lines, PLAIN))
    assert code == 2
    assert verdict.NOTHING in made["design"]["warnings"]
    assert made["verdict"].count(verdict.NOTHING) == 1
    assert f"beware: {verdict.NOTHING}" not in made["verdict"]
    done = shown(path)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == f"{path}: nothing to compare: no test has results in both orders; measure both"
    assert "has no interval" not in done.stdout or lines[0] == "a,random,1"


def test_a_page_without_results_is_written_and_ends_with_2(path: Path, tmp_path: Path) -> None:
    write(path, rows("a", orders=("fixed",)), PLAIN)
    done = CliRunner().invoke(app, ["order", "report", str(path), "-o", str(tmp_path / "page.html")])
    assert isinstance(done.exception, UsageError)
    assert verdict.NOTHING in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("design", ["random", "williams"])
def test_a_study_without_a_fixed_order_has_its_answer_from_position_and_predecessor(
    tmp_path: Path, design: str
) -> None:
    store = stored(tmp_path / "s.db", 3, design, 24, lambda test, place, _b, draw: 100 + draw.gauss(0, 1) + 9 * place)
    made, code = analyze(store)
    assert (code, made["design"]["warnings"]) == (1, [])
    refused(store, "--value a: selects a table's column, but", "--value", "a")


def test_fixed_trials_that_all_failed_are_not_a_design_without_a_fixed_order(path: Path) -> None:
    lines = [f"{test},random,{run},{(run + at) % 3},{run % 5}" for run in range(9) for at, test in enumerate("abc")]
    head = "test,order,run,position,value"
    assert analyze(write(path, lines, head))[1] in (0, 1)
    made, code = analyze(write(path, [*lines, "a,fixed,99,0,"], head))
    assert (code, made["order_matters"], made["verdict"][0]) == (2, False, verdict.NOTHING)


def test_the_number_of_results_that_an_interval_needs_is_reported(path: Path) -> None:
    write(path, [*rows("a", n=5), *rows("b", orders=("fixed",))], PLAIN)
    needs = [each["ci_needs"] for each in analyze(path)[0]["tests"].values()]
    assert needs == [6, None]  # b has enough, and in random order nothing at all
    assert analyze(path, "--as-published")[0]["tests"]["a"]["ci_needs"] is None  # clamped


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e149, 1e-310])
def test_values_near_the_limits_of_floats_give_no_infinity(path: Path, scale: float) -> None:
    lines = [
        f"{test},{order},{run},{at},{sign * scale * (1 + 0.05 * ((run * 7 + at) % 11))!r}"
        for run, order in enumerate(["fixed", "random"] * 8)
        for at, (test, sign) in enumerate([("a", 1), ("b", -1), ("c", 1 if order == "fixed" else -1)])
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made, _ = analyze(write(path, lines, "test,order,run,position,value"))
    assert json.dumps(made, allow_nan=False)
    assert made["tests"]["c"]["significant"]
    assert shown(path).exit_code == 1


def test_a_test_that_failed_in_every_trial_is_left_out_of_the_comparisons_between_tests(path: Path) -> None:
    draw = random.Random(1)
    lines = [
        f"{test},{order},{run},{at},{'' if test == 'c' else draw.gauss(2 + (test == 'b') * (1 - 2 * (run % 2)), 0.1)}"
        for run, order in enumerate(["fixed", "random"] * 20)
        for at, test in enumerate("abc")
    ]
    made, _ = analyze(write(path, lines, "test,order,run,position,value"))
    assert made["across"]["pairs"] == made["across"]["changed"] == 1


def test_hosts_that_have_one_order_each_are_not_compared_and_it_says_why(path: Path) -> None:
    draw = random.Random(1)
    lines = [
        f"{test},{order},{draw.gauss(2, 0.1 if host == 'h' else 1)},{host}"
        for test, host, order in [
            *(("a", host, order) for host in "hk" for order in ("fixed", "random")),
            *(("b", *each) for each in (("h", "fixed"), ("k", "random"))),
        ]
        for _ in range(30)
    ]
    made, _ = analyze(write(path, lines, "test,order,value,host"))
    assert not made["order_matters"]
    assert {made["tests"]["b"][name] for name in ("p", "p_spread", "spread_ratio", "p_brunner_munzel")} == {None}
    assert "b was not compared: no host, or no pair of its neighboring runs, has results in both orders" in "; ".join(
        made["verdict"]
    )


def test_one_is_not_reported_in_the_plural(path: Path) -> None:
    made, _ = analyze(write(path, rows("a"), PLAIN))
    assert " was found in 1 test;" in made["verdict"][0]
    lines = [f"a,fixed,{number}" for number in range(9)] + [f"a,random,{number}" for number in range(100, 109)]
    made, _ = analyze(write(path, lines, PLAIN))
    assert made["verdict"][0].startswith("order matters: 1 of 1 test differs between")


@pytest.mark.parametrize("value", ["7", "0"])
def test_values_that_are_all_alike_are_called_so(path: Path, value: str) -> None:
    lines = [f"{test},{order},{value}" for test, order, _ in product("ab", ("fixed", "random"), range(9))]
    made, _ = analyze(write(path, lines, PLAIN))
    assert made["verdict"][0].endswith("was found in 2 tests; all values of a test are equal")
    assert all(each["runs_needed"] is each["detectable_pct"] is None for each in made["tests"].values())


def test_one_result_per_order_gives_no_number_of_runs(path: Path) -> None:
    made, _ = analyze(write(path, ["a,fixed,1", "a,random,2"], PLAIN))
    assert made["tests"]["a"]["runs_needed"] is None


@pytest.mark.parametrize(("moved", "said"), [(105, "5.00 % higher"), (95, "5.00 % lower")])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_verdict_states_the_direction_in_words(path: Path, moved: int, said: str, sign: int) -> None:
    """Of numbers below 0 the one that is nearer to 0 is higher."""
    lines = [
        f"a,{order},{sign * (each + (at - 4) / 100)}"
        for order, each in (("fixed", 100), ("random", moved))
        for at in range(9)
    ]
    made, _ = analyze(write(path, lines, PLAIN))
    if sign < 0:
        share, word = said.rsplit(" ", 1)
        said = f"{share} {'lower' if word == 'higher' else 'higher'}"
    assert made["verdict"][0].endswith(f": a ({said} in random order, 4.97 to 5.03 at 95 %)")


def test_with_a_shift_the_required_runs_are_shown(path: Path) -> None:
    write(path, [*rows("a"), *rows("b")], PLAIN)
    n = analyze(path, "--delta", "5")[0]["tests"]["a"]["runs_needed"]
    assert (
        f"runs of each order to detect a shift of all values by 5 %: a {n}, b {n}\n"
        in shown(path, "--delta", "5").stdout
    )
    assert "runs of each order" not in shown(path).stdout
    write(path, rows(*(f"t{number}" for number in range(12))), PLAIN)
    assert " and 2 more (all in --json)\n" in shown(path, "--delta", "5").stdout


def test_an_effect_of_a_test_further_back_is_described_but_not_tested(path: Path) -> None:
    """`d` is 14 times slower anywhere after `b`, which is after it in the fixed order."""
    draw = random.Random(6)
    lines = []
    for run in range(60):
        tests = list("dacbe")
        if run % 2:
            draw.shuffle(tests)
        for at, test in enumerate(tests):
            value = draw.gauss(100, 2) * (14 if test == "d" and "b" in tests[:at] else 1)
            lines.append(f"{test},{'random' if run % 2 else 'fixed'},{run},{at},{value}")
    made, code = analyze(write(path, lines))
    assert code == 1
    (said,) = [line for line in made["verdict"] if line.startswith("a description, not a test (only direct")]
    assert re.search(r": d is 1[34](\.\d)? times as high anywhere after b$", said)
    (described,) = made["described"]
    assert (described["test"], described["after"]) == ("d", "b")
    assert "p" not in described
    assert "described" not in analyze(path, "--as-published")[0]
    assert all(each["family"] != "earlier" for each in made["claims"])


def test_the_difference_that_other_tests_may_hide_is_reported_beside_a_finding(path: Path) -> None:
    draw = random.Random(2)
    lines = [
        f"{test},{order},{draw.gauss(105 if (test, order) == ('a', 'random') else 100, 1)}"
        for test, order, _ in product("abc", ("fixed", "random"), range(20))
    ]
    made, code = analyze(write(path, lines, PLAIN))
    assert code == 1
    least = max(made["tests"][test]["detectable_pct"] for test in "bc")
    assert f"medians of the other 2 tests: differences of {least:.2g} % or more would have been detected with a " in (
        "\n".join(made["verdict"])
    )


def test_too_few_runs_are_reported_with_a_number_that_is_enough(path: Path) -> None:
    def lines(n: int) -> list[str]:
        draw = random.Random(2)
        return [f"{t},{o},{draw.gauss(100, 1)}" for t, o, _ in product("abcdef", ("fixed", "random"), range(n))]

    first = analyze(write(path, lines(4), PLAIN))[0]["verdict"][0]
    enough = int(re.search(r"; (\d+) runs of each order are enough to compute it$", first)[1])  # type: ignore[index]
    assert "% or more would have been detected" in analyze(write(path, lines(enough), PLAIN))[0]["verdict"][0]
    assert "too few runs" in analyze(write(path, lines(enough - 1), PLAIN))[0]["verdict"][0]


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.50"), (99.99, "99.99"), (99.996, "100"), (704.22, "704"), (1523.2, "1,520")]
)
def test_percentages_of_a_hundred_and_more_have_three_significant_digits(value: float, text: str) -> None:
    assert verdict.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1605230.4, "1,605,230"), (934333, "934,333"), (0.00012345678, "0.000123457")]
)
def test_numbers_of_one_column_have_one_notation(value: float, text: str) -> None:
    assert verdict.digits(value) == text


def test_an_unfinished_study_without_a_finding_has_no_answer(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", 3, "interleaved", 12, lambda *given: given[3].gauss(100, 1))
    assert analyze(path)[1] == 0
    with StudyStore.open(path, writing=True) as store:
        store._connection.execute("UPDATE study_run SET ended_ns = NULL WHERE run > 19")
    made, code = analyze(path)
    assert (code, made["design"]["runs_left"], made["order_matters"]) == (2, 4, False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[study]\nrepetitions = 2\n", "is a study's file; run it with `cbench order run"),
        ("# mine\n[[test]]\nname = 'a'\n", "is a study's file; run it with `cbench order run"),
        ('{\n  "order_matters": true\n}\n', "is the JSON of an analysis; analyze the data"),
        ("<!DOCTYPE html>\n<html></html>\n", "is a page; analyze the data"),
    ],
)
def test_a_file_that_is_no_data_is_recognized(path: Path, text: str, why: str) -> None:
    path.write_text(text)
    refused(path, f"{path}: {why}")


def test_a_page_needs_a_name_of_a_page(path: Path, tmp_path: Path) -> None:
    write(path, rows("a", "b"), PLAIN)
    done = CliRunner().invoke(app, ["order", "report", str(path), "-o", str(tmp_path / "x.pdf")])
    assert str(done.exception) == f"-o {tmp_path / 'x.pdf'}: the page is HTML; choose a name that ends with .html"
    assert not (tmp_path / "x.pdf").exists()


def test_of_very_many_changed_pairs_those_that_are_not_named_are_counted() -> None:
    names = [f"t{number}" for number in range(60)]
    columns: dict[str, list[Any]] = {"test": [], "order": [], "value": []}
    for at, name in enumerate(names):
        for order, value in (("fixed", at), ("random", -at)):
            for each in range(8):
                for key, one in zip(columns, (name, order, 1000 + value + each / 100), strict=True):
                    columns[key].append(one)
    made, _ = analysed(columns)
    assert (made.across.changed, len(made.across.named), made.across.left_off) == (1770, 1000, 770)
    assert any(line.endswith(" and 1,765 more (1,000 in --json)") for line in made.verdict)
    assert any(" and 54 more (all in --json)" in line for line in made.verdict)
    assert analysed(made_up(["x", "y", "z"]))[0].across.left_off == 0


@pytest.mark.parametrize("pairs", [6, 8, 9, 10])
def test_runs_are_compared_in_pairs_only_where_so_many_pairs_can_show_a_difference(path: Path, pairs: int) -> None:
    lines = [
        f"{run},{test},{position},{order},{(10 if order == 'random' else 1) * (100 + (7 * run + 3 * test) % 11)}"
        for run, order in enumerate(["fixed", "random"] * pairs)
        for position, test in enumerate(range(5))
    ]
    answer, code = analyze(write(path, lines, "run,test,position,order,value"))
    assert code == 1, answer["verdict"]
    assert "5 of 5 tests differ" in answer["verdict"][0]
    assert answer["design"].get("pairs") == (pairs if pairs > 8 else None)
