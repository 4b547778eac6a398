"""Count events of a CPU, or of a task and its children, with perf_event_open(2).

Source: include/uapi/linux/perf_event.h.
"""

from __future__ import annotations

import os
import struct
from types import TracebackType

_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTR = struct.Struct("=IIQQQQQ")  # type, size, config, sample_period, sample_type, read_format, flags
_ATTR_SIZE = 64  # PERF_ATTR_SIZE_VER0
_TIMES = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING
_INHERIT, _EXCLUDE_KERNEL = 1 << 1, 1 << 5
_CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC
HARDWARE, SOFTWARE, RAW = 0, 1, 4
CYCLES, REF_CYCLES = 0, 9  # configs of HARDWARE
MIGRATIONS = 4  # config of SOFTWARE


class PerfCounter:
    """One counter, which counts from its creation. Raises OSError if the kernel denies or lacks the event."""

    def __init__(self, kind: int, config: int, *, cpu: int = -1, pid: int = -1, user_only: bool = False) -> None:
        """Count on a CPU, or for the task `pid` and the children that it starts from now on."""
        import ctypes

        number = _SYSCALL.get(os.uname().machine)
        if number is None:
            raise OSError(38, os.strerror(38))
        flags = (_INHERIT if pid > 0 else 0) | (_EXCLUDE_KERNEL if user_only else 0)
        attr = _ATTR.pack(kind, _ATTR_SIZE, config, 0, 0, _TIMES, flags).ljust(_ATTR_SIZE, b"\0")
        call = ctypes.CDLL(None, use_errno=True).syscall
        call.argtypes = (ctypes.c_long, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ulong)
        call.restype = ctypes.c_long
        self._fd: int = call(number, attr, pid, cpu, -1, _CLOSE_ON_EXEC)
        if self._fd < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def read(self) -> float:
        """The count so far, scaled to the whole time if the counter was multiplexed; 0.0 if it has not run yet."""
        value, enabled, running = struct.unpack("=QQQ", os.read(self._fd, 24))
        return float(value * enabled / running) if running else 0.0

    def close(self) -> None:
        """Stop counting."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> PerfCounter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
