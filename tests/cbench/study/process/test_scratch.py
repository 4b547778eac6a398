"""Temporary directories: those of live processes stay, those of dead ones go."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from cbench.study.process.scratch import scratch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(folder: Path) -> None:
    ready, begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        with scratch() as mine:
            (mine / "results").touch()
            os.write(begun, b"1")
            signal.pause()
    os.read(ready, 1)
    with scratch() as mine:
        assert len(list(folder.iterdir())) == 2  # it lives
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with scratch() as mine:
        assert list(folder.iterdir()) == [mine]
    assert list(folder.iterdir()) == []


def test_a_folder_with_only_such_a_name_is_kept(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "cbench-scratch-link").symlink_to(folder / "elsewhere")
    (folder / "cbench-scratch-file").touch()
    with scratch():
        pass
    assert len(list(folder.iterdir())) == 3


def test_a_folder_that_is_removed_before_it_is_locked_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkdtemp
    made: list[str] = []

    def removed_once(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", removed_once)
    with scratch() as mine:
        assert [mine] == list(folder.iterdir())
    assert len(made) == 2
