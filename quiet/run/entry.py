"""Start a helper: from sudo with a socket as standard input, or as a fork of a root front."""

from __future__ import annotations

import os
import socket
import stat
from typing import NoReturn

from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.run import process
from quiet.run.protocol import FROM_FRONT, HelperChannel, Peer, RunFailure

_CALLERS = ("SUDO_UID", "PKEXEC_UID")


def run_helper() -> int:
    """Run `quiet run-helper`, which takes no arguments. Does not return: this process exits at once, and the helper
    continues in a background process.

    Raises UsageError if standard input is not a local socket, and Refused without root or for the socket of another
    user.
    """
    if not stat.S_ISSOCK(os.fstat(0).st_mode):
        raise UsageError("run-helper is the helper that `quiet run` starts with sudo; it does nothing on its own")
    if os.geteuid() != 0:
        raise Refused("run-helper needs root; `quiet run` starts it with sudo")
    channel = HelperChannel(socket.socket(fileno=os.dup(0)), FROM_FRONT)
    peer = channel.peer()
    if peer.uid < 0:
        raise UsageError("run-helper: standard input is not a local socket; `quiet run` starts this helper")
    if any(uid != peer.uid for uid in _callers()):
        text = "run-helper: the socket does not belong to the user who started it"
        channel.send(RunFailure(text, Refused.exit_code))
        raise Refused(text)
    _go_on(0, peer)


def forked(connection: socket.socket) -> None:
    """Run the helper in a fork of a front that runs as root."""
    pid = os.fork()
    if pid == 0:
        _go_on(connection.fileno(), Peer(os.getppid(), 0))
    os.waitpid(pid, 0)


def _go_on(fd: int, caller: Peer) -> NoReturn:
    try:
        channel = HelperChannel(socket.socket(fileno=process.detach(fd)), FROM_FRONT)
        try:
            host = Host()
            process.cleanse(host)
            from quiet.run.helper import RunSession  # slow to load, so loaded only here

            RunSession(host, channel, caller).run()
        except Exception as error:
            channel.send(RunFailure(f"internal error: {type(error).__name__}: {error}", UsageError.exit_code))
    finally:
        os._exit(0)


def _callers() -> list[int]:
    """The IDs of the users for whom sudo, pkexec or doas started this program; -1 for an unknown user."""
    found = [int(os.environ[name]) for name in _CALLERS if os.environ.get(name, "").isdecimal()]
    if name := os.environ.get("DOAS_USER"):
        import pwd

        try:
            found.append(pwd.getpwnam(name).pw_uid)
        except KeyError:
            found.append(-1)
    return found
