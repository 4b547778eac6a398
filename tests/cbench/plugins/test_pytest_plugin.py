"""`pytest --cbench-store=FILE`, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cbench.store.store import Store

pytest.importorskip("pytest_benchmark")

BENCHMARKS = """
def test_a_sum(benchmark):
    benchmark.pedantic(sum, args=(range(100),), rounds=7)

def test_b_fails(benchmark):
    benchmark.pedantic(sum, args=(range(100),), rounds=7)
    assert False

def test_c_is_not_a_benchmark():
    pass
"""


def run(folder: Path, *options: str, rootdir: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(BENCHMARKS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    if rootdir:
        command += ["--rootdir", str(folder)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_rounds_of_a_benchmark_are_kept_with_what_interrupted_it(tmp_path: Path) -> None:
    for _ in range(2):
        done = run(tmp_path, "--cbench-store", "kept.db", "--benchmark-json", "own.json")
        assert done.returncode == 1, done.stdout + done.stderr  # of the test that fails
    assert "benchmarks stored in kept.db" in done.stdout
    assert "test_suite.py::test_a_sum: 7 rounds; " in done.stdout
    with Store.open(tmp_path / "kept.db") as store:
        first, second = store.series()
    assert [each.workload for each in (first, second)] == ["test_suite.py::test_a_sum"] * 2
    assert (first.run.number, second.run.number) == (1, 2)
    assert first.unit == "ns"
    assert len(first.values) == 7
    assert min(first.values) > 0
    assert set(first.facts["interrupted"]) >= {"preempted", "waited_ns", "stolen_ms"}
    assert '"interrupted"' in (tmp_path / "own.json").read_text()


@pytest.mark.slow
def test_without_the_option_nothing_of_cbench_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_sessionfinish():\n    print([n for n in sys.modules if n.startswith('cbench.')])\n"
    )
    done = run(tmp_path, "-s", "-k", "test_c")
    assert "['cbench.plugins', 'cbench.plugins.pytest_plugin']" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-p", "no:benchmark"), "needs pytest-benchmark"),
        (("-n", "2"), "omit -n"),
        (("--cbench-store", "test_suite.py"), "test_suite.py"),
    ],
)
def test_a_store_that_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    done = run(tmp_path, "--cbench-store", "kept.db", *options)
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if line.strip()]
    assert says in line
    assert "--cbench-store" in line


@pytest.mark.slow
def test_a_run_that_measures_no_benchmark_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--cbench-store", "kept.db", "--benchmark-disable")
    line = "--cbench-store kept.db: no benchmark was measured (--benchmark-disable), so nothing is stored"
    assert line in done.stdout.splitlines()
    assert not (tmp_path / "kept.db").exists()


@pytest.mark.slow
def test_a_file_beside_the_checkout_keeps_the_names_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    for _ in range(2):  # from the second session on, pytest would take the file for a test
        done = run(tmp_path / "new", "--cbench-store=../kept.db", rootdir=False)
        assert "new/test_suite.py" not in done.stdout
    with Store.open(tmp_path / "kept.db") as store:
        assert {each.workload for each in store.series()} == {"test_suite.py::test_a_sum"}
    refused = run(tmp_path / "new", "--cbench-store", "../kept.db", rootdir=False)
    assert "write --cbench-store=../kept.db, " in refused.stderr
