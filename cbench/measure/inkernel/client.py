"""Trials in the kernel, with interrupts off: the client of the module in cbench/kmod (docs/kernel-module.md).

What goes through the device is in ioctl.py.
"""

from __future__ import annotations

import array
import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cbench.machine import counters
from cbench.measure.inkernel import module
from cbench.measure.inkernel.ioctl import (
    COUNTERS,
    PARAMS_MAX,
    REGION_NS,
    REQUEST,
    STOP_MACHINE,
    TRIALS_MAX,
    VERSION,
    ModuleAnswer,
    Reason,
    ask,
    refusal,
    said,
)
from cbench.model import Counter
from quiet import QuietError, Reader, Refused, UsageError, parse_cpus

DEVICE = "/dev/cbench"
# Those of cbench/c/workloads that the module has, with their parameters in its order (None: must be given); the others
# use floating point, a system call, or too much time.
PARAMETERS: dict[str, dict[str, int | None]] = {
    "empty": {"n": None},
    "hash": {"n": None},
    "sieve": {"n": None},
    "memory": {"n": None, "size": None},
    "chase": {"n": None, "size": None, "stride": None, "pages": 1, "fit": 0},
    "branch": {"n": None, "pattern": None, "period": None},
}
WORKLOADS = tuple(PARAMETERS)


CUT_SHORT = {
    Reason.TOO_LONG: "trials took longer than interrupts may be off",
    Reason.SIGNAL: "interrupted by a signal",
    Reason.CPU_GONE: "the CPU went offline, or this process was moved off it",
    Reason.COUNTER_LOST: "the kernel took the hardware counter away",
}


@dataclass(frozen=True, slots=True)
class KernelTrials:
    """Trials in the order in which they ran.

    `counter.overhead` is the lowest value of an empty region, in the counter's unit. `longest_ns`: the longest time
    that interrupts were off. `cut_short`: why there are fewer trials than asked for, else "".
    """

    values: tuple[int, ...]
    outputs: tuple[int, ...]
    counter: Counter
    width: int
    longest_ns: int
    cut_short: str = ""


def measure(
    function: str,
    params: Mapping[str, int],
    cpu: int,
    trials: int,
    warmup: int,
    stop_machine: bool,
    *,
    rewarm: int = 0,
    counter: str = "auto",
    max_region_ns: int = REGION_NS,
) -> KernelTrials:
    """Run a workload of the module `trials` times on `cpu` with interrupts off, after `warmup` discarded times.

    `rewarm`: n of an untimed call before each trial, with
    interrupts off too; 0: none. `counter`: auto, cycles or ticks. `stop_machine` holds every other CPU during a trial.

    UsageError for what no module can do; Refused when it is not loaded, not allowed, or does not do this here.
    """
    numbers = _checked(function, params, trials, warmup)
    request = bytearray(REQUEST.size)
    written = array.array("Q", bytes(16 * trials))
    padded = [*numbers, *[0] * (PARAMS_MAX - len(numbers))]
    head = (VERSION, STOP_MACHINE if stop_machine else 0, function.encode(), *padded, rewarm)
    middle = (len(numbers), cpu, COUNTERS[counter], pmu_type(cpu), trials, warmup, max_region_ns)
    REQUEST.pack_into(request, 0, *head, *middle, written.buffer_info()[0], *[0] * 9)
    with opened() as device, bound(cpu):
        answer = ask(device, request)
    if answer.error:
        raise refusal(answer, function, params, cpu, max_region_ns)
    used = written[: 2 * answer.done]
    why = CUT_SHORT.get(Reason(answer.reason), "")
    return KernelTrials(tuple(used[0::2]), tuple(used[1::2]), _counter(answer), answer.width, answer.region_ns, why)


def _checked(function: str, params: Mapping[str, int], trials: int, warmup: int) -> list[int]:
    """The parameters in the module's order."""
    if function not in WORKLOADS:
        raise UsageError(f"{function} does not run in the kernel; {', '.join(WORKLOADS)} do")
    known = PARAMETERS[function]
    missing = {name for name, value in known.items() if value is None} - params.keys()
    if wrong := sorted(missing | params.keys() - known.keys()):
        raise UsageError(
            f"{function} in the kernel: {', '.join(wrong)}: missing or unknown; it takes {', '.join(known)}"
        )
    numbers = {name: params.get(name, value or 0) for name, value in known.items()}
    for name, value in numbers.items():
        if not 0 <= value < 2**64:
            raise UsageError(f"--param {name}={value}: not a number from 0 to 2^64 - 1")
    if not 1 <= trials <= TRIALS_MAX or not 0 <= warmup <= TRIALS_MAX:
        raise UsageError(f"in the kernel: 1 to {TRIALS_MAX:,} trials, at most as many for the warm-up")
    return list(numbers.values())


@contextlib.contextmanager
def opened() -> Iterator[int]:
    """The open device; Refused with what to do when it cannot be opened."""
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Refused(f"--in-kernel: {module.why_absent()}") from None
    except PermissionError:
        raise Refused("--in-kernel needs root (CAP_SYS_ADMIN): it switches interrupts off") from None
    except OSError as error:
        raise Refused(f"--in-kernel: {DEVICE}: {error.strerror}") from None
    try:
        yield device
    finally:
        os.close(device)


@contextlib.contextmanager
def bound(cpu: int) -> Iterator[None]:
    """This thread on that CPU alone, and then where it was before."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, ValueError, OverflowError) as error:
        raise _not_there(cpu, error) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # all of those CPUs have gone meanwhile
            os.sched_setaffinity(0, before)


def _not_there(cpu: int, error: Exception) -> QuietError:
    online = Reader().text("/sys/devices/system/cpu/online") or ""
    if cpu not in parse_cpus(online):
        return UsageError(f"CPU {cpu} is not online (online: {online})")
    why = error.strerror if isinstance(error, OSError) else str(error)
    return Refused(f"CPU {cpu}: this process may not run there ({why}); start it with `quiet run`, or from that cpuset")


def _counter(answer: ModuleAnswer) -> Counter:
    if answer.counter == COUNTERS["cycles"]:
        return Counter("cycles", "cycles", True, "", "perf_event, read in the kernel", overhead=answer.overhead)
    name = counters.ticks_name()
    why = f"cycles unavailable in the kernel: {said(-answer.pmu_error)}" if answer.pmu_error else "asked for"
    unit = dict(counters.TICKS.values())[name]
    return Counter(name, unit, True, why, "clock read in the kernel", overhead=answer.overhead)


def pmu_type(cpu: int, host: Reader | None = None) -> int:
    """The number of the CPU's own PMU where CPUs are of several kinds (x86 hybrids), else 0."""
    host = host or Reader()
    for device in ("cpu_core", "cpu_atom"):
        cpus, number = (host.text(f"{counters.DEVICES}/{device}/{name}") or "" for name in ("cpus", "type"))
        if number.isdecimal() and cpu in parse_cpus(cpus):
            return int(number)
    return 0
