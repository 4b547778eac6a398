"""Open the counters of this host, or report why one is unavailable.

Sources: perf_event_open(2); linux/perf_event.h (extended hardware types: the PMU's number in the upper half
of `config`); Documentation/arch/arm64/perf.rst (config1: bit 1 user access, bit 0 a 64-bit count).
"""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from cbench._cbench import ffi, lib
from cbench.machine import chains, events
from cbench.machine.describe import cpuinfo_field
from cbench.machine.events import AUTO, MOST, CounterEvent
from cbench.model import CALIBRATED_UNIT, Counter
from quiet import Reader, UsageError, parse_cpus

DEVICES = "/sys/bus/event_source/devices"
TICKS = {"x86_64": ("tsc", "TSC ticks"), "aarch64": ("cntvct", "cntvct ticks")}
ARM = ("armv8", "armv9")
"""The prefixes of the names of PMUv3 PMUs, regardless of the CPU's architecture."""
HYBRID = ("cpu_core", "cpu_atom")
CALIBRATED = "calibrated-cycles"
CALIBRATED_METHOD = "clock and chains of additions, read in user space"
PREFERRED = ("cycles", "cycles:u")
EXCLUDE = {"": 0, "u": lib.CB_EXCLUDE_KERNEL, "k": lib.CB_EXCLUDE_USER}

REASONS = {
    errno.ENOENT: "no such hardware counter here (this PMU lacks it, or a virtual machine shows no PMU)",
    errno.EACCES: "kernel.perf_event_paranoid does not allow it without root",
    errno.EPERM: "not permitted here (kernel.perf_event_paranoid, or a container's seccomp filter)",
    errno.ENOSYS: "this kernel has no perf_event_open",
    errno.EBUSY: "the PMU has no counter left for it",
    errno.ENODATA: "the hardware counter opens but does not count",
    errno.EOPNOTSUPP: "this CPU's PMU does not support it",
    errno.E2BIG: f"more than {MOST} events in addition to the counter",
}

METHODS = {
    lib.CB_READ_TICKS: "clock read in user space",
    lib.CB_READ_USER: "perf_event, read in user space",
    lib.CB_READ_SYSCALL: "perf_event, read by system call",
}

Attempt = tuple[int, int, int]
"""perf_event_attr's type, config and config1."""


def ticks_name() -> str:
    """The name of this architecture's clock for --counter."""
    return TICKS[platform.machine()][0]


def names() -> tuple[str, ...]:
    """The names of all counters, the preferred ones first. Except for cycles:u, names with the modifiers :u and :k are
    omitted.
    """
    rest = [name for name in events.EVENTS if name not in PREFERRED]
    return (*PREFERRED, CALIBRATED, ticks_name(), *rest)


def vendor(host: Reader) -> str:
    """The x86 vendor's ID string; "" on other processors."""
    return cpuinfo_field(host.text("/proc/cpuinfo") or "", "vendor_id")


def attempts(event: CounterEvent, cpu: int, host: Reader | None = None) -> list[Attempt]:
    """The perf events to try in turn for this CPU: its own PMU first, the kernel's generic event last."""
    tries: list[Attempt] = []
    host = host or Reader()
    raw = event.raw.get(vendor(host))
    for device, number in _pmus(cpu, host) if not event.software else ():
        if device.startswith(ARM) and event.armv8 is not None and _implemented(host, device, event.armv8_name):
            tries += [(number, event.armv8, config1) for config1 in (3, 2, 0)]
        elif device in HYBRID:
            if raw is not None:
                tries.append((number, raw, 0))
            if event.generic:
                tries.append((event.generic[0], number << 32 | event.generic[1], 0))
    if raw is not None and not tries:
        tries.append((events.RAW, raw, 0))
    return [*tries, (*event.generic, 0)] if event.generic else tries


def _pmus(cpu: int, host: Reader) -> Iterator[tuple[str, int]]:
    """The names and numbers of this CPU's PMUs."""
    for device in host.names(DEVICES):
        cpus, number = (host.text(f"{DEVICES}/{device}/{name}") or "" for name in ("cpus", "type"))
        if number.isdecimal() and cpu in parse_cpus(cpus):
            yield device, int(number)


def own_pmu(cpu: int, host: Reader | None = None) -> int:
    """The number of the CPU's own PMU on hybrid x86 CPUs, otherwise 0."""
    return next((number for device, number in _pmus(cpu, host or Reader()) if device in HYBRID), 0)


def _implemented(host: Reader, device: str, name: str) -> bool:
    """Whether sysfs lists the event for this PMU: an event that the PMU lacks can still be opened, but counts
    nothing.
    """
    folder = f"{DEVICES}/{device}/events"
    return not name or not host.names(folder) or host.exists(f"{folder}/{name}")


def reason(error: int) -> str:
    """The reason for a failure as text; `error`: the negative errno."""
    return f"{REASONS.get(-error, os.strerror(-error))} [{errno.errorcode.get(-error, -error)}]"


def _known(name: str) -> tuple[CounterEvent, str]:
    event = events.split(name)
    if event is None:
        most = ", ".join(names())
        raise UsageError(f"unknown counter {name!r}: use auto, {most}; hardware events also with :u or :k")
    return event


