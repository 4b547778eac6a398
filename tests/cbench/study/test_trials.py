"""The environment of a trial, its stored facts, and that a workload's number agrees with `cbench run`."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from cbench.study import model
from cbench.study.config import parse
from cbench.study.instruments import perf_stat
from cbench.study.instruments.perf_stat import Counting
from cbench.study.model import Metric
from cbench.study.process.process_tags import ProcessTags
from cbench.study.process.run_command import MOST_OUTPUT, execute
from cbench.study.records import Ended
from cbench.study.trial import command
from cbench.study.workload import Workloads, choose
from quiet.errors import UsageError
from tests.cbench.study.running import order, rows, study, written

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def one(line: str, folder: Path, *metrics: Metric, timeout_s: float = 60, directory: str = "") -> Ended:
    test = model.Test(
        "a", line, metrics=metrics or (Metric("", "last-float"),), timeout_s=timeout_s, directory=directory
    )
    return command(test, 0, 3, 1, study_folder=str(folder), environment=ENVIRONMENT)


def test_each_trial_knows_its_place_in_an_environment_of_equal_size(tmp_path: Path) -> None:
    """The size moves the stack: it must not follow the position, the run or the test."""
    marks = ProcessTags("here", 120, ("a", "longer"))
    sizes = set()
    for run in (0, 7, 99, 119):
        for position, name in enumerate(("a", "longer")):
            given = marks.of_trial(run, position, name)
            assert (given["CBENCH_RUN"], given["CBENCH_POSITION"]) == (str(run), str(position))
            assert given["CBENCH_TEST"] == name
            sizes.add(sum(len(key) + len(value) for key, value in given.items()))
    assert len(sizes) == 1
    tests = {"x": "env | wc -c", "longer name": "env | wc -c", "place": "echo $CBENCH_RUN.$CBENCH_POSITION"}
    text = study(tests, "repetitions = 6") + "[environment]\nGREETING = 'hello'\n"
    assert order("run", written(tmp_path, text), folder=tmp_path).returncode == 0
    every = rows(tmp_path / "s.db")
    assert len({value for _, _, test, _, value in every if test < 2}) == 1
    assert all(value == float(f"{run}.{position}") for run, position, test, _, value in every if test == 2)


def test_a_command_has_no_input_its_own_folder_and_the_studys_environment(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    made = one("cat; basename $PWD; echo 5", tmp_path, directory="below")
    assert (made.failure, made.output) == (None, b"below\n5\n")
    assert one("echo 1", tmp_path, directory="none").failure == "could not be started: No such file or directory"


FAILURES = [
    ("exit 4", "exited with 4: 17"),
    ("kill -SEGV $$", "exited with 139: 17"),
    ("sleep 60", "timed out (2 s)"),
    ("echo none", 'no number in its output; to time the command: read = "wall"'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "why"), FAILURES, ids=[why for _, why in FAILURES])
def test_a_failed_trial_has_a_reason_and_no_value(line: str, why: str, tmp_path: Path) -> None:
    made = one(f"echo 17 >&2; {line}", tmp_path, timeout_s=2 if "sleep" in line else 60)
    assert (made.failure, made.values) == (why, {})
    assert made.errors == b"17\n"


def test_a_command_that_fails_is_reported_with_the_last_line_of_its_errors(tmp_path: Path) -> None:
    assert one("echo begin >&2; echo no such thing >&2; exit 3", tmp_path).failure == "exited with 3: no such thing"
    assert one("echo 1; exit 3", tmp_path).failure == "exited with 3"


def test_a_study_whose_every_trial_failed_is_an_error_with_the_first_reason(tmp_path: Path) -> None:
    fails = {"a": "exit $((CBENCH_RUN + 3))", "b": "echo 1,5"}
    written(tmp_path, study(fails, "repetitions = 2"))
    done = order("run", "s.toml", folder=tmp_path)
    last = "cbench: error: s.db: every trial failed, so nothing was measured: a: exited with 3"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, last)
    assert len(rows(tmp_path / "s.db")) == 8
    written(tmp_path, study({**fails, "c": "echo 1"}, "repetitions = 2"))
    assert order("run", "s.toml", "-o", "t.db", folder=tmp_path).returncode == 0


def test_a_trial_with_one_unreadable_metric_has_failed(tmp_path: Path) -> None:
    made = one("echo a=1", tmp_path, Metric("a", "regex", "a=([0-9]+)"), Metric("b", "regex", "b=([0-9]+)"))
    assert made.values == {}
    assert "nothing in its output matches" in str(made.failure)


def test_numbers_keep_their_text_and_output_is_bounded(tmp_path: Path) -> None:
    made = one("echo 1.50", tmp_path)
    assert made.values == {"": (1.5, "1.50")}
    much = one(f"head -c {MOST_OUTPUT} /dev/zero; echo 9", tmp_path)
    assert (len(much.output), much.facts["output_cut"]) == (MOST_OUTPUT, 2)


def test_output_that_is_not_kept_whole_is_reported_once_for_each_test(tmp_path: Path) -> None:
    written(tmp_path, study({"wide": f"head -c {MOST_OUTPUT} /dev/zero >&2; echo 9 >&2; echo 1", "not": "echo 2"}))
    done = order("run", "s.toml", folder=tmp_path)
    assert done.stderr.count("wide: prints too much: only the last 1 MiB of each stream is kept\n") == 1
    assert "not: prints" not in done.stderr


def test_a_file_that_this_trial_did_not_write_is_not_read(tmp_path: Path) -> None:
    result = Metric("", "file", "out")
    assert one("echo 3 >out", tmp_path, result).values[""][0] == 3
    assert "out: was not written in this trial" in str(one("true", tmp_path, result).failure)
    assert one("echo 3 >out", tmp_path, result).values[""][0] == 3
    assert one("true", tmp_path, Metric("", "file", "/proc/sys/kernel/pid_max")).failure is None


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs a file system in memory")
def test_results_in_memory_must_be_written_in_their_trial_too() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        result = Metric("", "file", "out")
        assert one("echo 3 >out", Path(folder), result).values[""][0] == 3
        assert "out: was not written in this trial" in str(one("true", Path(folder), result).failure)


def test_json_may_follow_other_lines_and_have_dots_in_its_keys(tmp_path: Path) -> None:
    text = json.dumps({"clat": {"percentile": {"99.000000": 1234, "99": {"x": 1}}}}, indent=1)
    (tmp_path / "j").write_text(f"note: starting [1]\n{text}\n")
    made = one("cat j", tmp_path, Metric("", "json", "clat.percentile.99.000000"))
    assert made.values == {"": (1234.0, "1234")}


@pytest.mark.slow
def test_counts_are_of_the_command_and_all_that_it_starts_and_of_nothing_else() -> None:
    """The kernel's clock of running tasks stands in for the PMU, which a virtual machine may lack."""
    loop = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"
    done = execute(f"{loop}; ({loop}); sh -c '{loop}'", "/", ENVIRONMENT, 60, [Counting("task-clock")])
    count = done.readings["task-clock"].value
    assert isinstance(count, int)
    used = done.user_s + done.sys_s
    assert 0.8 * used < count / 1e9 < 1.2 * used + 0.02
    assert execute("sleep 0.2", "/", ENVIRONMENT, 60, [Counting("task-clock")]).readings["task-clock"].value < 0.1e9


