"""Run one command until it ends or times out, and keep its output.

The output goes to files instead of pipes, so this process does not have to read it while the command runs. At the end,
the kernel reports the times of the command and of the children that it waited for (wait4).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Protocol, Self

from cbench.machine.process import GroupGuard, die_with_parent
from cbench.results import JsonValue
from quiet import QuietError

MOST_OUTPUT = 1 << 20
"""The maximum number of bytes of output to keep. Longer output is cut at its beginning, because the end usually
contains the results. The number of missing bytes is recorded.
"""
GRACE_S = 2.0
LAST_LINES, LONGEST_LINE = 3, 200
"""The number of last lines of a failed command's output that are shown if no line contains "error", and the maximum
length of a shown line.
"""


class CommandError(QuietError):
    """Raised if a command that must succeed fails; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a probe: `value`, or the reason `why` there is none. `facts`: facts to store, by group and name."""

    value: int | None
    why: str = ""
    facts: Mapping[str, dict[str, JsonValue]] = field(default_factory=dict)


class Probe(Protocol):
    """An additional measurement of one command. Enter the probe before the command starts, and exit it after
    reading().
    """

    @property
    def name(self) -> str:
        """The probe's name, unique among the probes of a command."""

    def obstacle(self, path: str | None) -> str:
        """The reason why the probe cannot work on this host, "" if it can. `path`: the PATH of the command, None for
        the PATH of this process.
        """

    def __enter__(self) -> Self:
        """Begin measuring. Raises UsageError if the probe cannot measure on this host."""

    def __exit__(self, *_: object) -> None: ...

    def wrap(self, shell: list[str]) -> list[str]:
        """The command line that runs the command under this probe."""

    def reading(self) -> Reading:
        """The probe's reading, available after the command has ended."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a command. `code`: the exit code as in a shell, 128 + N for signal N; None if the command timed
    out and was killed. `begun_ns`, `ended_ns`: in ns since 1970.
    """

    code: int | None
    output: bytes
    errors: bytes
    cut: int  # bytes of output and of errors that were not kept
    begun_ns: int
    ended_ns: int
    wall_s: float
    user_s: float
    sys_s: float
    running_s: float = 0.0  # from the exec of the command, excluding its start
    readings: Mapping[str, Reading] = field(default_factory=dict)  # by the probe's name


def execute(
    command: str | Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    timeout_s: float,
    probes: Sequence[Probe] = (),
    starting: AbstractContextManager[None] | None = None,
    bound: bool = False,
) -> Execution:
    """Run a command in a new session: a string through /bin/sh, a list of words directly.

    Raises OSError if the command cannot be started, UsageError if a probe is unavailable. `probes`: additional
    measurements; times and counts include a probe's own command. `starting`: a context around the start only, for
    settings that the command inherits. `bound`: whether the command and its process group are killed when this process
    is killed; the start then takes longer, because it needs a fork(2) and a guard.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, ExitStack() as stack:
        shell = ["/bin/sh", "-c", command] if isinstance(command, str) else [*command]
        guard = stack.enter_context(GroupGuard()) if bound else None
        for probe in probes:
            shell = stack.enter_context(probe).wrap(shell)
        with starting or nullcontext():
            begun_ns, begun = time.time_ns(), time.monotonic()
            process = subprocess.Popen(
                shell,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
                preexec_fn=partial(_bind, os.getpid(), guard) if guard else None,  # noqa: PLW1509 - one thread starts commands
            )
            executed = time.monotonic()  # Popen returns only after exec
        try:
            late = not _ended(process.pid, timeout_s)
            ended, ended_ns = time.monotonic(), time.time_ns()
        except BaseException:
            end_group(process.pid)
            _, status, _ = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            raise
        if late:
            end_group(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        printed, cut = _tail(output)
        reported, more = _tail(errors)
        return Execution(
            code=None if late else code,
            output=printed,
            errors=reported,
            cut=cut + more,
            begun_ns=begun_ns,
            ended_ns=ended_ns,
            wall_s=ended - begun,
            user_s=usage.ru_utime,
            sys_s=usage.ru_stime,
            running_s=ended - executed,
            readings={probe.name: probe.reading() for probe in probes},
        )


def _bind(parent: int, guard: GroupGuard) -> None:
    """Make the kernel kill this child process, and the guard its group, when its parent ends; exit if the parent has
    already ended.
    """
    guard.hold(os.getpid())
    if not die_with_parent(parent):
        os._exit(1)


def run_checked(
    command: str, folder: str, environment: Mapping[str, str], timeout_s: float, bound: bool = False
) -> Execution:
    """Run a command that must succeed, such as a build, reset, setup or teardown. Raises CommandError if it fails."""
    try:
        done = execute(command, folder, environment, timeout_s, bound=bound)
    except OSError as error:
        raise CommandError(f"{command}: {error.strerror}") from None
    if done.code:
        said = _reason(done)
        raise CommandError(f"{command}: exited with {done.code}{': ' if said else ''}{said}")
    if done.code is None:
        raise CommandError(f"{command}: timed out after {timeout_s:g} s")
    return done


def _reason(done: Execution) -> str:
    """The reason why a command failed: the first line of output that contains "error", otherwise the last lines."""
    text = (done.errors.strip() or done.output).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower()][:1]
    return " | ".join(line[:LONGEST_LINE] for line in named or lines[-LAST_LINES:])


def _ended(pid: int, timeout_s: float) -> bool:
    """Wait for a process to end, without reaping it; returns whether it ended in time."""
    fd = os.pidfd_open(pid)
    try:
        limit = time.monotonic() + timeout_s
        while (left := limit - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                return True
        return bool(select.select([fd], [], [], 0)[0])
    finally:
        os.close(fd)


def end_group(pid: int) -> None:
    """Send SIGTERM to the process's whole group, and SIGKILL when the process has ended or GRACE_S seconds later."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    _ended(pid, GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _tail(file: IO[bytes]) -> tuple[bytes, int]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_OUTPUT))
    return file.read(), max(0, size - MOST_OUTPUT)
