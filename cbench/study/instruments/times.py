"""Read a command's elapsed, user and system times, and determine the resolution of each."""

from __future__ import annotations

import time

from cbench.study.instruments.instrument import PERF_ELAPSED, SYS, USER, WALL, HostInstrument, Instrument
from cbench.study.process.run_command import Execution
from quiet import Reader, kernel_config

KERNEL_S = 1e-6
"""The step, in seconds, of times from wait4(2)."""
MONOTONIC_COARSE = 6
"""Linux's number for CLOCK_MONOTONIC_COARSE, which advances with the kernel's tick (clock_getres(2)) and has no name in
Python.
"""
NO_HZ_FULL = "/sys/devices/system/cpu/nohz_full"


def cpu_time_step(reader: Reader | None = None) -> tuple[float, str]:
    """The step, in seconds, of user time alone and of system time alone on this host, and the basis of this value.

    The step depends on the kernel's configuration and on nohz_full. The sum of user and system time is the scheduler's
    own count; ticks only determine how this sum is divided (cputime_adjust() in Linux's kernel/sched/cputime.c). With
    generic accounting, each entry to the kernel is timed on the CPUs that nohz_full lists; without nohz_full this
    accounting is inactive.
    """
    reader = reader or Reader()
    config = kernel_config(reader)
    full = (reader.text(NO_HZ_FULL) or "").strip("()")  # "(null)" if there is none
    if config.values.get("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE") == "y":
        return KERNEL_S, f"VIRT_CPU_ACCOUNTING_NATIVE in {config.source}"
    generic = config.values.get("CONFIG_VIRT_CPU_ACCOUNTING_GEN") == "y"
    if generic and full not in ("", "null"):
        where = f"in use on the CPUs of nohz_full ({full}); other CPUs count ticks"
        return KERNEL_S, f"VIRT_CPU_ACCOUNTING_GEN in {config.source}, {where}"
    where = "is assumed, because the kernel's configuration is unavailable"
    if config.source:
        where = f"in {config.source}"
    kind = "VIRT_CPU_ACCOUNTING_GEN, inactive without nohz_full," if generic else "TICK_CPU_ACCOUNTING"
    tick = time.clock_getres(MONOTONIC_COARSE)
    return tick, f"{kind} {where}: {round(1 / tick):,} ticks per second determine how the sum is divided"


class CommandTime(Instrument):
    """Reads a time of the command. `attribute`: the attribute of Execution that contains this time."""

    unit = "s"

    def __init__(self, source: str, attribute: str, what: str) -> None:
        self.source, self._attribute, self._what = source, attribute, what
        self.judged = (source,)

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        seconds: float = getattr(done, self._attribute)
        return seconds, repr(seconds)

    def on_host(self, read: str) -> HostInstrument:
        shell = "a shell's `time` prints it with a resolution of 0.001 s"
        if self.source in (USER, SYS):
            step_s, why = cpu_time_step()
            return HostInstrument(
                read, self.unit, self._what, step_s, f"user + sys advances in steps of {KERNEL_S:g} s; {why}; {shell}"
            )
        why = f"CLOCK_MONOTONIC; {shell}" if self.source == WALL else "CLOCK_MONOTONIC"
        return HostInstrument(read, self.unit, self._what, time.clock_getres(time.CLOCK_MONOTONIC), why)


COMMAND_TIMES = (
    CommandTime(WALL, "wall_s", "elapsed time, from before the shell starts"),
    CommandTime(USER, "user_s", "CPU time in user mode"),
    CommandTime(SYS, "sys_s", "CPU time in the kernel"),
    CommandTime(PERF_ELAPSED, "running_s", "elapsed time, from the command's execve() on"),
)
