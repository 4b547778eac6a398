"""What goes to the kernel module and comes back, as in cbench/kmod/cbench_kmod.h, and its refusals in words."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from cbench.machine import counters
from quiet import QuietError, Refused, UsageError

VERSION = 1
PARAMS_MAX = 6
TRIALS_MAX = 1_000_000
REGION_NS, REGION_MAX_NS = 100_000_000, 500_000_000
STOP_MACHINE = 1
COUNTERS = {"auto": 0, "cycles": 1, counters.ticks_name(): 2}

REQUEST = struct.Struct("<II32s6QQ6IQQ4IQQQiI")
RUN = 3 << 30 | REQUEST.size << 16 | 0xC8 << 8 | 1  # _IOWR(0xC8, 1, struct cbench_request)
NEEDS_ROOT = "--in-kernel needs root (CAP_SYS_ADMIN): it switches interrupts off"


class Reason(IntEnum):
    """Why the module did not do all of what was asked."""

    DONE = 0
    BAD_VERSION = 1
    BAD_REQUEST = 2
    BAD_WORKLOAD = 3
    BAD_PARAM = 4
    BAD_TRIALS = 5
    CPU_OFFLINE = 6
    NOT_BOUND = 7
    BUSY = 8
    NO_MEMORY = 9
    NO_CYCLES = 10
    TOO_LONG = 11
    SIGNAL = 12
    CPU_GONE = 13
    COUNTER_LOST = 14


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """What the module wrote, and the ioctl's errno (0: none)."""

    error: int
    reason: int
    counter: int
    width: int
    done: int
    overhead: int
    region_ns: int
    fitting_n: int
    pmu_error: int


def ask(device: int, request: bytearray) -> ModuleAnswer:
    """One ioctl. What the module wrote is read also where it ends with an error."""
    error = 0
    try:
        fcntl.ioctl(device, RUN, request)
    except OSError as failure:
        error = failure.errno or errno.EIO
    return ModuleAnswer(error, *REQUEST.unpack(request)[-9:-1])


def refusal(answer: ModuleAnswer, function: str, params: Mapping[str, int], cpu: int, limit_ns: int) -> QuietError:
    """What an answer with an error says, and what to do."""
    reason, error = answer.reason, answer.error
    work = f"{function} {' '.join(f'{name}={value:,}' for name, value in params.items())}"
    if error == errno.EPERM and reason == Reason.DONE:
        return Refused(NEEDS_ROOT)
    if error == errno.ENOTTY or reason in (Reason.BAD_VERSION, Reason.BAD_WORKLOAD):
        return Refused(
            "the loaded module is of another version of cbench: as root, rmmod cbench, then build and load this one"
        )
    if reason == Reason.BAD_PARAM:
        return UsageError(work.replace(" ", " in the kernel does not take ", 1))
    if reason == Reason.NO_CYCLES:
        why = counters.reason(answer.pmu_error)
        return UsageError(f"counter cycles is unavailable in the kernel: {why}; use {counters.ticks_name()}")
    took = f"{answer.region_ns / 1e6:,.0f} ms" if answer.region_ns < 3600 * 10**9 else "hours"
    moved = f"CPU {cpu} went offline, or this process was moved off it"
    words = {
        Reason.CPU_OFFLINE: moved,
        Reason.NOT_BOUND: moved,
        Reason.BUSY: "somebody else is measuring in the kernel: wait until that has ended",
        Reason.NO_MEMORY: f"{work}: the kernel has not that much memory to spare",
        Reason.TOO_LONG: f"{work}: interrupts would be off for {took} or more a trial, at most {limit_ns / 1e6:g} ms "
        f"are allowed; try --param n={max(1, answer.fitting_n)}",
        Reason.SIGNAL: "interrupted by a signal before the first trial",
    }
    otherwise = f"the kernel module refused: {os.strerror(error)} (reason {reason})"
    return Refused(words.get(Reason(reason), otherwise))