def open_counter(name: str, cpu: int) -> tuple[Counter, Any]:
    """The counter and its C handle (None if unavailable) for the calling thread, which must be pinned to `cpu`.

    Raises UsageError for a name that is not a counter.
    """
    handle = ffi.new("cb_counter **")
    if name == CALIBRATED:
        return _calibrated()
    if name == ticks_name():
        error = lib.cb_ticks_create(handle)
        why = "a clock of constant rate, not core cycles"
        unit = TICKS[platform.machine()][1]
    else:
        event, mode = _known(name)
        unit = event.unit
        why = event.meaning if event.software else events.MODES.get(mode, "in user mode and in the kernel")
        error = -errno.ENOENT
        how = EXCLUDE[mode] | (lib.CB_MUST_COUNT if name in events.BUSY else 0)
        for kind, config, config1 in attempts(event, cpu):
            error = lib.cb_perf_create(kind, config, config1, how, handle)
            if error == 0 or -error in (errno.EACCES, errno.EPERM):
                break
    if error:
        return Counter(name, unit, False, reason(error)), None
    return Counter(name, unit, True, why, METHODS[handle[0].mode]), handle[0]


def _calibrated(by_name: bool = False) -> tuple[Counter, Any]:
    """The counter of calibrated cycles and its C handle. `by_name`: open it even if chains cannot measure cycles, which
    the results then report.
    """
    calibration = chains.calibration()
    if calibration.obstacle and not by_name:
        return Counter(CALIBRATED, CALIBRATED_UNIT, False, calibration.obstacle), None
    handle = ffi.new("cb_counter **")
    error = lib.cb_ticks_create(handle)
    if error:
        return Counter(CALIBRATED, CALIBRATED_UNIT, False, reason(error)), None
    why = calibration.obstacle or (
        "core cycles, calibrated by the time that dependent additions take right before and after a trial"
    )
    return Counter(CALIBRATED, CALIBRATED_UNIT, True, why, CALIBRATED_METHOD, calibration=calibration), handle[0]


def choose(name: str, cpu: int) -> tuple[Counter, Any]:
    """The named counter, or for "auto" the first available of cycles, cycles:u, calibrated cycles and the clock.

    Raises UsageError if the named counter is unknown or unavailable, or if no counter is available. If calibrated
    cycles are named but unusable, only the results report that.
    """
    if name != AUTO:
        counter, handle = _calibrated(by_name=True) if name == CALIBRATED else open_counter(name, cpu)
        if handle is None:
            raise UsageError(f"counter {name} is unavailable: {counter.why}; see `cbench list`")
        return counter, handle
    refused: dict[str, list[str]] = {}
    for candidate in (*PREFERRED, CALIBRATED, ticks_name()):
        counter, handle = open_counter(candidate, cpu)
        if handle is not None:
            return replace(counter, why="; ".join([counter.why, *_unavailable(refused)])), handle
        refused.setdefault(counter.why, []).append(candidate)
    raise UsageError("no counter is available: " + "; ".join(_unavailable(refused)))


def _unavailable(refused: dict[str, list[str]]) -> list[str]:
    return [f"{' and '.join(names)} unavailable: {why}" for why, names in refused.items()]


def add_events(counter: Counter, handle: Any, wanted: Sequence[str] | None, cpu: int) -> Counter:
    """Add events to the counter's C handle, and return the counter with their names: `wanted`, or suitable events if
    `wanted` is None. With the counter cycles, wanted events are preceded by IN_KERNEL if there is room.

    An unavailable event is omitted with its reason. Raises UsageError if that event was requested by name.
    """
    chosen = [name for name in (_automatic(counter) if wanted is None else wanted) if name != counter.name]
    if wanted and counter.name == PREFERRED[0] and events.IN_KERNEL not in chosen and len(chosen) < MOST:
        chosen = [events.IN_KERNEL, *chosen]
    got: list[str] = []
    left_out: dict[str, str] = {}
    for name in chosen:
        event, mode = _known(name)
        error = -errno.ENOENT
        for kind, config, config1 in attempts(event, cpu):
            error = lib.cb_counter_add(handle, kind, config, config1, EXCLUDE[mode] or _as(counter, name))
            if not error:
                break
        if not error:
            got.append(name)
        elif wanted and name in wanted:
            raise unavailable(name, counter, reason(error))
        else:
            left_out[name] = reason(error)
    return replace(counter, others=tuple(got), left_out=left_out)


def unavailable(name: str, counter: Counter, why: str) -> UsageError:
    """The error for an event that was requested by name and is unavailable."""
    return UsageError(f"--events {name}: unavailable together with {counter.name}: {why}; see `cbench list`")


def _as(counter: Counter, name: str) -> int:
    """The mode in which to count an event: user mode only, if the event is in USER_FAULTS and the counter counts only
    user mode; otherwise both modes.
    """
    return EXCLUDE["u"] if counter.name.endswith(":u") and name in events.USER_FAULTS else 0


def _automatic(counter: Counter) -> list[str]:
    if counter.name == "cycles":
        return list(events.AUTOMATIC)
    return list(events.AUTOMATIC_USER) if counter.name == "cycles:u" else []


def survey(cpu: int) -> list[Counter]:
    """Every counter with its availability, as this process sees it on `cpu`."""
    counters = []
    for name in names():
        counter, handle = open_counter(name, cpu)
        if handle is not None:
            lib.cb_counter_destroy(handle)
        counters.append(counter)
    return counters
