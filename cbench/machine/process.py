"""Set properties of this process: CPUs, fixed addresses, locked memory, and ending with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Self

_LIBC = ctypes.CDLL(None, use_errno=True)
ASK, NO_RANDOMIZE = 0xFFFFFFFF, 0x0040000  # sys/personality.h
PR_SET_PDEATHSIG = 1
MCL_CURRENT, MCL_FUTURE = 1, 2


def addresses_fixed() -> bool:
    """Whether this process was executed without address space randomization."""
    now: int = _LIBC.personality(ASK)
    return now >= 0 and bool(now & NO_RANDOMIZE)


@contextlib.contextmanager
def addresses(fixed: bool) -> Iterator[bool]:
    """A context in which new child processes run with ASLR, or without it if `fixed`. Yields False if that is not
    permitted.
    """
    before: int = _LIBC.personality(ASK)
    if before < 0:
        yield False
        return
    _LIBC.personality(before | NO_RANDOMIZE if fixed else before & ~NO_RANDOMIZE)
    try:
        yield addresses_fixed() == fixed
    finally:
        _LIBC.personality(before)


@contextlib.contextmanager
def affinity(cpus: Collection[int]) -> Iterator[None]:
    """A context in which this thread runs on these CPUs; its affinity is restored at the end. Raises OSError if the
    thread may not run on them.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # all CPUs of the old affinity are offline now
            os.sched_setaffinity(0, before)


def die_with_parent(parent: int) -> bool:
    """Make the kernel kill this process when its parent (process ID `parent`) ends. Returns False if the parent has
    already ended, or if prctl() fails.
    """
    return _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0 and os.getppid() == parent


class GroupGuard:
    """Kills a command's process group when this process is killed, SIGKILL included.

    The kernel's parent-death signal reaches only the command; its children would continue and disturb the next
    measurement. A shell in a separate session waits for the end of a pipe that only this process holds, then kills the
    group whose number is in a shared file (`file`, a descriptor). Until then it sleeps, so it interrupts no trial. The
    command writes this number itself, before its exec, so its children never exist without the guard.
    """

    _SCRIPT = """trap '' HUP INT TERM; read -r _; read -r group <&1 && [ "$group" -gt 1 ] && kill -s KILL -- -$group"""
    _WIDTH = 20  # as in cbench/c/process.c

    def __init__(self) -> None:
        """Start the guard. Raises OSError if that fails."""
        self.file = os.memfd_create("cbench-group")
        try:
            self.release()
            read, self._alive = os.pipe2(os.O_CLOEXEC)
            try:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", self._SCRIPT],
                    stdin=read,
                    stdout=self.file,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except BaseException:
                os.close(self._alive)
                raise
            finally:
                os.close(read)
        except BaseException:
            os.close(self.file)
            raise

    def hold(self, group: int) -> None:
        """Make this the process group that the guard kills."""
        os.pwrite(self.file, f"{group:{self._WIDTH}}\n".encode(), 0)

    def release(self) -> None:
        """Leave the guard without a process group to kill."""
        self.hold(0)

    def close(self) -> None:
        """End the guard."""
        self.release()
        os.close(self._alive)
        self._shell.wait()
        os.close(self.file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_memory(ranges: Sequence[tuple[int, int]]) -> str:
    """Lock, and so prefault, all memory of this process; if the limit does not allow that, only these ranges (address,
    length).

    Returns "all", or "buffers only" or "none" with the reason.
    """
    unlimited = os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
    if not _LIBC.mlockall(MCL_CURRENT | (MCL_FUTURE if unlimited else 0)):
        return "all"
    why = os.strerror(ctypes.get_errno())
    for start, size in ranges:
        if _LIBC.mlock(ctypes.c_void_p(start), ctypes.c_size_t(size)):
            return f"none ({os.strerror(ctypes.get_errno())})"
    return f"buffers only ({why})"
