"""`cbench order plan`: the tests and runs that `run` would measure, and remarks about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cbench.study.store import StudyStore
from tests.cbench.order.studies import analyze, write
from tests.cbench.study.running import order, study, written
from tests.cbench.study.suite import harness


def plan(folder: Path, *options: str) -> dict[str, Any]:
    done = order("plan", "s.toml", "--json", *options, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_the_planned_runs_are_those_that_run_stores(tmp_path: Path) -> None:
    written(tmp_path, study(dict.fromkeys("abcdef", "echo 1"), "repetitions = 5"))
    planned = plan(tmp_path)
    assert not (tmp_path / "s.db").exists()
    assert order("run", "s.toml", folder=tmp_path).returncode == 0
    with StudyStore.open(tmp_path / "s.db") as store:
        names = store.header().tests
        measured = [[names[test] for test in run.order] for run in store.runs()]
    assert [run["tests"] for run in planned["runs"]] == measured
    assert planned["trials"] == 60


def test_another_host_gets_other_orders(tmp_path: Path) -> None:
    written(tmp_path, study(dict.fromkeys("abcdef", "echo 1"), "repetitions = 5"))
    one, other, again = (plan(tmp_path, "--host", host)["runs"] for host in ("n1", "n2", "n1"))
    assert one != other
    assert one == again


def test_the_tests_of_a_suite_are_listed_by_the_suite(tmp_path: Path) -> None:
    harness.written(tmp_path)
    written(tmp_path, harness.study(head="repetitions = 8", isolated="'both'"))
    planned = plan(tmp_path)
    assert [test["name"] for test in planned["tests"]] == list(harness.NAMES)
    assert {run["kind"] for run in planned["runs"]} == {"isolated", "random"}
    assert planned["words"] == []


def test_the_remark_about_too_few_runs_agrees_with_the_analysis(tmp_path: Path) -> None:
    for runs in range(2, 8):
        written(tmp_path, study({"a": "echo 1", "b": "echo 2"}, f"repetitions = {runs}"))
        rows = [
            (test, kind, 2 * run + (kind == "random"), place, 100 + run / 16 + (9 if kind == "random" else 0))
            for run in range(runs)
            for kind in ("fixed", "random")
            for place, test in enumerate("ab")
        ]
        _, code = analyze(write(tmp_path / "x.csv", rows), "--unpaired")
        words = plan(tmp_path)["words"]
        assert bool(words) == (code == 0), runs
        if words:
            assert words[0].endswith("at least 5 of each are needed")


@pytest.mark.slow
def test_after_a_run_the_duration_is_known_and_the_store_is_named(tmp_path: Path) -> None:
    tests = {"a": "sleep 0.02; echo 1", "b": "sleep 0.03; echo 1"}
    written(tmp_path, study(tests, "repetitions = 5"))
    assert plan(tmp_path)["left_s"] is None
    assert order("run", "s.toml", folder=tmp_path).returncode == 0
    planned = plan(tmp_path)
    assert planned["left_s"] > 0.25
    assert planned["words"] == [
        "s.db exists: `cbench order resume s.db` continues it; to start over, remove it or name another file (-o)"
    ]
    written(tmp_path, study({"b": "echo 1", "a": "echo 1"}, "repetitions = 5"))
    assert plan(tmp_path)["left_s"] is None
    (tmp_path / "s.db").write_bytes(b"no store")
    assert plan(tmp_path)["left_s"] is None


def test_subsets_need_results_of_each_test_in_both_kinds_of_runs(tmp_path: Path) -> None:
    harness.written(tmp_path)
    written(tmp_path, harness.study(head="repetitions = 5\ndesign = 'subsets'", isolated="'both'"))
    (words,) = plan(tmp_path)["words"]
    assert words.startswith("too few runs: on one host, ")
    assert "of a test in isolated and in random runs" in words


def test_one_test_has_no_order(tmp_path: Path) -> None:
    written(tmp_path, study({"a": "echo 1"}, "repetitions = 9"))
    assert plan(tmp_path)["words"] == ["a single test has no order: add tests"]


def test_long_plans_are_shortened_and_commands_keep_to_one_line(tmp_path: Path) -> None:
    tests = {f"t{number}": "true\necho 1" for number in range(30)}
    written(tmp_path, study(tests, "repetitions = 9", "kind = 'command'\ncommand = 'true'"))
    shown = order("plan", "s.toml", folder=tmp_path).stdout.splitlines()
    assert shown[0] == "s: 30 tests, 18 runs (9 fixed, 9 random): 540 trials"
    assert len(shown) == 1 + 20 + 1 + 4 + 1 + 1
    assert shown[21:23] == ["  and 10 more", "run 1, fixed: t0, t1, t2, t3, t4, t5, t6, t7, ..."]
    assert shown[-2:] == ["and 14 more runs", "reset before each run: command"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (study({"a": "echo 1"}, "repetitions = 0"), "s.toml:2: study.repetitions: "),
        (harness.study(discover='["none"]'), "s.toml: suite.discover: none: No such file or directory"),
        (study({"a": "echo 1"}) + "directory = 'none'\n", "s.toml:7: test[1].directory: "),
    ],
)
def test_a_study_that_cannot_run_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    written(tmp_path, text)
    done = order("plan", "s.toml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"cbench: error: {message}")
    assert done.stderr.count("\n") == 1
