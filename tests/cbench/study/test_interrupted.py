"""Signals, a second runner, a full disk, a study's file that changes: one line, and the study can be resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cbench.study import lock
from cbench.study.lifecycle import StartStudy
from cbench.study.runner import StudyProgress
from tests.cbench.running import alive
from tests.cbench.study.running import ROOT, Command, order, rows, started, study, written

LONG = {"quick": "echo 1", "long": "echo $$ >>pids; setsid sh -c 'echo $$ >>pids; exec sleep 300' & sleep 300; echo 2"}


def running_trial(folder: Path, text: str) -> tuple[Command, list[int]]:
    """A study that is within its first long trial, and the numbers of that trial's processes."""
    process = started("run", written(folder, text), folder=folder)
    return process, pids(folder, 2)


def pids(folder: Path, count: int) -> list[int]:
    limit = time.monotonic() + 300
    while time.monotonic() < limit:
        found = (folder / "pids").read_text().split() if (folder / "pids").exists() else []
        if len(found) >= count:
            return [int(each) for each in found]
        time.sleep(0.02)
    raise AssertionError("the trial has not begun")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_ends_the_trial_and_the_message_says_how_to_resume(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    text = study(LONG, "repetitions = 1\nteardown = 'echo down >>steps'")
    process, found = running_trial(tmp_path, text)
    process.send_signal(number)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == code
    assert "finished trials are kept; resume with: cbench order resume " in said
    assert len(said.splitlines()) == 1
    assert not any(map(alive, found))
    assert (tmp_path / "steps").read_text() == "down\n"
    assert [row[:4] for row in rows(tmp_path / "s.db")] == [(0, 0, 0, None)]


def test_a_study_whose_setup_fails_can_be_run_again_after_a_correction(tmp_path: Path) -> None:
    path = written(tmp_path, study({"a": "echo 1"}, "repetitions = 1\nsetup = 'false'"))
    done = order("run", path, folder=tmp_path)
    assert done.returncode == 2
    end = "setup: false: exited with 1; nothing was measured and "
    assert done.stderr.endswith(f"{end}{tmp_path / 's.db'} was removed; `cbench order run` starts again\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s.toml"]
    written(tmp_path, study({"a": "echo 1"}, "repetitions = 1"))
    assert order("run", path, folder=tmp_path).returncode == 0
    finished = order("stop", "s.db", folder=tmp_path)
    assert (finished.returncode, finished.stderr + finished.stdout) == (
        0,
        "cbench: already finished; next: cbench order analyze s.db\n",
    )


def test_the_progress_ends_with_all_trials(tmp_path: Path) -> None:
    seen: list[StudyProgress] = []
    StartStudy(str(written(tmp_path, study({"a": "echo 1", "b": "echo 2"}, "repetitions = 1"))), None).run(seen.append)
    assert [(each.done, each.of) for each in seen] == [(number, 4) for number in range(5)]


@pytest.mark.slow
def test_a_trial_that_outlived_its_runner_is_ended_before_the_study_resumes(tmp_path: Path) -> None:
    """With all that it has started, in whatever session; what an earlier, stored trial has left running is kept."""
    tests = {"server": "echo $$ >>servers; sleep 300 >/dev/null 2>&1 & echo $! >>servers; echo 1", **LONG}
    process, found = running_trial(tmp_path, study(tests, "repetitions = 1\ntimeout = 3"))
    server = int((tmp_path / "servers").read_text().split()[-1])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert all(map(alive, [*found, server]))
    done = order("resume", "s.db", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^cbench: killed \d+ leftover process(es)? of this study$",
        done.stderr,
        re.MULTILINE,
    )
    assert not any(map(alive, pids(tmp_path, 4)))
    assert alive(server)
    assert [row[3] for row in rows(tmp_path / "s.db")].count("timed out (3 s)") == 2
    for each in (tmp_path / "servers").read_text().split():
        if alive(int(each)):
            psutil.Process(int(each)).kill()


@pytest.mark.slow
def test_a_study_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    process, _ = running_trial(tmp_path, study(LONG, "repetitions = 1"))
    for command in (("resume", "s.db"), ("run", "s.toml")):
        done = order(*command, folder=tmp_path)
        assert (done.returncode, done.stdout) == (3, "")
        assert (
            done.stderr == "cbench: error: s.db: another process is running this study; see: cbench order status s.db\n"
        )
    status = order("status", "s.db", folder=tmp_path)
    assert status.returncode == 0
    assert "1 of 4 trials, 0 of 2 runs" in status.stdout
    assert "running: " in status.stdout
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    status = order("status", "s.db", folder=tmp_path)
    assert "not running: " in status.stdout
    assert "resume with: cbench order resume s.db" in status.stdout


def test_a_brief_reader_does_not_block_a_runner(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    with lock.alone(path):
        assert lock.held(path)
    assert not lock.held(path)
    assert not lock.held(tmp_path / "none")


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
from cbench.__main__ import main
main()
"""


@pytest.mark.slow
def test_a_full_disk_stops_the_study_and_keeps_what_was_stored(tmp_path: Path) -> None:
    """The limit on a file's size gives the same kind of error from the kernel as a full disk or a quota."""
    tests = {"wide": "head -c 60000 /dev/zero | tr '\\0' x; echo; echo 7", "other": "echo 8"}
    written(tmp_path, study(tests, "repetitions = 10"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL, "order", "run", "s.toml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(
        r"cbench: error: s\.db: cannot be written to \(disk, quota or file size limit\?\) \[SQLITE_IOERR_WRITE\]; "
        r"finished trials are kept; resume with: cbench order resume s\.db\n",
        done.stderr,
    )
    kept = rows(tmp_path / "s.db")
    assert 1 < len(kept) < 20
    assert order("resume", "s.db", folder=tmp_path).returncode == 0
    every = rows(tmp_path / "s.db")
    assert len(every) == 40
    assert every[: len(kept)] == kept


def test_a_study_resumes_unchanged_if_its_file_is_deleted_or_changed(tmp_path: Path) -> None:
    fails_first = "test -e ready || { touch ready; exec kill -9 $PPID; }; echo 5"
    path = written(tmp_path, study({"a": fails_first}, "repetitions = 2"))
    assert order("run", path, folder=tmp_path).returncode == -signal.SIGKILL
    path.write_text(path.read_text().replace("echo 5", "echo 6"))
    (tmp_path / "ready").unlink()
    done = order("resume", "s.db", folder=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert f"{path} has changed: the study resumes with the original file" in done.stderr
    path.unlink()
    done = order("resume", "s.db", folder=tmp_path)
    assert (done.returncode, "changed" in done.stderr) == (0, False)
    assert [row[4] for row in rows(tmp_path / "s.db")] == [5.0] * 4
    assert "4 of 4 trials, 4 of 4 runs\n1 run resumed after an interruption\nfinished\n" in (
        order("status", "s.db", folder=tmp_path).stdout
    )


def test_a_store_that_was_cut_short_during_its_creation_is_created_again(tmp_path: Path) -> None:
    written(tmp_path, study({"a": "echo 1"}, "repetitions = 1"))
    (tmp_path / "s.db").touch()
    done = order("resume", "s.db", folder=tmp_path)
    assert done.returncode == 2
    assert "s.db: contains no study; `cbench order run STUDY.toml -o FILE` starts one" in done.stderr
    assert order("run", "s.toml", folder=tmp_path).returncode == 0
    done = order("run", "s.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "s.db: already exists; `cbench order resume s.db` continues it" in done.stderr


def test_without_the_studys_folder_nothing_is_recorded_as_failed(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    path = written(folder, study({"a": "kill -9 $PPID; echo 1"}, "repetitions = 1"))
    data = tmp_path / "s.db"
    assert order("run", path, "-o", data, folder=tmp_path).returncode == -signal.SIGKILL
    path.unlink()
    folder.rmdir()
    done = order("resume", data, folder=tmp_path)
    assert (done.returncode, rows(data)) == (2, [])
    assert f"{folder}: the study's directory, in which its commands run, does not exist" in done.stderr
