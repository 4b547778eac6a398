"""Read how often and how long a CPU was in each idle state, from the kernel's counts, which need no root.

Source: Documentation/ABI/testing/sysfs-devices-system-cpu (/sys/devices/system/cpu/cpuN/cpuidle/stateM/).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quiet.host.reader import Reader
from quiet.machine.facts import CPU


@dataclass(frozen=True, slots=True)
class IdleState:
    """One idle state of one CPU.

    `usage` and `time_us` (microseconds) are totals since boot, or differences (used()).
    """

    state: int
    name: str
    latency_us: int
    disabled: bool
    usage: int
    time_us: int


def read(reader: Reader, cpus: Iterable[int]) -> dict[int, tuple[IdleState, ...]]:
    """The idle states of each CPU and their totals so far; empty tuples if the kernel has no cpuidle driver."""
    return {cpu: tuple(_states(reader, cpu)) for cpu in cpus}


def _states(reader: Reader, cpu: int) -> list[IdleState]:
    base = f"{CPU}/cpu{cpu}/cpuidle"
    states = []
    for number in reader.numbered(base, "state"):
        texts = {name: reader.text(f"{base}/state{number}/{name}") or "" for name in ("latency", "usage", "time")}
        latency, usage, time_us = (int(text) if text.isdecimal() else 0 for text in texts.values())
        name = reader.text(f"{base}/state{number}/name") or f"state{number}"
        disabled = reader.text(f"{base}/state{number}/disable") == "1"
        states.append(IdleState(number, name, latency, disabled, usage, time_us))
    return states


def used(before: Iterable[IdleState], after: Iterable[IdleState]) -> tuple[IdleState, ...]:
    """The idle states of one CPU with the differences between two readings."""
    old = {each.state: each for each in before}
    return tuple(
        IdleState(
            new.state,
            new.name,
            new.latency_us,
            new.disabled,
            new.usage - old[new.state].usage,
            new.time_us - old[new.state].time_us,
        )
        for new in after
        if new.state in old
    )
