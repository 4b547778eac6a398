"""Determine the user that a command runs as: the caller, even if sudo or doas started quiet as root."""

from __future__ import annotations

import os
from typing import NamedTuple

from quiet.errors import Refused, UsageError

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable

_OF_SUDO = ("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND", "SUDO_HOME", "DOAS_USER")


class Identity(NamedTuple):
    """The user that a process becomes.

    For a user without an entry in the user database, `name` and `shell` are "" and `home` is "/".
    """

    uid: int
    gid: int
    name: str
    home: str
    shell: str


def wanted(as_user: str | None) -> Identity | None:
    """The user that the command runs as; None: the current user. `as_user`: the option --as. Raises QuietError."""
    if os.geteuid() != 0:
        if as_user is None or (own := _named(as_user)).uid == os.getuid():
            return None
        raise Refused(f"--as {own.name}: only root may name another user; run `sudo quiet run --as {own.name}`")
    if as_user is not None:
        chosen = _named(as_user)
        return chosen if chosen.uid else None
    if name := os.environ.get("DOAS_USER"):
        chosen = _named(name)
    elif (uid := os.environ.get("SUDO_UID", "")).isdecimal():
        chosen = _numbered(int(uid))
    else:
        return None
    return chosen if chosen.uid else None


def become(user: Identity) -> None:
    """Switch this process permanently to a user: groups, environment, user ID, and no input to root's terminal.

    Raises OSError.
    """
    if os.geteuid() == 0:
        from quiet.host import terminal_input

        terminal_input.protect()
    if user.name:
        os.initgroups(user.name, user.gid)
    else:
        os.setgroups([user.gid])
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    for name in _OF_SUDO:
        os.environ.pop(name, None)
    values = {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": user.shell}
    os.environ.update({name: value for name, value in values.items() if value})


def with_rights_of(as_user: str | None, do: Callable[[], None]) -> None:
    """Call `do` with the rights of the user that the command runs as, who then owns the files that `do` creates."""
    user = wanted(as_user)
    if user is None:
        do()
        return
    before = os.getegid(), os.getgroups()
    if user.name:
        os.initgroups(user.name, user.gid)
    else:
        os.setgroups([user.gid])
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        do()
    finally:
        os.seteuid(0)
        os.setegid(before[0])
        os.setgroups(before[1])


def _named(name: str) -> Identity:
    import pwd

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"no such user: {name}; nothing was changed") from None
    return Identity(found.pw_uid, found.pw_gid, found.pw_name, found.pw_dir, found.pw_shell)


def _numbered(uid: int) -> Identity:
    import pwd

    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        gid = os.environ.get("SUDO_GID", "")
        return Identity(uid, int(gid) if gid.isdecimal() else uid, "", "/", "")
    return Identity(found.pw_uid, found.pw_gid, found.pw_name, found.pw_dir, found.pw_shell)
