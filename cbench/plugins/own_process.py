"""Count the interruptions of this process over a period from the kernel's counts, at a cost of 50 us per reading."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field

from cbench.external.disturbance import CountReader, KernelCounts, OpenFile


@dataclass(frozen=True, slots=True)
class OwnInterruptions:
    """The interruptions of this process over a period.

    `waited_ns`: the time in ns for which the process waited for a CPU. `stolen_ms`: the time in ms that the hypervisor
    took from its CPUs. Both are None if the kernel does not report them. `interrupts`: interrupts of the CPU that the
    process may use, by line; empty if it may use several CPUs, because most of their interrupts hit other processes.
    """

    preempted: int
    major_faults: int
    waited_ns: int | None
    stolen_ms: int | None
    interrupts: Mapping[str, int] = field(default_factory=dict)

    @property
    def disturbed(self) -> bool:
        """Whether the process was preempted, had a page fault from disk, or lost time to the hypervisor."""
        return bool(self.preempted or self.major_faults or self.stolen_ms)

    @property
    def text(self) -> str:
        """The interruptions as text; "" if there are none."""
        parts = [f"preempted {_times(self.preempted)}"] if self.preempted else []
        if self.waited_ns and self.waited_ns >= 1000:
            ms = self.waited_ns / 1e6
            parts.append(f"waited for a CPU for {f'{ms:.4g}' if ms < 999.95 else f'{ms:,.0f}'} ms")
        if self.stolen_ms:
            parts.append(f"the hypervisor stole {self.stolen_ms} ms from its CPUs")
        if self.major_faults:
            parts.append(f"{self.major_faults} page faults from disk")
        if self.interrupts:
            most = sorted(self.interrupts.items(), key=lambda line: -line[1])[:2]
            parts.append(", ".join(f"interrupt {name} {_times(count)}" for name, count in most))
        return "; ".join(parts)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


class OwnCounts:
    """Counts the interruptions of this process between begin() and end(), which can be called repeatedly."""

    def __init__(self) -> None:
        self._cpus = frozenset(os.sched_getaffinity(0))
        self._reader = CountReader(self._cpus)
        self._schedstat = OpenFile("/proc/self/schedstat")
        self._before: tuple[resource.struct_rusage, int | None, KernelCounts] | None = None

    def begin(self) -> None:
        """Start counting."""
        self._before = (*self._own(), self._reader.read())

    def end(self) -> OwnInterruptions:
        """The interruptions since begin()."""
        assert self._before
        after = self._reader.read()
        usage, waited = self._own()
        before, waited_before, counts = self._before
        return OwnInterruptions(
            preempted=usage.ru_nivcsw - before.ru_nivcsw,
            major_faults=usage.ru_majflt - before.ru_majflt,
            waited_ns=None if waited is None or waited_before is None else waited - waited_before,
            stolen_ms=self._reader.stolen_ms(counts, after),
            interrupts=self._reader.interrupts(counts, after) if len(self._cpus) == 1 else {},
        )

    def close(self) -> None:
        """Close the files of /proc."""
        self._reader.close()
        self._schedstat.close()

    def _own(self) -> tuple[resource.struct_rusage, int | None]:
        words = self._schedstat.read().split()
        return resource.getrusage(resource.RUSAGE_SELF), int(words[1]) if len(words) > 1 else None


def added(one: OwnInterruptions, other: OwnInterruptions) -> OwnInterruptions:
    """The sum of the interruptions of two periods."""
    lines = {
        name: one.interrupts.get(name, 0) + other.interrupts.get(name, 0)
        for name in {**one.interrupts, **other.interrupts}
    }
    return OwnInterruptions(
        preempted=one.preempted + other.preempted,
        major_faults=one.major_faults + other.major_faults,
        waited_ns=_sum(one.waited_ns, other.waited_ns),
        stolen_ms=_sum(one.stolen_ms, other.stolen_ms),
        interrupts=lines,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
