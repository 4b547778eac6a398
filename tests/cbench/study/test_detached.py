"""The files of a detached job, which other users may be able to write or to replace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench.jobs.status import status
from cbench.results import to_json
from cbench.study import detached
from cbench.study.resets import reboot
from quiet.errors import QuietError, Refused

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that measures nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def job_of(folder: Path, process: subprocess.Popen[bytes]) -> Path:
    """A store whose job names a process."""
    started = detached._started(process.pid)
    job = detached.DetachedJob(("run", "hash"), str(folder), process.pid, started, reboot.boot_id())
    detached._write(folder / "s.db", job)
    return folder / "s.db"


def test_a_job_that_only_its_owner_can_write_is_stopped(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    before = os.umask(0o002)
    try:
        store = job_of(tmp_path, other)
    finally:
        os.umask(before)
    assert status(str(store)).state == "running"
    loaded = detached._load(store)
    assert loaded is not None
    detached._terminate(store, *loaded)
    assert other.wait() == -signal.SIGTERM


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_process_that_other_users_may_have_named_is_not_stopped(
    mode: int, tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    store = job_of(tmp_path, other)
    detached.job_file(store).chmod(mode)
    assert status(str(store)).state == "stopped"
    with pytest.raises(Refused, match=rf"may have been written by another user than the owner of PID {other.pid},"):
        detached.stop(store)
    time.sleep(0.02)
    assert other.poll() is None


@root
def test_a_job_of_another_user_stops_no_process_of_root(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    store = job_of(tmp_path, other)
    os.chown(detached.job_file(store), NOBODY, NOBODY)
    assert status(str(store)).state == "stopped"
    with pytest.raises(Refused, match="remove the file, and if the process measures into"):
        detached.stop(store)
    time.sleep(0.02)
    assert other.poll() is None


def test_a_job_file_that_is_a_link_a_fifo_or_damaged_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    file = detached.job_file(store)
    good = to_json(detached.DetachedJob(("run", "hash"), "/"))
    assert isinstance(good, dict)
    (tmp_path / "real").write_text(json.dumps(good))
    for content in ("[" * 100_000, "{}", json.dumps({**good, "code": "0"}), json.dumps({**good, "started": None})):
        file.write_text(content)
        with pytest.raises(QuietError, match="remove it"):
            detached.read(store)
        file.unlink()
    os.mkfifo(file)
    with pytest.raises(QuietError, match="remove it"):
        detached.read(store)
    file.unlink()
    file.symlink_to(tmp_path / "real")
    with pytest.raises(QuietError, match="remove it"):
        detached.read(store)


def test_messages_are_not_appended_to_a_file_behind_a_link(tmp_path: Path) -> None:
    store, target = tmp_path / "s.db", tmp_path / "target"
    target.write_text("kept")
    log = detached.log_file(store)
    for place in (log.symlink_to, log.hardlink_to):
        place(target)
        with pytest.raises(Refused, match=r"s\.db\.log: .*remove it"):
            detached.start(store, ["run", "hash", "-o", str(store)])
        log.unlink()
    os.mkfifo(log)
    assert detached.last_message(store) == ""
    with pytest.raises(Refused, match=r"s\.db\.log: .*remove it"):
        detached.start(store, ["run", "hash", "-o", str(store)])
    assert target.read_text() == "kept"
    assert not detached.job_file(store).exists()


@root
def test_messages_are_not_appended_to_a_file_of_another_user(tmp_path: Path) -> None:
    log = detached.log_file(tmp_path / "s.db")
    log.touch()
    os.chown(log, NOBODY, NOBODY)
    with pytest.raises(Refused, match="belongs to another user"):
        detached.start(tmp_path / "s.db", ["run", "hash", "-o", "s.db"])
    os.chown(tmp_path, NOBODY, NOBODY)  # whose directory it is, may read the messages
    os.close(detached._open_log(tmp_path / "s.db"))


@pytest.mark.slow
def test_the_supervisor_runs_its_own_arguments_and_none_that_the_file_names(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    forged = detached.DetachedJob(("run", "-o", "forged.db", "--", "touch", "forged"), str(tmp_path))
    detached._write(store, forged)
    words = [sys.executable, "-P", "-m", "cbench.study.detached", str(store), "", str(tmp_path)]
    done = subprocess.run([*words, "run", "--quick", "-o", "s.db", "--", "true", "$HOME"], check=False)
    assert done.returncode in (0, 1), detached.last_message(store)
    assert not (tmp_path / "forged").exists()
    job = detached.read(store)
    assert job is not None
    assert (job.arguments[-1], job.code, job.folder) == ("$HOME", done.returncode, str(tmp_path))


def test_systemd_run_passes_dollar_signs_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "systemd-run"
    fake.write_text(f'#!/bin/sh\nfor each; do printf "%s\\n" "$each"; done >{tmp_path}/words\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_UID", "1000")
    detached._start_unit("u", ["/python", "sh", "-c", "echo $HOME ${A} $$"])
    words = (tmp_path / "words").read_text().splitlines()
    assert words[words.index("--") + 1 :] == ["/python", "sh", "-c", "echo $$HOME $${A} $$$$"]
    assert "--setenv=SUDO_UID=1000" in words


def test_a_measurement_is_not_started_beside_one_whose_job_others_may_write(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    store = job_of(tmp_path, other)
    detached.job_file(store).chmod(0o666)
    with pytest.raises(Refused, match="if this process does not measure, remove the file"):
        detached.start(store, ["run", "hash"])


def test_a_job_file_that_is_a_directory_is_refused_and_leaves_no_file_open(tmp_path: Path) -> None:
    detached.job_file(tmp_path / "s.db").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(QuietError, match="remove it"):
            detached.read(tmp_path / "s.db")
    assert len(os.listdir("/proc/self/fd")) == before
