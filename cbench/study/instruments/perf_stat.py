"""Cycles and CPU time of a command and of all that it starts, by the kernel: perf_event_open(2) with inherit.

The event is opened for the calling thread, disabled; a child inherits it and it is enabled with its first execution
(enable_on_exec), so nothing of this process is counted. A child's count is added when it ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from cbench.study import model
from quiet.errors import QuietError, UsageError

CALLS = {"x86_64": 298, "aarch64": 241}
HARDWARE, SOFTWARE = 0, 1
CPU_CYCLES, CPU_CLOCK, TASK_CLOCK = 0, 0, 1
EVENTS = {
    model.CYCLES: (HARDWARE, CPU_CYCLES),
    model.CYCLES_USER: (HARDWARE, CPU_CYCLES),
    model.TASK_CLOCK: (SOFTWARE, TASK_CLOCK),
    model.CPU_CLOCK: (SOFTWARE, CPU_CLOCK),
}
"""Type and config. The two clocks count nanoseconds and are in every kernel with perf_event."""
DISABLED, INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR, ENABLE_ON_EXEC = 1, 2, 1 << 5, 1 << 6, 1 << 12
ENABLED_TIME, RUNNING_TIME = 1, 2
CLOSE_ON_EXEC = 8
DENIED = (-errno.EACCES, -errno.EPERM)
SIZE = 64  # PERF_ATTR_SIZE_VER0


class Counting:
    """A count that is open. `value()` is to be asked after the command has ended."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def value(self) -> int:
        """The count, of the clocks nanoseconds.

        Raises QuietError where another user of the PMU had the counter for some of the time.
        """
        value, enabled, running = struct.unpack("=QQQ", os.read(self._fd, 24))
        if not running or running < enabled:
            share = 100 * running / enabled if enabled else 0.0
            raise QuietError(f"the counter was counting for {share:.0f} % of the time only: others use the PMU too")
        return int(value)


@contextmanager
def counting(name: str) -> Iterator[Counting]:
    """Count what this process starts meanwhile. Raises UsageError, which says why it cannot be counted."""
    fd = _opened(name)
    try:
        yield Counting(fd)
    finally:
        os.close(fd)


def check(name: str) -> None:
    """Raises UsageError where this host cannot count it."""
    os.close(_opened(name))


def _opened(name: str) -> int:
    kind, config = EVENTS[name]
    how = DISABLED | INHERIT | ENABLE_ON_EXEC | EXCLUDE_HYPERVISOR
    if name == model.CYCLES_USER:
        how |= EXCLUDE_KERNEL
    if platform.machine() not in CALLS:
        raise UsageError(f"{name}: not known how to count on {platform.machine()}")
    fd = _open(kind, config, how)
    if fd in DENIED and name in model.CLOCKS:
        # Who may not look into the kernel has to say so; a clock that is read, not sampled, counts all the same.
        fd = _open(kind, config, how | EXCLUDE_KERNEL)
    if fd < 0:
        from cbench.machine.counters import reason

        user = '; read = "cycles:u" counts those in user mode' if fd in DENIED and name == model.CYCLES else ""
        raise UsageError(f"{name}: {reason(fd)}{user}")
    return fd


def _open(kind: int, config: int, how: int) -> int:
    """A file descriptor, or a negative errno."""
    event = struct.pack("=IIQQQQQIIQ", kind, SIZE, config, 0, 0, ENABLED_TIME | RUNNING_TIME, how, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(CALLS[platform.machine()], event, 0, -1, -1, CLOSE_ON_EXEC)
    return int(fd) if fd >= 0 else -ctypes.get_errno()
