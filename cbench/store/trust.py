"""Detect users who can change a store: whoever can change it decides which commands a resumed study runs.

`python -m cbench.store.trust STORE` is the check of a systemd unit before it resumes a study.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from pathlib import Path

from quiet import Reader, Refused, exit_code_of, who_can_change

BESIDE = ("", "-wal", "-shm", "-journal", ".set", ".job", ".log")
"""Suffixes of a store and of the files beside it: SQLite's, pending restores, and those of a detached job."""


def trusted_users() -> frozenset[int]:
    """Root, the user of this process and, if root runs it through sudo, the user who called sudo."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return frozenset({0, os.geteuid(), int(caller) if caller.isdecimal() else 0})


def refuse_foreign_link(path: Path) -> None:
    """Raise Refused if a store would be created where a link of a user who is not trusted points."""
    if not os.path.islink(path) or os.lstat(path).st_uid in trusted_users():
        return
    if not os.path.exists(path) or not os.path.getsize(path):
        raise Refused(f"{path}: is a link that another user has created; remove it, or choose another path")


def check(store: Path) -> None:
    """Raise Refused if a user who is not trusted can change the store, replace it, or create a file beside it."""
    real = Path(os.path.realpath(store))
    places = (store.absolute(), real)
    reader = _TrustingReader(frozenset({os.path.realpath(store.absolute().parent), str(real.parent)}))
    if found := who_can_change(reader, [f"{place}{suffix}" for place in places for suffix in BESIDE]):
        place, who = found
        raise Refused(
            f"{store}: {who} can change {place}, and so the commands that run when it is resumed; use a store in a "
            "directory that only you can write to (not directly in /tmp or /var/tmp)"
        )


class _TrustingReader(Reader):
    """A reader that reports files of trusted users, and of their private groups, as root's. In `folders`, the sticky
    bit does not protect, because SQLite reads new files beside a store.
    """

    def __init__(self, folders: frozenset[str]) -> None:
        super().__init__()
        self._folders = folders
        self._users = trusted_users()

    def stat(self, path: str, follow: bool = True) -> os.stat_result:
        """The status of a file. Raises OSError."""
        found = super().stat(path, follow)
        mode = found.st_mode & ~stat.S_ISVTX if path in self._folders else found.st_mode
        user = 0 if found.st_uid in self._users else found.st_uid
        group = 0 if mode & stat.S_IWGRP and self._is_private(found.st_gid) else found.st_gid
        return os.stat_result((mode, *found[1:4], user, group, *found[6:10]))

    def _is_private(self, number: int) -> bool:
        """Whether a group has a trusted user's name and no other member (useradd(8), USERGROUPS_ENAB)."""
        try:
            group = grp.getgrgid(number)
            owner = pwd.getpwnam(group.gr_name)
        except KeyError:
            return False
        members = {*group.gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == number)}
        return owner.pw_uid in self._users and members <= {owner.pw_name}


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: check(Path(sys.argv[1])), "cbench"))
