"""Studies of a whole suite: a run is a process, and each test of it a trial at its place."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from cbench.study.store import StudyStore
from cbench.study.suite.measure import measure
from tests.cbench.running import alive, comes
from tests.cbench.study.running import Command, order, rows
from tests.cbench.study.running import written as study_written
from tests.cbench.study.suite.harness import NAMES, study, written


def run(folder: Path, text: str, names: tuple[str, ...] = NAMES, reverse: bool = False) -> Path:
    written(folder, names, reverse=reverse)
    # The order is the seed's: what is found depends on it, and it is another one on a host of another name.
    done = order("run", study_written(folder, text), "--host", "", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "s.db"


def analyzed(data: Path) -> Any:
    done = order("analyze", data, "--json", folder=data.parent)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def processes(data: Path) -> list[tuple[int, int]]:
    """Run and number of processes, distinguished by their start times."""
    with sqlite3.connect(data) as connection:
        return connection.execute(
            "SELECT run, count(DISTINCT begun_ns) FROM study_trial GROUP BY run ORDER BY run"
        ).fetchall()


@pytest.mark.slow
def test_a_run_is_one_process_and_its_tests_are_trials_in_the_given_order(tmp_path: Path) -> None:
    data = run(tmp_path, study())
    with StudyStore.open(data) as store:
        header, runs = store.header(), store.runs()
    assert header.tests == NAMES
    assert processes(data) == [(number, 1) for number in range(6)]
    trials = rows(data)
    for each in runs:
        assert tuple(test for number, _, test, _, _ in trials if number == each.number) == each.order
        places = {NAMES[test]: place for place, test in enumerate(each.order)}
        value = next(value for number, _, test, _, value in trials if (number, NAMES[test]) == (each.number, "victim"))
        assert value == (10 if places["culprit"] < places["victim"] else 5)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.slow
def test_the_test_that_changes_another_one_is_named_and_isolated_tests_change_none(tmp_path: Path) -> None:
    result = analyzed(run(tmp_path, study(head="repetitions = 14\ndesign = 'random'")))
    assert result["order_matters"]
    assert "victim is 2 times slower after culprit" in result["verdict"][0]
    (tmp_path / "s.db").unlink()
    result = analyzed(run(tmp_path, study(head="repetitions = 14\ndesign = 'random'", isolated="true")))
    assert not result["order_matters"]
    assert not any(each["significant"] for each in result["suite"]["earlier"])


@pytest.mark.slow
def test_both_compares_isolated_tests_with_one_process_for_all(tmp_path: Path) -> None:
    """The victim runs after the culprit in half of the runs: that is what the first table shows."""
    data = run(tmp_path, study(head="repetitions = 16", isolated='"both"'))
    with StudyStore.open(data) as store:
        kinds = {each.number: each.kind for each in store.runs()}
    assert sorted(kinds.values()) == ["isolated"] * 16 + ["random"] * 16
    assert processes(data) == [(number, 4 if kinds[number] == "isolated" else 1) for number in range(32)]
    result = analyzed(data)
    assert result["verdict"][0].startswith("carry-over: 1 of 4 tests differs") or "victim" in result["verdict"][0]
    victim = next(each for each in result["suite"]["carry_over"] if each["test"] == "victim")
    assert (victim["isolated"], victim["significant"], victim["after"]) == (5, True, "culprit")
    assert [each["test"] for each in result["suite"]["carry_over"] if each["significant"]] == ["victim"]


@pytest.mark.slow
def test_a_harness_with_its_own_order_runs_random_halves_of_its_tests(tmp_path: Path) -> None:
    """The harness here takes a filter: the names are those that it matches, in the harness's order."""
    filtering = "import re, sys; del sys.argv[0]; results, filter, *names = sys.argv;"
    filtering += "import os; os.execvp('python3', ['python3', 'harness.py', 'run', results,"
    filtering += " *(n for n in names if re.match(filter, n))])"
    words = ["python3", "-c", filtering, "{results}", "{filter}", "culprit", "victim", "x"]
    data = run(tmp_path, study(head="repetitions = 30", run=json.dumps(words)), ("culprit", "victim", "x"))
    with StudyStore.open(data) as store:
        orders = {each.order for each in store.runs()}
    assert len(orders) > 4
    assert all(tuple(sorted(each)) == each for each in orders)
    assert "victim is 2 times slower after culprit" in analyzed(data)["verdict"][0]


@pytest.mark.slow
def test_a_test_without_a_result_has_failed_and_the_others_count(tmp_path: Path) -> None:
    data = run(tmp_path, study(head="repetitions = 1"), ("culprit", "broken", "victim"))
    failures = {(test, why) for _, _, test, why, _ in rows(data)}
    assert failures == {
        (0, None),
        (2, None),
        (1, "the process exited with 1 and reported no result for this test: it broke"),
    }


