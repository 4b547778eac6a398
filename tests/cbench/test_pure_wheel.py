"""The wheel without C, built and installed beside the dependencies: it analyzes stored results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.cbench.screen.screens import pilot, table
from tests.cbench.store.storing import noisy
from tests.cbench.store.storing import stored as stored_run
from tests.cbench.study.storing import stored as stored_study

pytestmark = pytest.mark.slow
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
SOURCES = ("quiet", "cbench", "kernel-configs", "docs/schemas", "setup.py", "pyproject.toml", "README.md", "LICENSE")
COMPILED = shutil.ignore_patterns("*.so", "_cbench.c", "_noise.c", "__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, from a copy of the sources without anything compiled."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, source / name, symlinks=True, ignore=COMPILED)
        else:
            shutil.copy(CHECKOUT / name, source / name)
    environment = {**os.environ, "QUIET_CBENCH_PURE": "1"}
    build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder / "out", source]
    subprocess.run(build, env=environment, check=True, timeout=300)
    (made,) = (folder / "out").iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The directory that it is installed into."""
    folder = wheel.parent / "installed"
    install = [*PIP, "install", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(install, check=True, timeout=300)
    return folder


def run(installed: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The installed commands, with no compiler on the PATH."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PATH": "/nonexistent"}
    command = [sys.executable, "-P", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=installed, timeout=120, check=False
    )


def test_the_wheel_is_for_every_platform_and_has_no_c(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "cbench/cli.py" in names
    assert "quiet/profiles/bench.toml" in names
    assert [name for name in names if name.endswith((".c", ".h", ".so", "Kbuild", "Makefile"))] == []


def test_the_installed_wheel_is_what_runs(installed: Path) -> None:
    where = run(installed, "-c", "import cbench, quiet; print(cbench.__file__, quiet.__file__)").stdout.split()
    assert [Path(each) for each in where] == [installed / "cbench/__init__.py", installed / "quiet/__init__.py"]
    assert "No module named 'cbench._cbench'" in run(installed, "-c", "import cbench._cbench").stderr


def test_stored_trials_are_compared_and_exported(installed: Path, tmp_path: Path) -> None:
    old = stored_run(tmp_path / "a.db", noisy(1000, 8, 20, 1))
    new = stored_run(tmp_path / "b.db", noisy(1200, 8, 20, 2))
    done = run(installed, "-m", "cbench", "compare", old, new, "--json")
    assert done.returncode == 1, done.stderr
    assert len(json.loads(done.stdout)["regressions"]) == 1
    done = run(installed, "-m", "cbench", "export", old, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 161


def test_a_study_and_a_screening_experiment_are_analyzed(installed: Path, tmp_path: Path) -> None:
    data = stored_study(tmp_path / "s.db", 3, "shuffled", 8, lambda test, *_: 100.0 + test)
    done = run(installed, "-m", "cbench", "order", "analyze", data, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["tests"]) == 3
    rows = [
        {**row, "iteration": iteration, "value": row["value"] + (7 * iteration + number) % 5}
        for iteration in range(8)
        for number, row in enumerate(pilot())
    ]
    pilots = table(tmp_path / "pilot.csv", rows)
    done = run(installed, "-m", "cbench", "screen", "analyze", pilots, "--json", "--subsamples", "0")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)


def test_quiet_reports_and_plans(installed: Path) -> None:
    for command in ("status", "plan"):
        done = run(installed, "-m", "quiet", command, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)


def test_measuring_commands_report_the_missing_compiled_modules(installed: Path) -> None:
    for words in (("cbench", "run", "hash"), ("quiet", "noise", "--cpus", "0", "--duration", "0.1")):
        done = run(installed, "-m", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "this command needs the compiled modules" in done.stderr
