"""Lock a study's store so that one process at a time runs it; the kernel releases the lock when its holder ends.

SQLite uses fcntl(2) locks, which a process loses when it closes any descriptor of the file. So the lock of this module
is taken before SQLite opens the store, and released after SQLite has closed it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbench.store.database import no_directory
from cbench.store.trust import refuse_foreign_link
from cbench.study.model import CALLED
from quiet import Refused, UsageError

PATIENCE_S, PAUSE_S = 0.5, 0.05
"""The time to wait for the lock, and between attempts, in seconds: readers hold the lock only for a moment."""


@contextmanager
def alone(path: Path, create: bool = False, kind: str = "order") -> Iterator[None]:
    """A context with the exclusive right to run the study in this file. `kind`: a key of CALLED, or the word for
    another measurement in messages. Raises Refused if another process has the right, UsageError if the file cannot be
    opened.
    """
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
    if create:
        refuse_foreign_link(path)
        flags |= os.O_CREAT | (0 if os.path.islink(path) else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags, 0o666)
    except OSError as error:
        if create and isinstance(error, FileNotFoundError):
            raise no_directory(path) from None
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    try:
        limit = time.monotonic() + PATIENCE_S
        while not _taken(fd, fcntl.LOCK_EX):
            if time.monotonic() > limit:
                hint = f"; see: cbench {kind} status {path}" if kind in CALLED else ""
                raise Refused(f"{path}: another process is running this {CALLED.get(kind, kind)}{hint}")
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(fd)


def held(path: Path) -> bool:
    """Whether a process is running the study in this file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _taken(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _taken(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