@pytest.mark.slow
def test_the_order_of_results_counts_only_where_the_harness_writes_them_as_it_runs(tmp_path: Path) -> None:
    data = run(tmp_path, study(head="repetitions = 1"), ("a", "b", "c"), reverse=True)
    assert [test for number, _, test, _, _ in rows(data) if not number] == [0, 1, 2]
    data.unlink()
    keys = {"preset": '"pytest-benchmark"'}
    data = run(tmp_path, study(head="repetitions = 1", **keys), ("a", "broken", "c"), reverse=True)
    assert [test for number, _, test, _, _ in rows(data) if not number] == [2, 0, 1]
    with StudyStore.open(data) as store:
        assert store.runs()[0].order == (2, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["./none", "{tests}"], "./none could not be started: No such file or directory"),
        (["sh", "-c", "sleep 60", "{tests}"], "timed out (0.3 s)"),
        (["false", "{results}", "{tests}"], "exited with 1 and wrote no results: it printed nothing"),
        (["cp", "harness.py", "{results}", "-S{filter}"], "its results: unknown format; cbench reads "),
        (
            ["sh", "-c", "echo 'BenchmarkX 1 2 ns/op'", "{filter}"],
            "its results belong to other tests, such as 'BenchmarkX'",
        ),
    ],
)
def test_a_process_that_leaves_no_results_is_a_reason_of_all_its_trials(
    words: list[str], why: str, tmp_path: Path
) -> None:
    from cbench.study.config import parse

    written(tmp_path)
    timeout = "0.3" if "0.3 s" in why else "60"
    suite = parse(study(run=json.dumps(words), timeout=timeout), "s.toml", str(tmp_path)).suite
    assert suite is not None
    ended = measure(suite, NAMES, (1, 0), 0, 2, seed=1, study_folder=str(tmp_path), environment=os.environ)
    assert [(each.position, each.test) for each in ended] == [(2, 1), (3, 0)]
    assert all(why in str(each.failure) and not each.values for each in ended)


@pytest.mark.slow
def test_a_kill_ends_the_suite_and_what_it_left_is_removed_by_the_resumed_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    written(tmp_path)
    wait = "[ -e pid ] || { echo $$ > pid.new; mv pid.new pid; exec sleep 600; };"
    words = ["sh", "-c", f'{wait} exec python3 harness.py run "$0" "$@"', "{results}", "{tests}"]
    command = Command(["run", study_written(tmp_path, study(run=json.dumps(words)))], tmp_path)
    assert comes((tmp_path / "pid").exists)
    assert list(temporary.iterdir())
    command.send_signal(signal.SIGKILL)
    command.wait(60)
    assert comes(lambda: not alive(int((tmp_path / "pid").read_text())))
    assert order("resume", tmp_path / "s.db", folder=tmp_path).returncode == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_command_line_and_environment_together_have_the_same_size_whatever_is_selected(tmp_path: Path) -> None:
    from cbench.study.config import parse

    script = "import os, sys; a = sum(len(os.fsencode(x)) + 9 for x in sys.argv[1:]);"
    script += " a += sum(len(k) + len(v) for k, v in os.environb.items() if k != b'CRITERION_HOME');"
    script += " print('Benchmark-X 1', a, 'ns/op')"
    words = ["python3", "-c", script, "{tests}"]
    suite = parse(study(run=json.dumps(words)), "s.toml", str(tmp_path)).suite
    assert suite is not None
    names = ("Benchmark-X", "Benchmark-long-é", "c d")
    sizes = {
        measure(suite, names, each, 0, 0, seed=1, study_folder=str(tmp_path), environment=os.environ)[0].values[""][0]
        for each in ((0,), (0, 1), (0, 1, 2), (0, 2))
    }
    assert len(sizes) == 1


@pytest.mark.slow
def test_a_run_that_was_killed_is_run_again_as_a_whole(tmp_path: Path) -> None:
    written(tmp_path)
    slow = '["sh", "-c", "[ -e go ] || sleep 300; exec \\"$0\\" \\"$@\\"", "{program}", "run", "{results}", "{tests}"]'
    file = study_written(tmp_path, study(head="repetitions = 1", run=slow))
    command = Command(["run", file], tmp_path)
    data, limit = tmp_path / "s.db", time.monotonic() + 60
    while time.monotonic() < limit and not (data.exists() and _begun(data)):
        time.sleep(0.02)
    command.send_signal(signal.SIGKILL)
    command.wait(60)
    assert rows(data) == []
    (tmp_path / "go").touch()
    assert order("resume", data, folder=tmp_path).returncode == 0
    assert [(number, place) for number, place, *_ in rows(data)] == [(n, p) for n in range(2) for p in range(4)]


def _begun(data: Path) -> bool:
    try:
        with StudyStore.open(data) as store:
            return store.runs()[0].begun_ns is not None
    except Exception:  # being made at this moment
        return False
