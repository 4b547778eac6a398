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
from cbench.machine.process import affinity
from cbench.measure.inkernel import module
from cbench.measure.inkernel.ioctl import (
    COUNTERS,
    NEEDS_ROOT,
    PARAMS_MAX,
    REGION_NS,
    REQUEST,
    STOP_MACHINE,
    VERSION,
    ModuleAnswer,
    Reason,
    ask,
    refusal,
)
from cbench.model import Counter
from quiet import Reader, Refused, UsageError, parse_cpus

DEVICE = "/dev/cbench"
WORKLOADS = ("empty", "hash", "sieve", "memory", "chase", "branch")
"""Those of cbench/c/workloads that the module has; the others use floating point, a system call, or too much time."""

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
) -> KernelTrials:
    """Run a workload of the module `trials` times on `cpu` with interrupts off, after `warmup` discarded times.

    `params`: in the workload's order. `rewarm`: n of an untimed call before each trial, with interrupts off too; 0:
    none. `counter`: one of COUNTERS. `stop_machine` holds every other CPU during a trial.

    UsageError for what no module can do; Refused when it is not loaded, not allowed, or does not do this here.
    """
    request = bytearray(REQUEST.size)
    written = array.array("Q", bytes(16 * trials))
    padded = [*params.values(), *[0] * (PARAMS_MAX - len(params))]
    head = (VERSION, STOP_MACHINE if stop_machine else 0, function.encode(), *padded, rewarm)
    middle = (len(params), cpu, COUNTERS[counter], counters.own_pmu(cpu), trials, warmup, REGION_NS)
    REQUEST.pack_into(request, 0, *head, *middle, written.buffer_info()[0], *[0] * 9)
    with opened() as device, bound(cpu):
        answer = ask(device, request)
    if answer.error:
        raise refusal(answer, function, params, cpu, REGION_NS)
    used = written[: 2 * answer.done]
    why = CUT_SHORT.get(Reason(answer.reason), "")
    return KernelTrials(tuple(used[0::2]), tuple(used[1::2]), _counter(answer), answer.region_ns, why)


@contextlib.contextmanager
def opened() -> Iterator[int]:
    """The open device; Refused with what to do when it cannot be opened."""
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Refused(f"--in-kernel: {module.why_absent()}") from None
    except PermissionError:
        raise Refused(NEEDS_ROOT) from None
    except OSError as error:
        raise Refused(f"--in-kernel: {DEVICE}: {error.strerror}") from None
    try:
        yield device
    finally:
        os.close(device)


@contextlib.contextmanager
def bound(cpu: int) -> Iterator[None]:
    """This thread on that CPU alone, and then where it was before."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(affinity({cpu}))
        except OSError as error:
            online = Reader().text("/sys/devices/system/cpu/online") or ""
            if cpu not in parse_cpus(online):
                raise UsageError(f"CPU {cpu} is not online (online: {online})") from None
            where = "start it with `quiet run`, or from that cpuset"
            raise Refused(f"CPU {cpu}: this process may not run there ({error.strerror}); {where}") from None
        yield


def _counter(answer: ModuleAnswer) -> Counter:
    if answer.counter == COUNTERS["cycles"]:
        return Counter("cycles", "cycles", True, "", "perf_event, read in the kernel", overhead=answer.overhead)
    name = counters.ticks_name()
    why = f"cycles unavailable in the kernel: {counters.reason(answer.pmu_error)}" if answer.pmu_error else "asked for"
    unit = dict(counters.TICKS.values())[name]
    return Counter(name, unit, True, why, "clock read in the kernel", overhead=answer.overhead)
