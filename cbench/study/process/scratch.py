"""Create temporary directories. The next measurement removes the directories of killed processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "cbench-scratch-"


@contextmanager
def scratch() -> Iterator[Path]:
    """A context with an empty directory, which this process locks and removes at the end. This user's directories that
    no process locks are removed first.
    """
    _remove_stale()
    folder, lock = _locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = _open(folder)
        except FileNotFoundError:  # another process removed the directory as stale
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():  # another process may have removed it before it was locked
            return folder, lock
        os.close(lock)


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # the directory belongs to another user, or another process removed it
            lock = _open(folder)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
