"""Measure the actual frequency of CPUs or of a command with the processor's counters, if they are available.

APERF counts cycles and MPERF the ticks of the time stamp counter, both only while the CPU is not halted (Intel SDM
volume 3, "Hardware Feedback"; AMD PPR). The kernel provides them as the PMU `msr` (arch/x86/events/msr.c). The generic
events cycles and ref-cycles are the corresponding pair of the core's PMU.

Reading a CPU's counter interrupts that CPU, so counters are read only before and after the command, never during it.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable
from dataclasses import dataclass

from quiet.cpulist import CpuSet
from quiet.errors import QuietError
from quiet.host import perf
from quiet.host.perf import PerfCounter
from quiet.host.reader import Reader
from quiet.noise import clock
from quiet.noise.clock import Clock

FEW = 8
"""The maximum number of CPUs whose frequency is measured by chains, which take about 20 ms per CPU."""
_OR_FORBIDDEN = ", or no permission to read it (kernel.perf_event_paranoid)"
_MSR = "/sys/bus/event_source/devices/msr"


@dataclass(frozen=True, slots=True)
class Frequency:
    """The mean frequency over the whole command, in Hz, and the lowest and highest mean of a CPU; None if unknown.

    `source`: the method, or the reason why the frequency is unknown. by_chains() measures after the command, and takes
    `min_hz` and `max_hz` from 90 % of the chains instead of from means.
    """

    source: str
    mean_hz: float | None = None
    min_hz: float | None = None
    max_hz: float | None = None


def by_chains(cpus: Iterable[int]) -> Frequency | None:
    """Measure the frequency of at most FEW CPUs with chains of additions, right after a command; None if
    that is impossible.
    """
    from quiet.noise.core_frequency import CoreFrequency, core_frequency  # slow to load, rarely needed

    measured: list[CoreFrequency] = []
    for cpu in sorted(cpus)[:FEW]:
        with contextlib.suppress(QuietError):
            measured.append(core_frequency(cpu, 0.0))
    lows = [each.low_hz for each in measured if each.low_hz]
    highs = [each.high_hz for each in measured if each.high_hz]
    if not lows or not highs:
        return None
    known = [each.hz for each in measured if each.hz]
    mean = sum(known) / len(known)
    return Frequency("chains of additions right after the command", mean, min(lows), max(highs))


class FrequencyCounter:
    """Measure the frequency during a command: call start(), run the command, then call stop() and result()."""

    def __init__(self, reader: Reader, cpus: CpuSet, pid: int = 0) -> None:
        """`pid`: the command's process, whose cycles are counted if counting all cycles of a CPU is not permitted."""
        self._reader, self._cpus, self._pid = reader, cpus, pid
        self._pairs: dict[int, tuple[PerfCounter, PerfCounter]] = {}
        self._begin: dict[int, tuple[float, float]] = {}
        self._passed: dict[int, tuple[float, float]] = {}
        self._why = ""
        self._source = ""

    def start(self) -> None:
        """Start counting, if possible."""
        self._first = clock.moment()
        if clock.name() != "tsc":
            self._why = "no time stamp counter with which to compare cycles"
            return
        refused: set[int | None] = set()
        for source, kind, first, second, user_only in self._choices():
            try:
                self._open(kind, first, second, user_only)
                self._source = source
                self._begin = self._read()
                return
            except OSError as error:
                refused.add(error.errno)
        self._why = f"no cycle counter here{_OR_FORBIDDEN if refused & {errno.EACCES, errno.EPERM} else ''}"

    def _choices(self) -> list[tuple[str, int, int, int, bool]]:
        """Pairs of events in order of preference: source, type, config of cycles, config of ticks, user space only."""
        text = self._reader.text
        number = text(f"{_MSR}/type") or ""
        aperf, mperf = ((text(f"{_MSR}/events/{name}") or "").partition("=")[2] for name in ("aperf", "mperf"))
        pair = ("cycles and ref-cycles", perf.HARDWARE, perf.CYCLES, perf.REF_CYCLES)
        choices = [(*pair, False), (*pair, True)]
        if number.isdecimal() and aperf and mperf:
            choices.insert(0, ("APERF and MPERF", int(number), int(aperf, 0), int(mperf, 0), False))
        return choices

    def _open(self, kind: int, first: int, second: int, user_only: bool) -> None:
        try:
            for cpu in self._cpus:
                self._add(cpu, kind, first, second, cpu, -1, user_only)
        except OSError:
            self._close()
            if not self._pid:
                raise
            self._add(-1, kind, first, second, -1, self._pid, user_only)

    def _add(self, key: int, kind: int, first: int, second: int, cpu: int, pid: int, user_only: bool) -> None:
        cycles = PerfCounter(kind, first, cpu=cpu, pid=pid, user_only=user_only)
        try:
            self._pairs[key] = (cycles, PerfCounter(kind, second, cpu=cpu, pid=pid, user_only=user_only))
        except OSError:
            cycles.close()
            raise

    def _read(self) -> dict[int, tuple[float, float]]:
        return {key: (cycles.read(), ticks.read()) for key, (cycles, ticks) in self._pairs.items()}

    def _close(self) -> None:
        for pair in self._pairs.values():
            for counter in pair:
                counter.close()
        self._pairs.clear()

    def stop(self) -> None:
        """Stop counting."""
        with contextlib.suppress(OSError):
            for key, (cycles, ticks) in self._read().items():
                before = self._begin[key]
                self._passed[key] = (cycles - before[0], ticks - before[1])
        self._close()

    def result(self, used: CpuSet = frozenset()) -> Frequency:
        """The frequency of the CPUs in `used`, or of all observed CPUs if `used` is empty."""
        counted = {key: pair for key, pair in self._passed.items() if key < 0 or not used or key in used}
        ticks = sum(pair[1] for pair in counted.values())
        if not ticks:
            return Frequency(self._why or "the cycle counters did not count")
        rate = Clock(self._first, clock.moment()).per_second
        each = [rate * cycles / count for cycles, count in counted.values() if count]
        mean = rate * sum(pair[0] for pair in counted.values()) / ticks
        whose = "of the command" if -1 in counted else "of its CPUs"
        return Frequency(f"{self._source} {whose}", mean, min(each), max(each))
