"""Count the cycles and CPU time of a command and its descendants by perf_event_open(2) with `inherit`.

The event is opened for the calling thread, but not enabled. A child inherits the event, which its first exec enables
(enable_on_exec), so nothing of this process is counted. A child's count is added when the child ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from typing import Self

from cbench.study.instruments.instrument import (
    CPU_CLOCK,
    CYCLES,
    CYCLES_USER,
    TASK_CLOCK,
    HostInstrument,
    Instrument,
    Sampling,
    probed,
)
from cbench.study.process.run_command import Execution, Probe, Reading
from quiet import UsageError

CALLS = {"x86_64": 298, "aarch64": 241}
HARDWARE, SOFTWARE = 0, 1
PERF_CPU_CYCLES, PERF_CPU_CLOCK, PERF_TASK_CLOCK = 0, 0, 1
CLOCKS = (TASK_CLOCK, CPU_CLOCK)
EVENTS = {
    CYCLES: (HARDWARE, PERF_CPU_CYCLES),
    CYCLES_USER: (HARDWARE, PERF_CPU_CYCLES),
    TASK_CLOCK: (SOFTWARE, PERF_TASK_CLOCK),
    CPU_CLOCK: (SOFTWARE, PERF_CPU_CLOCK),
}
"""The type and config of each event. The two clocks count nanoseconds and exist in every kernel with perf_event."""
DISABLED, INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR, ENABLE_ON_EXEC = 1, 2, 1 << 5, 1 << 6, 1 << 12
ENABLED_TIME, RUNNING_TIME = 1, 2
CLOSE_ON_EXEC = 8
DENIED = (-errno.EACCES, -errno.EPERM)
SIZE = 64  # PERF_ATTR_SIZE_VER0


class Counting:
    """A probe that counts an event of the command that this process starts, from the start of the command to its
    end.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._fd = -1

    def obstacle(self, path: str | None) -> str:
        try:
            check(self.name)
        except UsageError as error:
            return f"read = {self.name!r} is unavailable here: {error}"
        return ""

    def __enter__(self) -> Self:
        """Open the event. Raises UsageError, with the reason, if it cannot be counted."""
        self._fd = _opened(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def wrap(self, shell: list[str]) -> list[str]:
        return shell

    def reading(self) -> Reading:
        """The count, in ns for clocks; no value if the counter was shared with another user of the PMU. Call this after
        the command has ended.
        """
        value, enabled, running = struct.unpack("=QQQ", os.read(self._fd, 24))
        if running and running >= enabled:
            return Reading(value, facts={"counts": {self.name: value}})
        share = 100 * running / enabled if enabled else 0.0
        why = f"the counter counted for only {share:.0f} % of the time: other programs use the PMU too"
        return Reading(None, why, {"counts": {self.name: why}})


class EventCount(Instrument):
    """Reads a count of perf_event_open(2): cycles, or the time of a clock."""

    def __init__(self, source: str, unit: str, what: str) -> None:
        self.source, self.unit, self._what = source, unit, what
        self.judged = (source,)

    def probe(self, sampling: Sampling | None) -> Probe:
        return Counting(self.source)

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        count = probed(self.source, done, "was not counted")
        return (count / 1e9, f"{count} ns") if self.source in CLOCKS else (float(count), str(count))

    def on_host(self, read: str) -> HostInstrument:
        try:
            check(self.source)
            missing = ""
        except UsageError as error:
            missing = str(error).removeprefix(f"{self.source}: ")
        if self.source in CLOCKS:
            why = "the kernel's clock in nanoseconds; `perf stat` prints it with a resolution of 0.01 ms"
            return HostInstrument(read, self.unit, self._what, 1e-9, why, missing)
        return HostInstrument(read, self.unit, self._what, None, "counted by the PMU", missing)


EVENT_COUNTS = (
    EventCount(CYCLES, "cycles", "CPU cycles"),
    EventCount(CYCLES_USER, "cycles", "CPU cycles in user mode"),
    *(EventCount(name, "s", "CPU time, from the command's execve() on") for name in CLOCKS),
)


def check(name: str) -> None:
    """Raise UsageError if this host cannot count the event."""
    os.close(_opened(name))


def _opened(name: str) -> int:
    kind, config = EVENTS[name]
    how = DISABLED | INHERIT | ENABLE_ON_EXEC | EXCLUDE_HYPERVISOR
    if name == CYCLES_USER:
        how |= EXCLUDE_KERNEL
    if platform.machine() not in CALLS:
        raise UsageError(f"{name}: cbench cannot count this event on {platform.machine()}")
    fd = _open(kind, config, how)
    if fd in DENIED and name in CLOCKS:
        # Without permission to observe the kernel, the event must exclude it; a clock that is only read, not sampled,
        # counts kernel time nevertheless.
        fd = _open(kind, config, how | EXCLUDE_KERNEL)
    if fd < 0:
        from cbench.machine.counters import reason

        user = '; read = "cycles:u" counts only the cycles in user mode' if fd in DENIED and name == CYCLES else ""
        raise UsageError(f"{name}: {reason(fd)}{user}")
    return fd


def _open(kind: int, config: int, how: int) -> int:
    """Open an event; returns the file descriptor, or a negative errno."""
    event = struct.pack("=IIQQQQQIIQ", kind, SIZE, config, 0, 0, ENABLED_TIME | RUNNING_TIME, how, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(CALLS[platform.machine()], event, 0, -1, -1, CLOSE_ON_EXEC)
    return int(fd) if fd >= 0 else -ctypes.get_errno()
