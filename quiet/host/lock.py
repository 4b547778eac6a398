"""Manage the directory of quiet's state on a host, and its lock, so that one command at a time changes the host."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from quiet.errors import Refused
from quiet.host import FOLDER as FOLDER  # noqa: PLC0414 - exported
from quiet.host.reader import Reader

HOME = "/var/lib/quiet"  # survives a reboot
BOOT_FILE = f"{HOME}/boot.json"  # the record of `quiet boot apply`
_LOCK = f"{FOLDER}/lock"
_POLL_S = 0.05
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@contextmanager
def locked(reader: Reader, patience: float = 0) -> Iterator[None]:
    """Hold the host's lock, so that only one apply or restore runs; wait up to `patience` seconds for the lock.

    Raises Refused if another process keeps the lock or this process may not take it.
    """
    import fcntl
    import time

    try:
        make_folders(reader, FOLDER)
        fd = _open(reader)
    except PermissionError:
        raise Refused(
            "changing the host needs root: run this command with sudo (plan, status and verify need no root)"
        ) from None
    except OSError as error:
        raise Refused(
            f"the journal's directory cannot be used: {error.filename}: {error.strerror}; nothing was changed"
        ) from None
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if patience <= 0:
                    raise Refused(
                        "another quiet process is changing this host right now; wait until it ends, then try again"
                    ) from None
                time.sleep(_POLL_S)
                patience -= _POLL_S
            else:
                break
        yield
    finally:
        os.close(fd)


def _open(reader: Reader) -> int:
    """Open the file to lock, or the directory itself if the disk is full or read-only. Raises OSError."""
    with reader.place(FOLDER) as place:
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_mode & 0o7777 != 0o755:
            os.fchmod(fd, 0o755)  # every user may read the applied state, regardless of the umask
        file = reader.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno in _FULL:
            return fd
        os.close(fd)
        raise
    os.close(fd)
    return file


def make_folders(reader: Reader, path: str) -> None:
    """Create a directory and its parents. Raises OSError."""
    for folder in (path[:end] for end, letter in enumerate(f"{path}/") if letter == "/" and end):
        with contextlib.suppress(FileExistsError), reader.place(folder, follow=False) as place:
            os.mkdir(place, 0o755)
            os.chmod(place, 0o755)  # noqa: S103 - every user may read the applied state, regardless of the umask
