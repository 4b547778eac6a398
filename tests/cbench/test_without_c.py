"""Without compiled parts, as in a plain checkout: stored results can be analyzed, and measuring ends in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cbench.screen.screens import pilot, table
from tests.cbench.store.storing import noisy
from tests.cbench.store.storing import stored as stored_run
from tests.cbench.study.storing import stored as stored_study

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("cbench._cbench", "quiet.noise._noise"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from cbench.cli import main
main()
"""


def without_c(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def reported(page: Path, *arguments: str | Path) -> None:
    done = without_c(*arguments, "--output", page)
    assert done.returncode in (0, 1), done.stderr
    assert "</html>" in page.read_text()


@pytest.mark.slow
def test_stored_trials_are_compared_and_exported(tmp_path: Path) -> None:
    data = stored_run(tmp_path / "a.db", noisy(1000, 4, 20, 1))
    done = without_c("compare", data, data, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    done = without_c("export", data, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 81


@pytest.mark.slow
def test_a_stored_study_is_analyzed_and_reported(tmp_path: Path) -> None:
    data = stored_study(tmp_path / "s.db", 3, "shuffled", 8, lambda test, *_: 100.0 + test)
    done = without_c("order", "analyze", data, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)
    reported(tmp_path / "page.html", "order", "report", data)


@pytest.mark.slow
def test_a_screening_experiment_is_analyzed_and_reported(tmp_path: Path) -> None:
    rows = [
        {**row, "iteration": iteration, "value": row["value"] + (7 * iteration + number) % 5}
        for iteration in range(8)
        for number, row in enumerate(pilot())
    ]
    data = table(tmp_path / "pilot.csv", rows)
    done = without_c("screen", "analyze", data, "--json", "--subsamples", "0")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)
    reported(tmp_path / "page.html", "screen", "report", data, "--subsamples", "0")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["list"], ["run", "hash"], ["sweep", "memory"], ["interfere", "hash"]])
def test_measuring_commands_end_with_one_line_that_names_the_package_to_install(arguments: list[str]) -> None:
    done = without_c(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    needed = "this command needs the compiled modules, which are missing; run `pip install .` in the source tree"
    assert done.stderr == f"cbench: error: {needed}\n"
