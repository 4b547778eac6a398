"""Define data classes for the interruptions of a command (observe.py).

The fields of InterruptionCause are keys of the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quiet.noise.attribute import Cause
from quiet.noise.budgets import Nanoseconds
from quiet.noise.frequency import Frequency

TRACE, COUNTS = "trace", "counts"
OBSERVER = "quiet itself"
"""The cause of interruptions by the observing process; its PID follows."""


@dataclass(slots=True)
class Tally:
    """The sum of a cause's interruptions so far; times in ns, None if unknown. `cpu`: the CPU of the last one."""

    cpu: int
    count: float = 0
    total_ns: float | None = None
    max_ns: float | None = None

    def add(self, count: float, took_ns: float | None) -> None:
        """Add `count` interruptions of a cause, which took `took_ns` nanoseconds in total (None: unknown)."""
        self.count += count
        if took_ns is not None:
            self.total_ns = (self.total_ns or 0) + took_ns
            self.max_ns = max(self.max_ns or 0, took_ns)


@dataclass(slots=True)
class Observation:
    """The interruptions that a method observed, before remedies are added. `migrations`: None if unknown."""

    method: str
    tallies: dict[Cause, Tally] = field(default_factory=dict)
    cpus_used: set[int] = field(default_factory=set)
    max_ns: float | None = None
    migrations: int | None = None
    limits: list[str] = field(default_factory=list)

    def add(self, cause: Cause, cpu: int, count: float, took_ns: float | None) -> None:
        """Add `count` interruptions of a cause on a CPU; `took_ns`: their total time in ns, None if unknown."""
        tally = self.tallies.setdefault(cause, Tally(cpu))
        tally.cpu = cpu
        tally.add(count, took_ns)


@dataclass(frozen=True, slots=True)
class InterruptionCause:
    """A cause: how often and how long it interrupted the command, and its remedy.

    Times are None if only counts are known. `knob`, `boot`: the knob or kernel parameter that is the remedy, else
    None.
    """

    cause: str
    kind: str
    count: int
    total_ns: Nanoseconds | None
    max_ns: Nanoseconds | None
    remedy: str
    knob: str | None
    boot: str | None


@dataclass(frozen=True, slots=True)
class Interruptions:
    """The interruptions of a command on the observed CPUs while it ran there, costliest cause first.

    `total_ns` covers the causes with a known length; interrupts that were only counted have none. `throttled`:
    how often each CPU was throttled because of heat or a power limit, for CPUs that count it; `steal_ns`: the time that
    a hypervisor took from the CPUs that the command used. None: unknown.
    """

    method: str
    seconds: float
    cpus_used: tuple[int, ...]
    count: int
    total_ns: Nanoseconds | None
    max_ns: Nanoseconds | None
    causes: tuple[InterruptionCause, ...]
    frequency: Frequency
    throttled: Mapping[int, int]
    steal_ns: Nanoseconds | None
    migrations: int | None
    limits: tuple[str, ...]
