"""`cbench` in a fork behaves as in a new process, and never outlives the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cbench import forks
from tests.cbench.forks import Forks
from tests.cbench.running import CBENCH, FORKS, alive, comes

LONG = ["run", "--trials", "1", "--", "sh", "-c", "echo $$ >started; exec sleep 1000"]


@pytest.mark.parametrize(
    "words", [["--version"], pytest.param(["order", "analyze", "none.db"], marks=pytest.mark.slow)]
)
def test_a_fork_has_the_output_and_the_exit_code_of_a_process(tmp_path: Path, words: list[str]) -> None:
    process = subprocess.run([*CBENCH, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    fork = FORKS.run(words, tmp_path, os.environ, 60)
    assert (fork.returncode, fork.stdout, fork.stderr) == (process.returncode, process.stdout, process.stderr)


def test_a_fork_has_the_folder_the_cpus_and_the_environment_of_its_run(tmp_path: Path) -> None:
    words = ["run", "--trials", "1", "--", "sh", "-c", "pwd >pwd; nproc >nproc; env >env"]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        done = FORKS.run(words, tmp_path, {"PATH": os.environ["PATH"], "OWN": "1"}, 60)
    finally:
        os.sched_setaffinity(0, before)
    assert done.returncode in (0, 1), done.stderr
    assert (tmp_path / "pwd").read_text() == f"{tmp_path}\n"
    assert (tmp_path / "nproc").read_text() == "1\n"
    variables = (tmp_path / "env").read_text().splitlines()
    assert "OWN=1" in variables
    assert not [each for each in variables if each.startswith("PYTEST")]


def test_variables_that_python_reads_at_its_start_need_a_process() -> None:
    made = Forks()
    assert made.suit({**os.environ, "COLUMNS": "200"})
    assert not made.suit({**os.environ, "PYTHONIOENCODING": "ascii"})
    assert not made.suit({**os.environ, "LC_ALL": "tr_TR.UTF-8"})


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_killed_and_the_next_one_works(tmp_path: Path) -> None:
    made = Forks()
    with pytest.raises(subprocess.TimeoutExpired):
        made.run(LONG, tmp_path, os.environ, 1)
    assert made.run(["--version"], tmp_path, os.environ, 60).returncode == 0


@pytest.mark.slow
def test_nothing_remains_of_tests_that_are_killed(tmp_path: Path) -> None:
    code = f"import os; from tests.cbench.forks import Forks; Forks().run({LONG!r}, {str(tmp_path)!r}, os.environ, 60)"
    started = tmp_path / "started"
    with subprocess.Popen([sys.executable, "-c", code]) as tests:
        assert comes(lambda: started.exists() and started.read_text())
        parents = psutil.Process(int(started.read_text())).parents()
        left = [each.pid for each in parents if forks.__file__ in each.cmdline()]
        assert len(left) == 2  # the server and its fork
        tests.kill()
    assert comes(lambda: not any(alive(pid) for pid in left))
