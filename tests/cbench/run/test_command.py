"""`cbench run` beyond a plain series: clean trials, files, further events, overhead, many results."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from cbench.formats.registry import read
from cbench.store.store import Store
from quiet.errors import UsageError
from tests.cbench.running import CBENCH, cbench, error_line, measured

QUICK = ("--quick", "--no-trace", "--param", "n=1000")
RANDOM = """
#include <stdint.h>
static uint64_t state = 1;
uint64_t run(void *unused, uint64_t n) { (void)unused; return state = state * 6364136223846793005u + n; }
"""


def results(*arguments: str) -> list[dict[str, Any]]:
    done = cbench("run", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return found


@pytest.mark.slow
def test_until_clean_continues_until_enough_trials_are_clean_and_reports_their_share() -> None:
    (result,) = results("hash", *QUICK, "--until-clean", "50", "--trials", "1000000")
    clean = result["clean_trials"]
    assert clean["reached"]
    assert clean["count"] >= clean["wanted"] == 50
    assert clean["share"] == pytest.approx(clean["count"] / len(result["trials"]))
    assert clean["range"] <= 4 * result["counter"]["quantum"] or clean["rule"] in ("causes", "chains")


@pytest.mark.slow
def test_too_few_clean_trials_are_reported_with_a_remedy_and_exit_code_1() -> None:
    done = cbench("run", "hash", *QUICK, "--param", "n=1000000", "--until-clean", "20", "--trials", "20")
    lines = [line for line in done.stderr.splitlines() if "were clean" in line]
    if done.returncode == 0:  # a quiet machine, and lucky
        assert lines == []
    else:
        assert done.returncode == 1
        assert "20 were requested: allow more with --trials, or make the host quieter" in lines[0]


@pytest.mark.slow
def test_every_trial_is_in_the_file_as_it_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    found = results("hash", "sieve", *QUICK, "--trials", "30", "--processes", "2", "-o", str(path))
    with Store.open(path) as store:
        series = store.series()
    kept = {(one.workload, one.process): one.values for one in series}
    assert len(kept) == 4
    for result in found:
        mine = [kept[result["workload"], process] for process in (0, 1)]
        assert result["trials"] == mine[0] + mine[1]
    assert all(one.ended_ns is not None and one.facts["settling"]["settled"] is not None for one in series)
    assert series[0].run.command[-2:] == (str(path), "--json")


@pytest.mark.slow
def test_a_file_that_is_not_a_store_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    done = cbench("run", "hash", *QUICK, "-o", str(path))
    assert done.returncode == 2
    assert str(path) in error_line(done)
    assert path.read_text() == "mine"


@pytest.mark.slow
def test_a_full_disk_keeps_the_earlier_trials_and_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    shell = 'ulimit -f 4000; exec "$@"'
    command = [*CBENCH, "run", "hash", *QUICK, "--trials", "100000", "-o", str(path)]
    done = subprocess.run(
        ["bash", "-c", shell, "-", *command], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode in (1, 2)
    line = error_line(done)
    with Store.open(path) as store:
        (series,) = store.series()
    assert f"{len(series.trials):,} trials of this run are kept in it" in line
    assert len(series.trials) > 0


@pytest.mark.slow
def test_results_that_differ_between_trials_are_called_non_deterministic(tmp_path: Path) -> None:
    source = tmp_path / "random.c"
    source.write_text(RANDOM)
    done = cbench("run", f"{source}:run", "--trials", "10", "--warmup", "0", "--json")
    assert done.returncode == 1
    assert "non-deterministic: it returned 10 different results in 10 trials" in done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["outputs"] == 10
    assert "non-deterministic" in result["verdict"]


def test_events_are_counted_beside_the_value_with_the_counts_of_an_empty_region() -> None:
    made = measured("hash", events="page-faults,context-switches", params=["n=1000"])
    (result,) = made["results"]
    assert list(result["counts"]) == ["page-faults", "context-switches"]
    assert result["counter"]["others"] == ["page-faults", "context-switches"]
    for row in result["counts"].values():
        assert row["min"] <= row["median"] <= row["max"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"events": "speed"}, "--events 'speed': unknown; use auto or none alone"),
        ({"counter": "page-fault"}, "unknown counter 'page-fault'"),
        ({"until_clean": 1}, "--until-clean 1: must be from 2"),
        ({"until_clean": 50, "trials": 20}, "cannot be reached with --trials 20"),
        ({"stop_machine": True}, "--stop-machine needs --in-kernel"),
        ({"vary": "aslr"}, "request several processes with --processes N"),
        ({"output": Path("/nowhere/at/all.db")}, "/nowhere/at"),
    ],
)
def test_bad_input_is_reported_in_one_line_and_nothing_is_measured(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        measured("hash", **changes)


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["float", "etalon"])
def test_a_workload_that_does_not_run_in_the_kernel_is_refused_by_name(workload: str) -> None:
    done = cbench("run", workload, "--quick", "--in-kernel")
    assert done.returncode == 2
    assert f"{workload} does not run in the kernel; " in error_line(done)


@pytest.mark.slow
def test_without_the_module_the_message_says_how_to_get_it() -> None:
    done = cbench("run", "hash", "--quick", "--in-kernel")
    assert done.returncode == 3
    assert error_line(done).startswith("--in-kernel")


@pytest.mark.slow
def test_the_overhead_is_subtracted_only_on_request() -> None:
    for subtract in (False, True):
        (result,) = measured("empty", subtract=subtract, trials=50)["results"]
        overhead = result["counter"]["overhead"]
        assert result["overhead_subtracted"] == (overhead if subtract else 0)
        assert (result["floor"] or result["min"]) < overhead + 200 - overhead * subtract


def test_a_workload_that_takes_seconds_has_few_trials_by_default() -> None:
    (result,) = measured("etalon", trials=None, warmup="auto", params=["n=2"], quick=True)["results"]
    assert (len(result["trials"]), result["warmup"]) == (10, 0)


@pytest.mark.slow
def test_the_environment_and_the_stack_are_moved_by_the_requested_amount(tmp_path: Path) -> None:
    source = tmp_path / "where.c"
    source.write_text(
        "#include <stdint.h>\nuint64_t run(void *s, uint64_t n) { volatile char here; (void)s; (void)n; "
        "return (uint64_t)(uintptr_t)&here; }\n"
    )
    lows = {}
    for stack in (0, 4096):
        done = cbench("run", f"{source}:run", "--trials", "3", "--warmup", "0", "--stack", str(stack), "--json")
        assert done.returncode == 0, done.stderr
        lows[stack] = json.loads(done.stdout)["results"][0]["output"]
    assert 4096 - 64 <= lows[0] - lows[4096] <= 4096 + 64


FORKS = """
#include <stdint.h>
#include <unistd.h>
static int calls;
uint64_t run(void *state, uint64_t n) { (void)state; if (++calls == 50) fork(); return n; }
"""
LEAVES = """
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
static int calls;
uint64_t run(void *state, uint64_t n) {
    (void)state;
    if (++calls == 20000) { if (fork() == 0) { sleep(300); _exit(0); } abort(); }
    return n;
}
"""


@pytest.mark.slow
def test_user_code_that_forks_is_measured_once(tmp_path: Path) -> None:
    (tmp_path / "forks.c").write_text(FORKS)
    done = cbench("run", f"{tmp_path}/forks.c:run", "--trials", "2500", "--warmup", "0", "--json", "--no-trace")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["results"][0]["trials"]) == 2500


@pytest.mark.slow
def test_a_crash_is_reported_at_once_with_the_number_of_kept_trials_and_its_children_end(tmp_path: Path) -> None:
    (tmp_path / "leaves.c").write_text(LEAVES)
    path = tmp_path / "kept.db"
    begun = time.monotonic()
    command = ("run", f"{tmp_path}/leaves.c:run", "--trials", "100000", "--warmup", "0", "--no-trace", "-o", str(path))
    done = cbench(*command)
    assert time.monotonic() - begun < 200  # the child sleeps for longer, and holds the pipe
    with Store.open(path) as store:
        kept = len(store.series()[0].trials)
    line = error_line(done)
    assert "crashed with SIGABRT" in line
    assert line.endswith(f"; {kept:,} trials of this run are kept in {path}")
    assert kept > 0


def test_page_faults_may_be_counted_beside_a_clock_too() -> None:
    (result,) = measured("fault", events="minor-faults", params=["n=10"])["results"]
    assert result["counts"]["minor-faults"]["min"] >= 10


def test_too_few_discarded_trials_are_neither_settled_nor_not() -> None:
    (result,) = measured("hash", warmup="5", params=["n=1000"])["results"]
    assert result["settled"] is None
    assert "settled" not in result["verdict"]


@pytest.mark.parametrize("words", [["hash", "--counter", "nope"], ["--", "false"]])
def test_a_run_that_fails_before_its_first_trial_leaves_no_file_and_keeps_an_older_one(
    tmp_path: Path, words: list[str]
) -> None:
    for existing in (False, True):
        path = tmp_path / f"{existing}.db"
        if existing:
            assert cbench("run", "-o", str(path), "--trials", "2", "--warmup", "0", "--", "true").returncode == 0
        before = path.read_bytes() if existing else None
        end = words.index("--") if "--" in words else len(words)
        assert cbench("run", *words[:end], "-o", str(path), *words[end:]).returncode == 2
        assert path.exists() == existing
        assert before is None or len(read(path)) == 1
