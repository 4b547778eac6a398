"""Instruments that read a command's times: elapsed, user, system, and the least step in which each can move."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cbench.study.instruments.instrument import PERF_ELAPSED, SYS, USER, WALL, HostInstrument, Instrument
from cbench.study.process.run_command import Execution
from quiet import Reader, kernel_config

TICK, GENERIC, NATIVE = "tick", "generic", "native"
KERNEL_S = 1e-6
"""In which wait4(2) gives times."""
MONOTONIC_COARSE = 6
"""Linux's number of a clock that moves with the kernel's tick (clock_getres(2)); Python has no name for it."""
NO_HZ_FULL = "/sys/devices/system/cpu/nohz_full"


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
    found = kernel_config(reader)
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


class CommandTime(Instrument):
    """A time of the command. `attribute`: of Execution."""

    unit = "s"

    def __init__(self, source: str, attribute: str, what: str) -> None:
        self.source, self._attribute, self._what = source, attribute, what
        self.judged = (source,)

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        seconds: float = getattr(done, self._attribute)
        return seconds, repr(seconds)

    def on_host(self, read: str) -> HostInstrument:
        shell = "a shell's `time` prints it to 0.001 s"
        if self.source in (USER, SYS):
            cpu = cpu_time()
            why = f"user + sys moves by {cpu.sum_s:g} s; {cpu.why}; {shell}"
            return HostInstrument(read, self.unit, self._what, cpu.split_s, why)
        why = f"CLOCK_MONOTONIC; {shell}" if self.source == WALL else "CLOCK_MONOTONIC"
        return HostInstrument(read, self.unit, self._what, time.clock_getres(time.CLOCK_MONOTONIC), why)


COMMAND_TIMES = (
    CommandTime(WALL, "wall_s", "elapsed time, from before the shell starts"),
    CommandTime(USER, "user_s", "CPU time in user mode"),
    CommandTime(SYS, "sys_s", "CPU time in the kernel"),
    CommandTime(PERF_ELAPSED, "running_s", "elapsed time, from the command's execution on"),
)
