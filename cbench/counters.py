"""The counters of this host: each is opened, or says why it cannot be.

Sources: perf_event_open(2); linux/perf_event.h (extended hardware types: the PMU's number in the upper half
of `config`); Documentation/arch/arm64/perf.rst (config1: bit 1 user access, bit 0 a 64-bit count).
"""

from __future__ import annotations

import errno
import os
import platform
from dataclasses import dataclass, replace
from typing import Any

from cbench._cbench import ffi, lib
from cbench.model import Counter
from quiet import cpulist
from quiet.errors import UsageError
from quiet.host import Reader

DEVICES = "/sys/bus/event_source/devices"
TICKS = {"x86_64": ("tsc", "TSC ticks"), "aarch64": ("cntvct", "cntvct ticks")}
DELTAS = 20_000


@dataclass(frozen=True, slots=True)
class Event:
    """What perf_event_open is asked for: the generic number, and the arm64 PMU's own."""

    generic: int
    armv8: int
    unit: str
    user_only: bool


EVENTS = {
    "cycles": Event(0, 0x11, "cycles", False),
    "cycles:u": Event(0, 0x11, "cycles", True),
    "instructions:u": Event(1, 0x08, "instructions", True),
}

REASONS = {
    errno.ENOENT: "no such hardware counter here (usual in a virtual machine without a virtual PMU)",
    errno.EACCES: "kernel.perf_event_paranoid does not allow it without root",
    errno.EPERM: "not permitted here (kernel.perf_event_paranoid, or a container's seccomp filter)",
    errno.ENOSYS: "this kernel has no perf_event_open",
    errno.EBUSY: "the hardware counter is taken",
    errno.ENODATA: "the hardware counter opens but does not count",
    errno.EOPNOTSUPP: "this CPU's PMU does not support it",
}

METHODS = {
    lib.CB_READ_TICKS: "clock read in user space",
    lib.CB_READ_USER: "perf_event, read in user space",
    lib.CB_READ_SYSCALL: "perf_event, read by system call",
}


def ticks_name() -> str:
    """The clock of this architecture, by the name that --counter takes."""
    return TICKS[platform.machine()][0]


def names() -> tuple[str, ...]:
    """All counters, the preferred ones first."""
    return (*EVENTS, ticks_name())


def attempts(event: Event, cpu: int, host: Reader | None = None) -> list[tuple[int, int, int]]:
    """(type, config, config1) to try in turn for this CPU: its own PMU first, the generic event last."""
    found: list[tuple[int, int, int]] = []
    host = host or Reader()
    for device in host.names(DEVICES):
        cpus, number = (host.text(f"{DEVICES}/{device}/{name}") or "" for name in ("cpus", "type"))
        if not number.isdecimal() or cpu not in cpulist.parse(cpus):
            continue
        if device.startswith("armv8"):
            found += [(int(number), event.armv8, 3), (int(number), event.armv8, 0)]
        elif device in ("cpu_core", "cpu_atom"):
            found.append((0, int(number) << 32 | event.generic, 0))
    return [*found, (0, event.generic, 0)]


def open_counter(name: str, cpu: int) -> tuple[Counter, Any]:
    """The counter and its C handle (None when unavailable) for the calling thread, pinned to `cpu`.

    Raises UsageError for a name that is no counter.
    """
    handle = ffi.new("cb_counter **")
    if name == ticks_name():
        error = lib.cb_ticks_create(handle)
        why = "a clock of constant rate, not core cycles"
        unit = TICKS[platform.machine()][1]
    elif name in EVENTS:
        event = EVENTS[name]
        unit = event.unit
        why = "in user mode only" if event.user_only else "in user mode and in the kernel"
        for kind, config, config1 in attempts(event, cpu):
            error = lib.cb_perf_create(kind, config, config1, event.user_only, handle)
            if error == 0 or -error in (errno.EACCES, errno.EPERM):
                break
    else:
        raise UsageError(f"unknown counter {name!r}: use auto, {', '.join(names())}")
    if error:
        reason = REASONS.get(-error, os.strerror(-error))
        return Counter(name, unit, False, f"{reason} [{errno.errorcode.get(-error, -error)}]"), None
    return Counter(name, unit, True, why, METHODS[lib.cb_counter_mode(handle[0])]), handle[0]


def choose(name: str, cpu: int) -> tuple[Counter, Any]:
    """The named counter, or for "auto" the first available of cycles, cycles:u and the clock.

    Raises UsageError when the named one is unavailable.
    """
    if name != "auto":
        counter, handle = open_counter(name, cpu)
        if handle is None:
            raise UsageError(f"counter {name} is unavailable: {counter.why}; see `cbench list`")
        return counter, handle
    refused: dict[str, list[str]] = {}
    for candidate in ("cycles", "cycles:u", ticks_name()):
        counter, handle = open_counter(candidate, cpu)
        if handle is not None:
            return replace(counter, why="; ".join([counter.why, *_unavailable(refused)])), handle
        refused.setdefault(counter.why, []).append(candidate)
    raise UsageError("no counter at all: " + "; ".join(_unavailable(refused)))


def _unavailable(refused: dict[str, list[str]]) -> list[str]:
    return [f"{' and '.join(names)} unavailable: {why}" for why, names in refused.items()]


def survey(cpu: int) -> list[Counter]:
    """Every counter with its availability, as this process sees it on `cpu`."""
    found = []
    for name in names():
        counter, handle = open_counter(name, cpu)
        if handle is not None:
            lib.cb_counter_destroy(handle)
        found.append(counter)
    return found


def ticks_deltas() -> list[int]:
    """Differences between two reads of the clock around 0 to 63 multiplications."""
    deltas = ffi.new("uint64_t[]", DELTAS)
    lib.cb_ticks_deltas(deltas, DELTAS)
    return list(deltas)
