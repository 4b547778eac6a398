"""Apply a profile temporarily: several processes may use it at the same time, and the last one restores."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from quiet.errors import Incomplete, Refused
from quiet.host.host import Host
from quiet.host.lock import FOLDER, locked
from quiet.settings import journal
from quiet.settings.apply import Receipt, apply
from quiet.settings.journal_writer import StoppedHalfWay
from quiet.settings.profile import Profile
from quiet.settings.restore import Outcome, restore

_USERS = f"{FOLDER}/users"
_PATIENCE_S = 60  # time to wait for another quiet process, in seconds


@contextmanager
def in_use(host: Host) -> Iterator[int]:
    """Mark the applied profile as used, so that only the last of several `quiet run` processes restores.

    Yields the descriptor of the file on which each user holds a shared lock.
    """
    with locked(host, _PATIENCE_S):  # also raises an error for a user without permission
        try:
            fd = host.open(_USERS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}; nothing was changed") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)  # wait for another process that is restoring
        yield fd
    finally:
        os.close(fd)


def apply_for_use(host: Host, users: int, profile: Profile, requested: str | None) -> Receipt:
    """Apply a profile for one command. If this stops halfway, restore, unless the profile was already applied.

    Raises Refused if nothing remains changed, Incomplete if settings remain changed.
    """
    ours = journal.load(host) is None
    try:
        return apply(host, profile, requested, passing=True, patience=_PATIENCE_S)
    except StoppedHalfWay as stopped:
        outcome = end_use(host, users) if ours else None
        if outcome is None or not outcome.complete:
            raise
        raise Refused(f"the profile cannot be applied: {stopped.reason}; all changes have been restored") from None


def leave(users: int) -> None:
    """Stop using the applied profile, even though forks of this process still have the file open."""
    fcntl.flock(users, fcntl.LOCK_UN)


def end_use(host: Host, users: int) -> Outcome | None:
    """Restore the settings of a profile that was applied for one command.

    Returns None if another command still uses the profile, if it is to stay applied, or if nothing is applied. Raises
    Incomplete if the restore cannot begin; the outcome lists settings that could not be restored.
    """
    record = journal.read(host)
    if record is None or not record.passing:
        return None
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    try:
        return restore(host, patience=_PATIENCE_S)
    except (Refused, OSError) as error:
        raise Incomplete(f"the host is still changed: {error}; run `quiet restore`") from None
