"""`cbench screen validate` for real: measured, stored at once, resumed, refused."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cbench.study import lifecycle
from cbench.study.config import parse
from cbench.validate import plan, run
from cbench.validate.plan import ValidateOptions
from quiet.errors import QuietError, UsageError
from tests.cbench.running import CBENCH, cbench
from tests.cbench.study.instruments.perf import NEEDS_PERF

FEW = ["--quick", "--samples", "3", "--workload", "copy", "--workload", "etalon"]
PLAIN = ["--instrument", "wall", "--instrument", "perf-elapsed", "--instrument", "cpu-clock", "--instrument", "ticks"]


def validate(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return cbench("screen", "validate", *arguments, cwd=folder)


def trials(store: Path) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = sqlite3.connect(store).execute("SELECT run, position FROM study_trial").fetchall()
    return found


@pytest.mark.slow
def test_a_validation_is_measured_stored_and_judged_and_reported_again_without_measuring(tmp_path: Path) -> None:
    done = validate(*FEW, *PLAIN, "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # another program may be in the way of one of three trials
    made = json.loads(done.stdout)
    assert done.stderr.startswith(
        "cbench: 6 trials: at least 0:00:02, for the etalon only; the remaining time is shown"
    )
    assert made["trials_done"] == made["trials"] == 6
    assert [each["workload"] for each in made["workloads"]] == ["copy", "etalon"]
    copy, etalon = (each["metrics"] for each in made["workloads"])
    assert set(copy) == {"wall", "perf-elapsed", "cpu-clock", "ticks", *plan.CLOCKS}
    assert {each["n"] for each in (*copy.values(), *etalon.values())} == {3}
    assert etalon["raw_s"]["median"] == pytest.approx(0.5, abs=0.1)
    assert etalon["perf-elapsed"]["median"] > 0.5
    assert (tmp_path / "validate.toml").read_text().startswith("# Written by `cbench screen validate`")
    before = trials(tmp_path / "validate.db")
    again = validate(folder=tmp_path)
    assert again.returncode == done.returncode
    assert again.stdout.splitlines()[0] == made["verdict"][0]
    assert trials(tmp_path / "validate.db") == before


@pytest.mark.slow
def test_an_interrupted_validation_resumes_at_the_next_trial(tmp_path: Path) -> None:
    command = [*CBENCH, "screen", "validate", *FEW, *PLAIN]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        limit = time.monotonic() + 60
        while not (tmp_path / "validate.db").exists() or not counted(tmp_path / "validate.db"):
            assert time.monotonic() < limit
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        said = running.stderr.read()
    assert running.returncode == 130
    assert "interrupted; finished trials are kept; resume with: cbench screen validate -o validate.db\n" in said
    before = trials(tmp_path / "validate.db")
    assert 0 < len(before) < 6
    so_far = json.loads(validate("--no-run", "--json", folder=tmp_path).stdout)
    assert so_far["verdict"][-1] == f"So far: {len(before)} of 6 trials."
    done = validate("--json", folder=tmp_path)
    assert json.loads(done.stdout)["trials_done"] == 6
    assert trials(tmp_path / "validate.db")[: len(before)] == before


def test_an_interruption_prints_the_command_that_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lifecycle.Runner, "run", interrupt)
    few = ValidateOptions("v.db", samples=2, workloads=("copy",), instruments=("wall",), quick=True)
    for _ in ("begun", "resumed"):
        with pytest.raises(QuietError, match=r"; resume with: cbench screen validate -o v\.db$"):
            run.validated(few, lambda _: None)


def counted(store: Path) -> int:
    try:
        return len(trials(store))
    except sqlite3.Error:  # being made
        return 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--workload", "x"], "--workload x: must be one of aliquot, competing, perfect, copy, etalon"),
        (["--instrument", "x"], "--instrument x: must be one of wall, user, sys, perf-elapsed, cycles"),
        (["--no-run"], "validate.db: no such file; omit --no-run to measure"),
        (["-o", "text"], "text: already exists and is not a store; choose another name (-o)"),
        (["-o", "x.toml"], "x.toml: this is the name of the study file; choose another name for the store (-o)"),
        (["-o", "other.db"], "other.toml: already exists and belongs to another study; choose another name (-o)"),
        (["-o", "order.db"], "order.db: contains another study, not a validation; choose another file (-o)"),
    ],
)
def test_impossible_requests_are_reported_in_one_line_and_nothing_is_measured(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("x")
    (tmp_path / "other.toml").write_text("x")
    if "order.db" in arguments:
        (tmp_path / "s.toml").write_text('[study]\nrepetitions = 1\n[[test]]\nname = "a"\ncommand = "echo 1"\n')
        subprocess.run([*CBENCH, "order", "run", "s.toml", "-o", "order.db"], cwd=tmp_path, check=True)
    done = validate(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"cbench: error: {line}")
    assert not (tmp_path / "validate.db").exists()
    assert (tmp_path / "text").read_text() == "x"


@pytest.mark.slow
def test_without_numpy_one_line_is_printed_before_anything_is_measured(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "sys.argv = ['cbench', 'screen', 'validate', '--quick']\n"
        "import cbench.__main__; cbench.__main__.main()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "cbench: error: cbench screen validate needs numpy: pip install 'quiet-cbench[order]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_options_that_differ_from_the_stored_ones_are_refused(tmp_path: Path) -> None:
    few = ["--quick", "--samples", "2", "--workload", "copy", "--instrument", "wall"]
    assert validate(*few, folder=tmp_path).returncode in (0, 1)
    done = validate("--samples", "3", folder=tmp_path)
    assert done.returncode == 2
    assert "validate.db: was started with other options: omit the options to resume it" in done.stderr
    assert validate(*few, folder=tmp_path).returncode in (0, 1)


@pytest.mark.slow
@NEEDS_PERF
@pytest.mark.long
def test_all_instruments_and_workloads_work_together(tmp_path: Path) -> None:
    done = validate("--quick", "--samples", "3", "--json", folder=tmp_path)
    made = json.loads(done.stdout)
    assert made["trials_failed"] == 0, made["failures"]
    assert {each["workload"] for each in made["workloads"]} == set(plan.NAMES)
    assert {each["kind"] for each in made["workloads"]} == {"", "samples:fp", "samples:dwarf"}
    assert not list(tmp_path.glob("*.load"))


@pytest.mark.slow
def test_a_validations_text_is_a_study_that_loads_with_every_workload_by_every_instrument() -> None:
    text = plan.text(ValidateOptions())
    study = parse(text, "v.toml", "/")
    assert study.repetitions == 1000
    assert study.design == "random"
    kinds = len({test.name.partition(" ")[2] for test in study.tests})
    assert len(study.tests) == 5 * kinds
    found = plan.about(text)
    assert found.etalon_s == 10
    read = {metric.source for test in study.tests for metric in test.metrics}
    assert {each.read.partition(":")[0] for each in found.instruments if not each.missing} - {"ticks"} <= read
    assert os.linesep not in study.name


def test_its_duration_is_known_as_far_as_the_etalon_goes() -> None:
    etalon = plan.text(ValidateOptions(workloads=("copy", "etalon"), instruments=("wall",)))
    assert plan.duration(etalon).startswith("2,000 trials: at least 2:46:40, for the etalon only; ")
    copy = plan.text(ValidateOptions(workloads=("copy",), instruments=("wall",)))
    assert plan.duration(copy) == "1,000 trials: the remaining time is shown after the first trial"


def test_another_studys_text_is_not_a_validation() -> None:
    with pytest.raises(UsageError, match="contains another study, not a validation"):
        plan.about("[study]\n")
