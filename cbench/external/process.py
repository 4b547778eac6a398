"""Execute a program once, timed in C, with the kernel's counts."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from cbench._cbench import ffi, lib
from cbench.machine.process import GroupGuard
from cbench.study.process.run_command import LAST_LINES, LONGEST_LINE, end_group
from quiet import QuietError, Refused, UsageError, ticks

PADDING = "CBENCH_PADDING"
SLICE_MS = 1000
"""The longest delay, in ms, of a signal that arrives just before a wait."""
FIRST_OWN = 3
"""The first file descriptor that is not a standard stream."""
MOST_ERRORS = 4096
SCHED_MIGRATIONS = re.compile(rb"^se\.nr_migrations\s*:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The outcome of a program's execution.

    `code`: the exit code as in a shell, 128 + N for signal N. `begin`, `end`: times in ticks of quiet's clock.
    `ran_ns`, `waited_ns`, `migrations`: for the program's first thread, the time on a CPU, the time runnable without a
    CPU, and the number of migrations; None if the kernel does not report them. `errors`: the last line that the program
    wrote to stderr, or its last lines on stdout and stderr if stdout is kept; "" for none.
    """

    code: int
    wall_ns: int
    user_us: int
    system_us: int
    voluntary: int
    involuntary: int
    minor_faults: int
    major_faults: int
    begin: int
    end: int
    ran_ns: int | None
    waited_ns: int | None
    migrations: int | None
    errors: str


class Launcher:
    """Executes programs under constant conditions: no input, output discarded, the same CPUs and environment."""

    def __init__(
        self,
        environment: Mapping[str, str],
        cpus: Collection[int] | None,
        timeout: float | None,
        on_timeout: str = "",
        quote_output: bool = False,
    ) -> None:
        """Prepare the environment. `cpus`: the CPUs of the programs, None for those of this process. `on_timeout`:
        advice in the message about a late program. `quote_output`: keep stdout in the file of stderr.
        """
        self._environment = {k: _variable(k, v) for k, v in environment.items() if k != PADDING}
        self._mask = None if cpus is None else ffi.new("uint8_t[]", _mask(cpus))
        self._timeout, self._advice = timeout, f" ({on_timeout})" if on_timeout else ""
        self._null = _own(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        with tempfile.TemporaryFile() as file:  # on disk, because a program may write a lot
            self._errors = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, FIRST_OWN)
        self._process = ffi.new("cb_process *")
        self._guard = GroupGuard()
        self._files = ffi.new(
            "int[4]", [self._null, self._errors if quote_output else self._null, self._errors, self._guard.file]
        )
        self._last_lines = LAST_LINES if quote_output else 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guard.close()
        os.close(self._null)
        os.close(self._errors)

    def run(
        self,
        path: str,
        argv: Sequence[str],
        padding: int = 0,
        variables: Sequence[tuple[str, str]] = (),
        name: str = "",
    ) -> ProgramEnd:
        """Execute a program and wait for its end.

        `padding`: extra bytes in its environment; `variables`: additional variables; `name`: for the message
        about a late program. Raises UsageError if the program
        cannot be executed or does not end in time, and Refused if it is not permitted on these CPUs.
        """
        words = [ffi.new("char[]", os.fsencode(word)) for word in argv]
        pad = ffi.new("char[]", f"{PADDING}={'x' * padding}".encode())
        process, mask = self._process, self._mask
        environment = {**self._environment, **{name: _variable(name, value) for name, value in variables}}
        vectors = (
            ffi.new("char *[]", [*words, ffi.NULL]),
            ffi.new("char *[]", [*environment.values(), pad, ffi.NULL]),
        )
        cpus = (ffi.NULL, 0) if mask is None else (mask, ffi.sizeof(mask))
        file = ffi.new("char[]", os.fsencode(path))
        begin = ticks()
        failed = lib.cb_process_start(file, *vectors, self._files, *cpus, process)
        if failed:
            self._guard.release()
            raise _not_started(path, -failed)
        try:
            self._wait(process, name or argv[0])
        except BaseException:
            end_group(process.pid)
            self._guard.release()
            lib.cb_process_reap(process)
            raise
        end = ticks()
        self._guard.release()
        scheduled = [int(word) for word in _content(f"/proc/{process.pid}/schedstat").split()]
        moved = SCHED_MIGRATIONS.search(_content(f"/proc/{process.pid}/sched"))
        if failed := lib.cb_process_reap(process):
            raise QuietError(f"{path}: another thread has collected its exit status ({os.strerror(-failed)})")
        code = os.waitstatus_to_exitcode(process.status)
        return ProgramEnd(
            code=code if code >= 0 else 128 - code,
            wall_ns=process.end_ns - process.begin_ns,
            user_us=process.user_us,
            system_us=process.system_us,
            voluntary=process.voluntary,
            involuntary=process.involuntary,
            minor_faults=process.minor_faults,
            major_faults=process.major_faults,
            begin=begin,
            end=end,
            ran_ns=scheduled[0] if scheduled else None,
            waited_ns=scheduled[1] if scheduled else None,
            migrations=int(moved[1]) if moved else None,
            errors=self._reported(),
        )

    def _wait(self, process: Any, name: str) -> None:
        left_ms = None if self._timeout is None else int(self._timeout * 1000)
        while True:
            wait_ms = SLICE_MS if left_ms is None else min(SLICE_MS, left_ms)
            ended = lib.cb_process_wait(process, wait_ms)
            if ended == 1:
                return
            if ended < 0 and ended != -errno.EINTR:
                raise QuietError(f"{name}: cannot be waited for: {os.strerror(-ended)}")
            if left_ms is not None and ended == 0:
                left_ms -= wait_ms
                if left_ms <= 0:
                    raise UsageError(f"{name}: timed out after {self._timeout:g} s and was killed{self._advice}")

    def _reported(self) -> str:
        """The last lines that the program wrote; the rest is discarded."""
        size = os.fstat(self._errors).st_size
        if not size:
            return ""
        text = os.pread(self._errors, MOST_ERRORS, max(0, size - MOST_ERRORS)).decode(errors="replace")
        os.ftruncate(self._errors, 0)
        os.lseek(self._errors, 0, os.SEEK_SET)
        lines = [line for line in text.splitlines() if line.strip()]
        return " | ".join(line.strip()[:LONGEST_LINE] for line in lines[-self._last_lines :])


def _variable(name: str, value: str) -> Any:
    """An environment variable as a C string."""
    return ffi.new("char[]", os.fsencode(f"{name}={value}"))


def _own(fd: int) -> int:
    """Move a file descriptor to a number above those of the standard streams, closing the original."""
    if fd >= FIRST_OWN:
        return fd
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN)
    os.close(fd)
    return copy


def _mask(cpus: Collection[int]) -> bytes:
    """The mask for sched_setaffinity(2): longs in the host's byte order, little-endian on supported machines."""
    return sum(1 << cpu for cpu in cpus).to_bytes((max(cpus) // 64 + 1) * 8, "little")


def _content(path: str) -> bytes:
    """Read a short file of /proc with one read(2); b"" if the file cannot be opened."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, MOST_ERRORS)
    finally:
        os.close(fd)


def _not_started(path: str, error: int) -> QuietError:
    if error == errno.ENOEXEC:
        return UsageError(f"{path}: neither a program for this machine nor a script with #!; name its interpreter")
    if error == errno.EINVAL:
        return Refused(f"{path}: not permitted on these CPUs; choose other CPUs with --cpu")
    return UsageError(f"{path}: {os.strerror(error)}")