def test_unavailable_cycles_are_reported_in_one_line_before_anything_runs(tmp_path: Path) -> None:
    try:
        perf_stat.check("cycles")
    except UsageError as error:
        text = study({"a": "touch ran; echo 1"}) + "read = 'cycles'\n"
        done = order("run", written(tmp_path, text), folder=tmp_path)
        assert done.returncode == 2
        said = f"cbench: error: {tmp_path / 's.toml'}: test 'a': read = 'cycles' is unavailable here: {error}\n"
        assert (done.stderr, (tmp_path / "ran").exists(), (tmp_path / "s.db").exists()) == (said, False, False)
    else:
        counted = execute("true", "/", ENVIRONMENT, 60, [Counting("cycles")]).readings["cycles"].value
        assert isinstance(counted, int)
        assert counted > 10_000


WORKLOADS = """
[study]
repetitions = 1
[[test]]
name = "hash"
workload = "hash"
params = { n = 5000 }
[[test]]
name = "mine"
workload = "f.c:twice"
params = { n = 21 }
[[test]]
name = "command"
command = "echo 3"
"""


@pytest.mark.slow
def test_workloads_and_commands_are_in_one_study_and_hints_are_reported_once(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("#include <stdint.h>\nuint64_t twice(void *s, uint64_t n) { return 2 * n; }\n")
    done = order("run", written(tmp_path, WORKLOADS), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines))
    assert all(failure is None and value for _, _, _, failure, value in rows(tmp_path / "s.db"))
    made = json.loads(order("analyze", "s.db", "--json", folder=tmp_path).stdout)
    with sqlite3.connect(tmp_path / "s.db") as store:
        facts = [json.loads(text) for (text,) in store.execute("SELECT facts FROM study_trial WHERE test < 2")]
        counter = json.loads(store.execute("SELECT host FROM study").fetchone()[0])["counter"]
    assert {(each["counter"], each["unit"]) for each in facts} == {(counter["name"], counter["unit"])}
    assert made["tests"]["hash"]["unit"] == counter["unit"]
    assert facts[0]["params"]["n"] in (5000, 21)


def workload(text: str, folder: Path, counter: str) -> tuple[Workloads, model.Test]:
    parsed = parse(text, "s.toml", str(folder))
    return Workloads(parsed, counter, folder, lambda _: None), parsed.tests[0]


@pytest.mark.slow
def test_a_workloads_number_is_that_of_cbench_run(tmp_path: Path) -> None:
    """The same counter, the same parameters, one trial without warming up: the same number but for noise.

    Of several the lowest, and short ones: so that few are interrupted, however busy the host is.
    """
    import cbench.run.run as whole

    parsed = parse(WORKLOADS.replace("5000", "20000").replace("f.c:twice", "hash"), "s.toml", "/")
    counter = choose("auto")
    measured = Workloads(parsed, counter.name, tmp_path, lambda _: None)
    options = whole.RunOptions(workloads=["hash"], trials=1, warmup="0", params=["n=20000"], trace=False)
    ours, theirs = [], []
    for _ in range(6):  # in turn: another program may slow the core down for some seconds
        ours.append(measured.trial(parsed.tests[0], 0, 0, 0).values[""][0])
        theirs.append(whole.measure(options).results[0])
    assert {each.params["n"] for each in theirs} == {20_000}
    assert min(ours) == pytest.approx(min(each.trials[0] for each in theirs), rel=0.5)


def test_a_trial_without_the_studys_counter_fails_with_the_reason(tmp_path: Path) -> None:
    try:
        choose("cycles")
    except UsageError:
        text = WORKLOADS.replace("f.c:twice", "hash")
        made = workload(text, tmp_path, "cycles")
        ended = made[0].trial(made[1], 0, 0, 0)
        assert ended.values == {}
        assert "cycles is unavailable" in str(ended.failure)
