"""Manage the directory for copies and builds of one measurement, in the user's cache.

The directory of a stored measurement is kept until the measurement has ended, so that it resumes with the same files.
The directory of any other measurement is removed when that measurement ends. The next measurement removes the
directories of killed measurements without a store, and directories whose store no longer exists.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quiet import QuietError, Refused

LOCK, OWNER = "lock", "owner"


def root() -> Path:
    """The directory of all measurements of this user."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # to be ignored (XDG Base Directory Specification)
        cache = os.path.expanduser("~/.cache")
    return Path(cache, "cbench", "ab")


@contextmanager
def workspace(store: Path | None, resumed: bool) -> Iterator[Path]:
    """A context with an empty directory or, if the measurement in `store` is resumed, its existing directory. Raises
    QuietError if another process uses the directory.
    """
    base = root()
    owner = str(store.absolute()) if store else ""
    name = hashlib.sha256(os.fsencode(owner)).hexdigest()[:12] if store else f"{os.getpid()}-{time.time_ns():x}"
    folder = base / name
    try:
        base.mkdir(parents=True, exist_ok=True)
        with _locked(base) as alone:
            assert alone
            _remove_stale(base, folder)
            folder.mkdir(exist_ok=True)
            held = _hold(folder)
    except OSError as error:
        raise QuietError(
            f"{error.filename or folder}: {error.strerror}; set XDG_CACHE_HOME to another directory"
        ) from None
    if held is None:
        raise Refused(f"{store}: another process is measuring this comparison; wait until it ends")
    try:
        if not resumed:
            _empty(folder)
        (folder / OWNER).write_text(owner)
        try:
            yield folder
        except BaseException:
            if store is None or not store.exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """A context that holds the lock of the directory of all measurements."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield True
    finally:
        os.close(fd)


def _hold(folder: Path) -> int | None:
    """Lock the directory of one measurement. Returns the lock's file descriptor, None if another process holds it."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _remove_stale(base: Path, mine: Path) -> None:
    """Remove each directory, except `mine`, that no process holds and that has no store."""
    for folder in base.iterdir():
        if folder == mine or not folder.is_dir():
            continue
        try:
            held = _hold(folder)
        except FileNotFoundError:  # the directory's own measurement has just ended and removed it
            continue
        if held is None:
            continue
        owner = folder / OWNER
        if not owner.is_file() or not (store := owner.read_text()) or not Path(store).exists():
            shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != LOCK:
            each.unlink()
