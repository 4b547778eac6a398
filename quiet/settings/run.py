"""`quiet run`: apply, run one command on the isolated CPUs, restore; the command's exit code is the result."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quiet.errors import Incomplete, QuietError, Refused, UsageError
from quiet.host.host import Host
from quiet.host.lock import FOLDER, locked
from quiet.machine.affinity import fixed_addresses, join
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings import journal
from quiet.settings.apply import Receipt, apply
from quiet.settings.journal_writer import StoppedHalfWay
from quiet.settings.profile import Profile
from quiet.settings.restore import Outcome, restore

_USERS = f"{FOLDER}/users"
_PATIENCE_S = 60  # for another quiet that is at work
_TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)  # a terminal sends these to the command as well
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(
    profile: Profile,
    requested: str | None,
    command: Sequence[str],
    applied: Callable[[Receipt], None],
    restored: Callable[[Outcome | None], None],
) -> int:
    """Run a command under a profile. `applied` and `restored` receive what was done (None: others still use it).

    A profile that was applied before stays applied. Returns the command's exit code (128 + N for signal N, also when
    the signal came before the command was started), or 4 when a setting could not be restored.
    Raises as `apply_for_use`.
    """
    program = _find(command[0])
    host = Host()
    outcome: Outcome | None = None
    with in_use(host) as users, _Signals() as signals:
        ours = journal.load(host) is None
        try:
            receipt = apply_for_use(host, users, profile, requested)
            ours = True
            applied(receipt)
            fixed = profile.knobs.get("aslr") == "command"
            code = _child(program, command, receipt.cpus, fixed, signals)
        finally:
            if ours and journal.read(host) is not None:
                outcome = end_use(host, users)
                restored(outcome)
    return 4 if outcome is not None and not outcome.complete else code


def _find(name: str) -> str:
    """The program's path: as a shell finds it, else beside this program (sudo keeps no PATH)."""
    beside = os.path.dirname(os.path.realpath(sys.argv[0]))
    found = shutil.which(name) or shutil.which(name, path=beside)
    if found is None:
        raise UsageError(f"{name}: no such command, or not executable; nothing was changed")
    return found


@contextmanager
def in_use(host: Host) -> Iterator[int]:
    """Mark the applied profile as used, so that of several `quiet run` only the last one restores."""
    with locked(host, _PATIENCE_S):  # also tells who may not
        try:
            fd = host.open(_USERS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}; nothing was changed") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)  # waits for one that is just restoring
        yield fd
    finally:
        os.close(fd)


def apply_for_use(host: Host, users: int, profile: Profile, requested: str | None) -> Receipt:
    """Apply for one command; where that stops half way, restore.

    Raises Refused when nothing is changed, Incomplete when settings still are.
    """
    ours = journal.load(host) is None
    try:
        return apply(host, profile, requested, passing=True, patience=_PATIENCE_S)
    except StoppedHalfWay as stopped:
        outcome = end_use(host, users) if ours else None
        if outcome is None or not outcome.complete:
            raise
        raise Refused(f"the profile cannot be applied: {stopped.reason}; what was changed is restored") from None


def end_use(host: Host, users: int) -> Outcome | None:
    """Restore what was applied for one command, unless another one still uses it (None). Raises Incomplete."""
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


class _Signals:
    """Between an apply and its restore no signal ends this process: it is kept, or handed to the command.

    What was ignored at the start (nohup) stays ignored, by the command too.
    """

    def __init__(self) -> None:
        self.child = 0
        self.pending = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (*_TO_THE_GROUP, *_FORWARDED):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def fork(self) -> int | None:
        """fork(2); None when a signal came before. One that comes now waits for the child, which has no handler."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
        try:
            if self.pending:
                return None
            self.child = os.fork()
            if self.child == 0:
                for number in self._before:
                    signal.signal(number, signal.SIG_DFL)
            return self.child
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _take(self, number: int, _frame: object) -> None:
        if not self.child:
            self.pending = number
        elif number in _FORWARDED:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.child, number)


def _child(program: str, command: Sequence[str], cpus: CpuPartition, fixed: bool, signals: _Signals) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = signals.fork()
    if pid is None:
        return 128 + signals.pending
    if pid == 0:
        _become(program, command, cpus, fixed)
    _, status = os.waitpid(pid, 0)
    signals.child = 0
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _become(program: str, command: Sequence[str], cpus: CpuPartition, fixed: bool) -> None:
    """In the child: go to the isolated CPUs and execute; never returns."""
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, its children should not
            signal.signal(number, signal.SIG_DFL)
        join(cpus.isolated)
        if fixed and not fixed_addresses():
            os.write(2, b"quiet: addresses stay randomised: personality(2) is forbidden here\n")
        os.execv(program, list(command))  # noqa: S606 - running the user's command is the purpose
    except QuietError as error:
        os.write(2, f"quiet: error: {error}\n".encode())
        os._exit(error.exit_code)
    except OSError as error:
        os.write(2, f"quiet: error: {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(126)
