"""Run a command transparently: with the caller's files, terminal and signals, and under sudo or doas as the caller.

The command stays in this process group, so signals of the terminal reach it directly; signals sent to this process are
forwarded. siginfo distinguishes the two: the kernel sends the terminal's signals.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from quiet.errors import QuietError, UsageError
from quiet.host import identity
from quiet.host.job_control import stop_with
from quiet.host.proc import stat_fields
from quiet.host.reader import Reader
from quiet.noise.command_report import CommandUsage

_HANDED_ON = {
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGWINCH, signal.SIGCONT),
    signal.SIGTSTP,
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
}
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores these signals, but the command should not
_LONG_S = 3600.0
_READY_S, _POLL_S = 1.0, 0.0005
_AT_EXEC = struct.Struct("dd4q")
_SHELL_SYNTAX = frozenset(" \t\n|&;<>")


class AtExec(NamedTuple):
    """The child's figures right before it executes the command; `began`: the time by CLOCK_MONOTONIC."""

    began: float
    cpu_s: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0


class NotExecutedError(QuietError):
    """The kernel did not execute the command."""

    exit_code = 126  # same code as in a shell


class Command:
    """A context manager for the command's process, which waits for `go()`; then call `wait()` and `usage()`."""

    def __init__(self, command: Sequence[str]) -> None:
        """Check the command. Raises UsageError if there is no such program."""
        self.command = tuple(command)
        if shutil.which(command[0]) is None:
            shell = "; for shell syntax: quiet why -- sh -c 'COMMAND'" if _SHELL_SYNTAX & set(command[0]) else ""
            raise UsageError(f"{command[0]}: no such command, or not executable{shell}")
        self._user = identity.wanted(None)
        self.pid = 0
        self._waited = False
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        ignored = {number for number in _HANDED_ON if signal.getsignal(number) == signal.SIG_IGN}  # ignored under nohup
        self._taken = {*(_HANDED_ON - ignored), signal.SIGCHLD}
        self._of_children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored SIGCHLD leaves no child to reap
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)
        waiting, self._gate = os.pipe()
        self._figures, figures = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._gate)
            self._become(waiting, figures)
        os.close(waiting)
        os.close(figures)
        self._until_ready()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._open_gate()  # the child ends silently
        if not self._waited:
            self.wait(_LONG_S, lambda: None)  # do not abandon the command if observing fails
            self.usage()
        os.close(self._figures)
        signal.signal(signal.SIGCHLD, self._of_children)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _become(self, waiting: int, figures: int) -> None:
        """In the child: wait, write its AtExec to `figures`, and execute the command; never returns."""
        try:
            _AT_EXEC.pack(*_at_exec())  # the pages that this writes are copied now, not after the figures are taken
            if os.read(waiting, 1) == b"g":
                for number in (*_OF_PYTHON, *(self._taken - {signal.SIGCHLD})):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGCHLD, self._of_children)
                if self._user:
                    identity.become(self._user)
                signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
                os.write(figures, _AT_EXEC.pack(*_at_exec()))
                os.execvp(self.command[0], self.command)  # noqa: S606 - running the user's command is the purpose
        except OSError as error:
            os.write(figures, bytes([error.errno or errno.ENOEXEC]))
        finally:
            os._exit(NotExecutedError.exit_code)

    def _until_ready(self) -> None:
        """Let the child reach its gate: until then it waits for a CPU, which would count as the command's wait."""
        end = time.monotonic() + _READY_S
        while stat_fields(Reader().text(f"/proc/{self.pid}/stat"))[:1] == ["R"] and time.monotonic() < end:
            time.sleep(_POLL_S)

    def _open_gate(self, word: bytes = b"") -> None:
        if self._gate >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._gate, word)
            os.close(self._gate)
            self._gate = -1

    def go(self) -> None:
        """Let the child execute the command."""
        self._began = time.monotonic()
        self._open_gate(b"g")

    def wait(self, every_s: float, tick: Callable[[], None]) -> None:
        """Forward signals until the command has ended, without reaping it. `tick` is called periodically."""
        due = time.monotonic() + every_s
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            stop_with(self.pid)
            came = signal.sigtimedwait(self._taken, max(due - time.monotonic(), 0))
            # if this process was stopped for longer than the timeout, Python returns uninitialized memory
            if came is None or came.si_signo not in self._taken:
                tick()
                due = time.monotonic() + every_s
            elif came.si_signo != signal.SIGCHLD and came.si_code <= 0:  # SI_USER, SI_QUEUE, SI_TKILL
                os.kill(self.pid, came.si_signo)
        self._ended = time.monotonic()

    def usage(self) -> CommandUsage:
        """Reap the command. Returns its exit code (128 + N for signal N) and its resource usage.

        The figures of wait4(2) include the child's work before it executes the command, which is subtracted. Call this
        only once. Raises NotExecutedError if the kernel did not execute the command.
        """
        _, status, used = os.wait4(self.pid, 0)
        self._waited = True
        code = os.waitstatus_to_exitcode(status)
        written = os.read(self._figures, _AT_EXEC.size + 1)  # empty if the child did not get that far
        if len(written) % _AT_EXEC.size:
            raise NotExecutedError(f"{self.command[0]}: {os.strerror(written[-1])}")
        before = AtExec(*_AT_EXEC.unpack(written)) if written else AtExec(self._began)
        return CommandUsage(
            self.command,
            128 - code if code < 0 else code,
            self._ended - before.began,
            max(used.ru_utime + used.ru_stime - before.cpu_s, 0.0),
            max(used.ru_minflt - before.minor_faults, 0),
            max(used.ru_majflt - before.major_faults, 0),
            max(used.ru_nvcsw - before.voluntary_switches, 0),
            max(used.ru_nivcsw - before.involuntary_switches, 0),
        )


def _at_exec() -> AtExec:
    """The present figures of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    switches = used.ru_nvcsw, used.ru_nivcsw
    return AtExec(time.monotonic(), used.ru_utime + used.ru_stime, used.ru_minflt, used.ru_majflt, *switches)
