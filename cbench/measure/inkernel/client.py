"""Run trials in the kernel with interrupts off, through the module in cbench/kmod (docs/kernel-module.md).

cbench/kmod/cbench_kmod.h defines the data that passes through the device.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cbench.machine import counters
from cbench.machine.process import affinity
from cbench.measure.inkernel import module
from cbench.model import Counter
from quiet import QuietError, Reader, Refused, UsageError, parse_cpus

DEVICE = "/dev/cbench"
WORKLOADS = ("empty", "hash", "sieve", "memory", "chase", "branch")
"""The files of cbench/c/workloads that the module includes; the others use floating point or the C library."""

VERSION = 1
PARAMS_MAX = 6
TRIALS_MAX = 1_000_000
REGION_NS, REGION_MAX_NS = 100_000_000, 500_000_000
STOP_MACHINE = 1
COUNTERS = {"auto": 0, "cycles": 1, counters.ticks_name(): 2}
LIMITS = {"sieve": ("n", 2**32 - 1), "memory": ("size", 2**30), "chase": ("size", 2**30), "branch": ("n", 2**26)}
"""The parameter of a workload that the module limits, and its maximum (c/workloads/workloads.h, kmod/regions.c)."""
LINKS_MAX = 2**22
"""The maximum of size / stride, the number of links of `chase`, in the kernel module."""

REQUEST = struct.Struct("<II32s6QQ6IQQ4IQQQiI")
RUN = 3 << 30 | REQUEST.size << 16 | 0xC8 << 8 | 1  # _IOWR(0xC8, 1, struct cbench_request)
NEEDS_ROOT = "--in-kernel needs root (CAP_SYS_ADMIN): it switches interrupts off"


class Reason(IntEnum):
    """The reason why the module did not complete a request."""

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


CUT_SHORT = {
    Reason.TOO_LONG: "trials took longer than interrupts may stay off",
    Reason.SIGNAL: "interrupted by a signal",
    Reason.CPU_GONE: "the CPU went offline, or this process was moved off it",
    Reason.COUNTER_LOST: "the kernel took the hardware counter away",
}


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """The module's output, and the ioctl's errno (0 on success)."""

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
    """Make one ioctl. The module's output is read even after an error."""
    error = 0
    try:
        fcntl.ioctl(device, RUN, request)
    except OSError as failure:
        error = failure.errno or errno.EIO
    return ModuleAnswer(error, *REQUEST.unpack(request)[-9:-1])


@dataclass(frozen=True, slots=True)
class KernelTrials:
    """The trials of one request, in the order in which they ran.

    `counter.overhead` is the lowest value of an empty region, in the counter's unit. `longest_ns`: the longest time
    that interrupts were off. `cut_short`: the reason why there are fewer trials than requested, otherwise "".
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
    """Run a workload of the module `trials` times on `cpu` with interrupts off, after `warmup` discarded runs.

    `params`: parameters in the workload's order. `rewarm`: the `n` of an untimed call before each trial, also with
    interrupts off; 0 for no such call. `counter`: one of COUNTERS. `stop_machine`: whether to stop every other CPU
    during a trial. Raises UsageError for a rejected parameter, an unavailable counter, or a CPU that is not online.
    Raises Refused if the module is not loaded, access is denied, or the module refuses the request for another reason.
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
    """A context with the file descriptor of the open device. Raises Refused, with the remedy, if it cannot be
    opened.
    """
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
    """A context in which this thread is bound to `cpu`; its affinity is restored at the end. Raises UsageError if `cpu`
    is not online, Refused if this process may not run there.
    """
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
    why = (
        f"cycles unavailable in the kernel: {counters.reason(answer.pmu_error)}"
        if answer.pmu_error
        else "requested by name"
    )
    unit = dict(counters.TICKS.values())[name]
    return Counter(name, unit, True, why, "clock read in the kernel", overhead=answer.overhead)


def _rejected(function: str, params: Mapping[str, int]) -> str:
    """The message about a parameter that the module rejected, with the accepted range."""
    name, most = LIMITS.get(function, ("", 0))
    if name and params.get(name, 0) > most:
        return f"--param {name}={params[name]}: {function} in the kernel takes {name} up to {most:,}"
    if function == "chase" and (links := params["size"] // max(params["stride"], 1)) > LINKS_MAX:
        return f"--param size={params['size']}: chase in the kernel takes up to {LINKS_MAX:,} links, not {links:,}"
    given = " ".join(f"{name}={value:,}" for name, value in params.items())
    return f"{function} in the kernel does not accept {given}; `cbench explain {function}` shows the parameters"


def refusal(answer: ModuleAnswer, function: str, params: Mapping[str, int], cpu: int, limit_ns: int) -> QuietError:
    """The error to raise for an answer of the module, with the meaning of the answer and the remedy."""
    reason, error = answer.reason, answer.error
    work = f"{function} {' '.join(f'{name}={value:,}' for name, value in params.items())}"
    if error == errno.EPERM and reason == Reason.DONE:
        return Refused(NEEDS_ROOT)
    if error == errno.ENOTTY or reason in (Reason.BAD_VERSION, Reason.BAD_WORKLOAD):
        return Refused(
            "the loaded module belongs to another version of cbench: as root, rmmod cbench, then build and load "
            "the module of this version"
        )
    if reason == Reason.BAD_PARAM:
        return UsageError(_rejected(function, params))
    if reason == Reason.NO_CYCLES:
        why = counters.reason(answer.pmu_error)
        return UsageError(f"counter cycles is unavailable in the kernel: {why}; use {counters.ticks_name()}")
    took = f"{answer.region_ns / 1e6:,.0f} ms" if answer.region_ns < 3600 * 10**9 else "hours"
    moved = f"CPU {cpu} went offline, or this process was moved off it"
    words = {
        Reason.CPU_OFFLINE: moved,
        Reason.NOT_BOUND: moved,
        Reason.BUSY: "another process is measuring in the kernel: wait until it ends",
        Reason.NO_MEMORY: f"{work}: the kernel cannot allocate enough memory; reduce the buffer with --param",
        Reason.TOO_LONG: f"{work}: interrupts would be off for {took} or more per trial; at most "
        f"{limit_ns / 1e6:g} ms is allowed; try --param n={max(1, answer.fitting_n)}",
        Reason.SIGNAL: "interrupted by a signal before the first trial",
    }
    otherwise = f"the kernel module refused: {os.strerror(error)} (reason {reason})"
    return Refused(words.get(Reason(reason), otherwise))
