"""`quiet run`: apply, run one command on the isolated CPUs, restore; the command's exit code is the result."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from quiet import journal
from quiet.apply import Receipt, apply
from quiet.choose import Choice
from quiet.errors import QuietError, UsageError
from quiet.host import Host
from quiet.placement import fixed_addresses, join
from quiet.profile import Profile
from quiet.restore import Outcome, restore

_USERS = f"{journal.FOLDER}/users"
_PATIENCE_S = 60  # for another quiet that is at work
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(
    profile: Profile,
    wish: str | None,
    command: Sequence[str],
    applied: Callable[[Receipt], None],
    restored: Callable[[Outcome | None], None],
) -> int:
    """Run a command under a profile. `applied` and `restored` are told what was done (None: others still use it).

    A profile that was applied before stays applied. Returns the command's exit code (128 + N for signal N), or 4 when
    something could not be put back.
    """
    if shutil.which(command[0]) is None:
        raise UsageError(f"{command[0]}: no such command; nothing was changed")
    host = Host()
    outcome: Outcome | None = None
    with _in_use(host) as users, _deaf():
        # from here on a Ctrl-C or a TERM must not come between an apply and its restore
        try:
            applied(apply(host, profile, wish, passing=True, patience=_PATIENCE_S))
            record = journal.load(host)
            assert record is not None
            code = _child(command, record.cpus, profile.knobs.get("aslr") == "command")
        finally:
            if journal.load(host) is not None:
                outcome = _end(host, users)
                restored(outcome)
    return 4 if outcome is not None and not outcome.complete else code


@contextmanager
def _in_use(host: Host) -> Iterator[int]:
    """Mark the applied profile as used, so that of several `quiet run` only the last one restores."""
    with journal.locked(host, _PATIENCE_S):  # also tells who may not
        fd = os.open(host.root + _USERS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)  # waits for one that is just restoring
        yield fd
    finally:
        os.close(fd)


def _end(host: Host, users: int) -> Outcome | None:
    record = journal.load(host)
    if record is None or not record.passing:
        return None
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    return restore(host, patience=_PATIENCE_S)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C and \\ go to the command, which is in the same foreground group; this process outlives it."""
    signals = (signal.SIGINT, signal.SIGQUIT, *_FORWARDED)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _child(command: Sequence[str], cpus: Choice, fixed: bool) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _become(command, cpus, fixed)
    for number in _FORWARDED:
        signal.signal(number, lambda received, frame: os.kill(pid, received))
    _, status = os.waitpid(pid, 0)
    for number in _FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _become(command: Sequence[str], cpus: Choice, fixed: bool) -> None:
    """In the child: go to the isolated CPUs, reset what the parent ignores, and execute; never returns."""
    try:
        for number in (signal.SIGINT, signal.SIGQUIT, *_FORWARDED):
            signal.signal(number, signal.SIG_DFL)
        join(cpus.isolated)
        if fixed and not fixed_addresses():
            os.write(2, b"quiet: addresses stay randomised: personality(2) is forbidden here\n")
        os.execvp(command[0], list(command))  # noqa: S606 - running the user's command is the purpose
    except QuietError as error:
        os.write(2, f"quiet: error: {error}\n".encode())
        os._exit(error.exit_code)
    except OSError as error:
        os.write(2, f"quiet: error: {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(126)
