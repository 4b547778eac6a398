"""The instruments that read a command, each with its unit and the least step in which its number can move.

D. Flater, NIST TN 1855, section 3.4, has eight: elapsed, user and system time of a shell's `time`; elapsed time,
cycles, cpu-clock and task-clock of `perf stat`; samples of `perf record`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cbench.study import model
from cbench.study.instruments import perf_record, perf_stat
from cbench.study.instruments.perf_record import Sampling
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.kernel import config

TICK, GENERIC, NATIVE = "tick", "generic", "native"
KERNEL_S = 1e-6
"""In which wait4(2) gives times."""
MONOTONIC_COARSE = 6
"""Linux's number of a clock that moves with the kernel's tick (clock_getres(2)); Python has no name for it."""
NO_HZ_FULL = "/sys/devices/system/cpu/nohz_full"
SAMPLINGS = (Sampling(perf_record.FRAME_POINTERS), Sampling(perf_record.DWARF))

NAMES = (*model.TIMES, *model.COUNTS, *(f"{model.SAMPLES}:{each.call_graph}" for each in SAMPLINGS))


@dataclass(frozen=True, slots=True)
class Instrument:
    """`read`: its name in a file. `resolution_s`: its least step, None where that is no time; `why`: how that is known.
    `missing`: why this host has not got it, "" where it has."""

    read: str
    unit: str
    what: str
    resolution_s: float | None
    why: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class CpuTime:
    """How the kernel accounts CPU time.

    `accounting`: TICK, GENERIC (VIRT_CPU_ACCOUNTING_GEN in use) or NATIVE. `sum_s`: least step of user and system time
    together, `split_s`: of how that sum is divided between them. `tick_s`: from one tick of the kernel to the next.
    """

    accounting: str
    tick_s: float
    sum_s: float
    split_s: float
    why: str


def cpu_time(reader: Reader | None = None) -> CpuTime:
    """Of this host: from the kernel's configuration, and whether it runs with nohz_full.

    The sum of user and system time is the scheduler's own count; ticks only say how it is divided between them
    (cputime_adjust() in Linux's kernel/sched/cputime.c). With the generic accounting each way into the kernel is timed,
    on the CPUs that nohz_full names; without nohz_full that accounting sleeps.
    """
    reader = reader or Reader()
    found = config.running(reader)
    tick = time.clock_getres(MONOTONIC_COARSE)
    full = (reader.text(NO_HZ_FULL) or "").strip("()")  # "(null)" where there is none
    if found.values.get("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") == "y":
        return CpuTime(NATIVE, tick, KERNEL_S, KERNEL_S, f"VIRT_CPU_ACCOUNTING_NATIVE in {found.source}")
    if found.values.get("CONFIG_VIRT_CPU_ACCOUNTING_GEN") == "y" and full not in ("", "null"):
        why = f"VIRT_CPU_ACCOUNTING_GEN in {found.source}, in use on the CPUs of nohz_full ({full}); by ticks on others"
        return CpuTime(GENERIC, tick, KERNEL_S, KERNEL_S, why)
    where = (
        f"in {found.source}" if found.source else "is taken for granted: the kernel's configuration is not to be had"
    )
    asleep = found.values.get("CONFIG_VIRT_CPU_ACCOUNTING_GEN") == "y"
    kind = "VIRT_CPU_ACCOUNTING_GEN, asleep without nohz_full," if asleep else "TICK_CPU_ACCOUNTING"
    why = f"{kind} {where}: {round(1 / tick):,} ticks a second say how the sum is divided"
    return CpuTime(TICK, tick, KERNEL_S, tick, why)


def instruments(only: Sequence[str] = ()) -> tuple[Instrument, ...]:
    """Those for commands, on this host; `only`: of these names, and nothing is tried for the others."""
    cpu = cpu_time()
    shell = "a shell's `time` prints it to 0.001 s"
    clock = time.clock_getres(time.CLOCK_MONOTONIC)
    divided = f"user + sys moves by {cpu.sum_s:g} s; {cpu.why}; {shell}"
    pmu, ns = "counted by the PMU", "the kernel's clock in nanoseconds; `perf stat` prints it to 0.01 ms"
    since = "from the command's execution on"
    rows = (
        (model.WALL, "s", "elapsed time, from before the shell starts", clock, f"CLOCK_MONOTONIC; {shell}"),
        (model.USER, "s", "CPU time in user mode", cpu.split_s, divided),
        (model.SYS, "s", "CPU time in the kernel", cpu.split_s, divided),
        (model.PERF_ELAPSED, "s", f"elapsed time, {since}", clock, "CLOCK_MONOTONIC"),
        (model.CYCLES, "cycles", "CPU cycles", None, pmu),
        (model.CYCLES_USER, "cycles", "CPU cycles in user mode", None, pmu),
        *((name, "s", f"CPU time, {since}", 1e-9, ns) for name in model.CLOCKS),
    )
    found = [Instrument(*row, _missing(row[0])) for row in rows if not only or row[0] in only]
    for each in SAMPLINGS:
        read, why = f"{model.SAMPLES}:{each.call_graph}", f"one sample: 1/{each.hz:,} s"
        if not only or read in only:
            what, step = f"`perf record`: {each.words}", None if each.hz is None else 1 / each.hz
            found.append(Instrument(read, "samples", what, step, why, perf_record.obstacle(each)))
    return tuple(found)


def _missing(name: str) -> str:
    if name not in model.COUNTS:
        return ""
    try:
        perf_stat.check(name)
    except UsageError as error:
        return str(error).removeprefix(f"{name}: ")
    return ""
