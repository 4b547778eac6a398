"""Start a helper: by fork if the front is root, otherwise through sudo, doas or pkexec."""

from __future__ import annotations

import os
import socket
import sys

from quiet.errors import Refused
from quiet.run.protocol import FROM_HELPER, HelperChannel

_HELPER = "run-helper"
_RULE = "docs/security.md has a sudo rule that permits `quiet run` without a password"
_COMMAND_NOT_STARTED = 127


def attempts() -> list[tuple[str, ...]]:
    """The commands that may start a helper as root, first those that do not prompt.

    If this process is root, only the empty command: start() then forks.
    """
    if os.geteuid() == 0:
        return [()]
    program = own_program()
    terminal = _has_terminal()
    found = [(path, "-n", *more) for name, more in (("sudo", ("--",)), ("doas", ())) if (path := _which(name))]
    if terminal:
        found += [(path, *more) for name, more in (("sudo", ("--",)), ("doas", ())) if (path := _which(name))]
    if (path := _which("pkexec")) and (terminal or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        found.append((path,))
    return [(*command, program, _HELPER) for command in found]


def start(command: tuple[str, ...]) -> tuple[HelperChannel, bool]:
    """Start a helper with a command from attempts(). Returns the channel, and whether the start was permitted."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        if command:
            started = _spawn(command, theirs)
        else:
            from quiet.run import entry

            entry.forked(theirs)
            started = True
    return HelperChannel(ours, FROM_HELPER), started


def refusal() -> Refused:
    """The error that explains why no helper could be started."""
    name = next((each for each in ("sudo", "doas", "pkexec") if _which(each)), "")
    if not name:
        return Refused(
            "changing the host needs root, and neither sudo, doas nor pkexec is installed; nothing was changed"
        )
    why = (
        f"{name} did not permit it" if _has_terminal() else f"{name} would ask for a password, and there is no terminal"
    )
    return Refused(f"changing the host needs root: {why}; {_RULE}; nothing was changed")


def own_program() -> str:
    """The path of this program, for use in a sudoers rule."""
    beside = [os.path.join(os.path.dirname(os.path.abspath(path)), "quiet") for path in (sys.argv[0], sys.executable)]
    for path in (os.path.abspath(sys.argv[0]), *beside):
        if os.path.basename(path) == "quiet" and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return _which("quiet") or beside[0]


def _spawn(command: tuple[str, ...], connection: socket.socket) -> bool:
    """Run the command and wait for it to exit; return whether it succeeded.

    The helper itself continues in the background.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(connection.fileno(), 0)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            if "-n" in command:
                os.dup2(null, 2)  # a required password is not an error yet: the next attempt prompts for it
            os.execv(command[0], command)  # noqa: S606 - an absolute path
        finally:
            os._exit(_COMMAND_NOT_STARTED)
    return os.waitpid(pid, 0)[1] == 0


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _which(name: str) -> str:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(folder, name) for folder in (*folders, "/usr/bin", "/usr/local/bin", "/run/wrappers/bin"))
    return next((path for path in paths if path.startswith("/") and os.access(path, os.X_OK)), "")
