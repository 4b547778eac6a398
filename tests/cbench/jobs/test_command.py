"""Detached measurements: started, looked at, stopped, resumed; all kinds of them by one mechanism."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench.store.database import for_writing
from cbench.study import detached
from tests.cbench import running
from tests.cbench.running import comes, error_line

STUDY = """
[study]
repetitions = {repetitions}
[[test]]
name = "a"
command = "sleep 0.02"
read = "wall"
[[test]]
name = "b"
command = "sleep 0.02; echo b >>ran{waits}"
read = "wall"
"""
WAITS = "; until [ -e go ] || [ $(wc -l <ran) -le 5 ]; do sleep 0.02; done"
"""From its sixth trial on: until the test lets it, however long the commands take that are to meet the study."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for file in tmp_path.glob("*.job"):
        detached.stop(file.with_suffix(""))


def cbench(folder: Path, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = running.cbench(*words, cwd=folder)
    assert code is None or done.returncode == code, done.stderr
    return done


def job(folder: Path, store: str) -> dict[str, Any]:
    (only,) = json.loads(cbench(folder, "status", store, "--json").stdout)["jobs"]
    assert isinstance(only, dict)
    return only


def ends(folder: Path, store: str) -> dict[str, Any]:
    assert comes(lambda: job(folder, store)["state"] != "running")
    return job(folder, store)


@pytest.mark.slow
def test_a_detached_study_outlives_its_terminal_is_stopped_and_resumed_with_every_trial_once(folder: Path) -> None:
    (folder / "s.toml").write_text(STUDY.format(repetitions=20, waits=WAITS))
    started = json.loads(cbench(folder, "order", "run", "s.toml", "--detach", "--json").stdout)
    assert os.getsid(started["pid"]) == started["pid"]
    assert comes(lambda: job(folder, "s.db")["trials_done"] > 3)
    refused = cbench(folder, "order", "run", "s.toml", "--detach", code=3)
    assert "is already being measured" in error_line(refused)
    stopped = json.loads(cbench(folder, "order", "stop", "s.db", "--json").stdout)
    assert not stopped["running"]
    assert 3 < stopped["trials_done"] < 80
    assert job(folder, "s.db")["state"] == "stopped"
    (folder / "go").touch()
    cbench(folder, "order", "resume", "s.db", "--detach")
    assert ends(folder, "s.db") | {"message": ""} == {
        "data": "s.db",
        "kind": "order",
        "state": "finished",
        "trials_done": 80,
        "trials": 80,
        "trials_failed": 0,
        "left_s": None,
        "noise": None,
        "message": "",
    }
    assert (folder / "ran").read_text().count("b") in (40, 41)  # the trial that was cut short ran again


@pytest.mark.slow
@pytest.mark.parametrize("words", [["order", "run", "s.toml", "--detach"], ["ab", "-o", "s.db", "--", "true", "true"]])
def test_a_store_whose_creation_was_killed_is_created_again(folder: Path, words: list[str]) -> None:
    (folder / "s.toml").write_text(STUDY.format(repetitions=1, waits=""))
    for_writing(folder / "s.db").close()
    assert (folder / "s.db").stat().st_size > 0
    assert cbench(folder, *words, code=None).returncode in (0, 1)
    assert comes(lambda: job(folder, "s.db")["state"] == "finished")


@pytest.mark.slow
def test_the_supervisor_killed_leaves_a_study_that_is_still_seen_to_run(folder: Path) -> None:
    (folder / "s.toml").write_text(STUDY.format(repetitions=20, waits=WAITS))
    started = json.loads(cbench(folder, "order", "run", "s.toml", "--detach", "--json").stdout)
    os.kill(started["pid"], signal.SIGKILL)
    assert job(folder, "s.db")["state"] in ("running", "stopped")
    (folder / "go").touch()
    assert comes(lambda: job(folder, "s.db")["state"] == "finished")


@pytest.mark.slow
def test_a_plain_run_and_a_comparison_run_detached(folder: Path) -> None:
    cbench(folder, "run", "--quick", "-o", "r.db", "--detach", "--", "true")
    cbench(folder, "ab", "--blocks", "6", "-o", "ab.db", "--detach", "--", "true", "sleep 0")
    assert ends(folder, "r.db")["state"] == "finished"
    compared = ends(folder, "ab.db")
    assert (compared["kind"], compared["state"], compared["trials_done"]) == ("ab", "finished", 18)


@pytest.mark.slow
def test_a_detached_study_that_fails_says_why(folder: Path) -> None:
    (folder / "s.toml").write_text(STUDY.format(repetitions=2, waits="").replace("sleep 0.02", "exit 3"))
    cbench(folder, "order", "run", "s.toml", "--detach")
    assert comes(lambda: job(folder, "s.db")["state"] in ("failed", "finished"))
    assert "every trial failed" in detached.last_message(folder / "s.db")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "hash", "--detach"], "-o FILE"),
        (["ab", "--detach", "--", "true", "false"], "-o FILE"),
        (["order", "run", "none.toml", "--detach"], "none.toml"),
        (["status", "none.db"], "no measurement is stored here"),
        (["stop", "none.db"], "no measurement is stored here"),
    ],
)
def test_jobs_that_cannot_run_detached_are_refused_at_once(folder: Path, words: list[str], why: str) -> None:
    assert why in error_line(cbench(folder, *words, code=2))
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_job_of_another_boot_is_not_taken_for_a_process_of_this_one(folder: Path) -> None:
    mine = detached.DetachedJob(("order", "run", "s.toml"), str(folder), os.getpid(), 1, "another")
    assert not mine.alive
    (folder / "s.db.job").write_text('{"arguments": []}')
    assert "cannot be read" in error_line(cbench(folder, "status", "s.db", code=2))
    (folder / "s.db.job").unlink()


@pytest.mark.slow
def test_the_end_of_a_detached_job_says_nothing_about_a_later_run_in_the_terminal(folder: Path) -> None:
    (folder / "s.toml").write_text(STUDY.format(repetitions=2, waits="").replace("sleep 0.02; echo b", "exit 3; echo"))
    (folder / "s.toml").write_text((folder / "s.toml").read_text().replace("sleep 0.02", "exit 3"))
    cbench(folder, "order", "run", "s.toml", "--detach")
    assert comes(lambda: job(folder, "s.db")["state"] in ("failed", "finished"))
    (folder / "s.db").unlink()
    (folder / "s.toml").write_text(STUDY.format(repetitions=20, waits=WAITS))
    with subprocess.Popen([*running.CBENCH, "order", "run", "s.toml"], cwd=folder, stderr=subprocess.DEVNULL) as run:
        assert comes((folder / "ran").exists)
        run.send_signal(signal.SIGINT)
    for _ in range(2):
        assert (job(folder, "s.db")["state"], job(folder, "s.db")["message"]) == ("stopped", "")
