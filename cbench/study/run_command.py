"""Runs one command to its end, or to the end of its time, and keeps what it printed.

Its output goes to files and not through pipes: nothing here has to run while it does. Its times are those that the
kernel gives with its end (wait4), of itself and of the children that it has waited for.
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
from pathlib import Path
from typing import IO

from cbench.study.instruments import perf_record, perf_stat
from cbench.study.instruments.perf_data import Samples
from cbench.study.instruments.perf_record import Sampling
from quiet.errors import QuietError

MOST_OUTPUT = 1 << 20
"""Of more output the end is kept, where results are, and how much is missing."""
GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Execution:
    """`code`: as a shell has it, 128 + N for signal N; None where it did not end in time and was killed."""

    code: int | None
    output: bytes
    errors: bytes
    cut: int  # bytes of output and of errors that were not kept
    begun_ns: int
    ended_ns: int
    wall_s: float
    user_s: float
    sys_s: float
    counts: Mapping[str, int | str] = field(default_factory=dict)  # by name; a text says why there is none
    running_s: float = 0.0  # from the command's execution on, without what it takes to start one
    samples: Samples | str = "was not sampled"


def execute(
    command: str,
    folder: str,
    environment: Mapping[str, str],
    timeout_s: float,
    counts: Sequence[str] = (),
    sampled: Sampling | None = None,
    starting: AbstractContextManager[None] | None = None,
) -> Execution:
    """Run a command by /bin/sh in a session of its own. Raises OSError where it cannot be started.

    `counts`: names of what shall be counted, as in cycles.py; raises UsageError where that cannot be. `sampled`: how
    `perf record` shall sample it; times and counts are then those of both. `starting`: is around the start alone, for
    what the command is to inherit.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, ExitStack() as stack:
        shell = ["/bin/sh", "-c", command]
        if sampled is not None:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cbench-")), "perf.data")
            shell = [*perf_record.arguments(sampled, file), *shell]
        counting = {name: stack.enter_context(perf_stat.counting(name)) for name in counts}
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
            )
            executed = time.monotonic()  # it has been, or Popen would not have returned
        try:
            late = not _ended(process.pid, timeout_s)
            ended, ended_ns = time.monotonic(), time.time_ns()
        except BaseException:
            _end_group(process.pid)
            _, status, _ = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            raise
        if late:
            _end_group(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        said, cut = _tail(output)
        complained, more = _tail(errors)
        return Execution(
            code=None if late else code,
            output=said,
            errors=complained,
            cut=cut + more,
            begun_ns=begun_ns,
            ended_ns=ended_ns,
            wall_s=ended - begun,
            user_s=usage.ru_utime,
            sys_s=usage.ru_stime,
            counts={name: _count(each) for name, each in counting.items()},
            running_s=ended - executed,
            samples=perf_record.counted(sampled, file) if sampled is not None else "was not sampled",
        )


def _count(counting: perf_stat.Counting) -> int | str:
    try:
        return counting.value()
    except QuietError as error:
        return str(error)


def _ended(pid: int, timeout_s: float) -> bool:
    """Wait for its end without reaping it; whether it came in time."""
    fd = os.pidfd_open(pid)
    try:
        limit = time.monotonic() + timeout_s
        while (left := limit - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                return True
        return bool(select.select([fd], [], [], 0)[0])
    finally:
        os.close(fd)


def _end_group(pid: int) -> None:
    """Ask its whole process group to end, then end it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    _ended(pid, GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _tail(file: IO[bytes]) -> tuple[bytes, int]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_OUTPUT))
    return file.read(), max(0, size - MOST_OUTPUT)
