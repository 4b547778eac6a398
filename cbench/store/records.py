"""Represent the content of a store as frozen values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbench.model import Trial

EACH_TRIAL = "each trial"
"""The value of the fact `processes` for a series of a command."""
LAYOUT = "layout"
"""The name of the count with the number of the measured build, if an arm has several builds."""
NO_CPU = -1
"""The CPU of a series that was not measured on a single CPU."""


@dataclass(frozen=True, slots=True)
class Run:
    """One measuring command, such as `cbench run`. Times are in ns since 1970; `ended_ns`: None if the run was killed
    or is still running.
    """

    number: int
    started_ns: int
    ended_ns: int | None
    version: str
    command: tuple[str, ...]
    host: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored trial. `begin_ns`: start of its timed region in ns since 1970, None if unknown."""

    position: int
    trial: Trial
    begin_ns: int | None

    @property
    def counts(self) -> Mapping[str, int]:
        return self.trial.counts

    @property
    def value(self) -> int:
        return self.trial.value

    @property
    def polluted(self) -> bool:
        return self.trial.polluted


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """The trials of one workload with one set of parameters in one process on one CPU.

    `facts`: the facts known before the trials, merged with those known after them; `ended_ns`: None if the series was
    cut short. `varied`: the parameters that were drawn for each process, which are not part of the test.
    """

    number: int
    run: Run
    position: int
    workload: str
    params: Mapping[str, Any]
    cpu: int
    process: int
    started_ns: int
    ended_ns: int | None
    facts: Mapping[str, Any]
    trials: tuple[Stored, ...]
    varied: frozenset[str] = frozenset()

    @property
    def unit(self) -> str:
        """The unit of the values, "" if the series was cut short before it was known."""
        return str(self.counter.get("unit", ""))

    @property
    def quantum(self) -> int:
        """The step of the counter, 1 if unknown."""
        return int(self.counter.get("quantum") or 1)

    @property
    def counter(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.facts.get("counter", {})
        return found

    @property
    def counter_name(self) -> str:
        """The counted event, such as "cycles:u"; "" if unknown."""
        return str(self.counter.get("name", ""))

    @property
    def test(self) -> str:
        """The workload and its parameters, without the varied ones, as text, such as "hash n=1000"."""
        fixed = sorted((name, value) for name, value in self.params.items() if name not in self.varied)
        return " ".join([self.workload, *(f"{name}={value}" for name, value in fixed)])

    @property
    def each_trial(self) -> bool:
        """Whether each trial is a separate process, as for commands."""
        return self.facts.get("processes") == EACH_TRIAL

    @property
    def processes(self) -> tuple[tuple[Stored, ...], ...]:
        """The trials, process by process."""
        if self.each_trial:
            return tuple((each,) for each in self.trials)
        return (self.trials,)

    @property
    def warmup(self) -> list[int]:
        """The values of the warm-up trials, which were discarded; empty if there were none."""
        return list(self.facts.get("settling", {}).get("values", ()))

    @property
    def values(self) -> list[int]:
        return [each.value for each in self.trials]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Readings of the tick counter and, at the same moments, of the time in ns since 1970, in chronological order.

    Between two readings, both are assumed to advance at constant rates.
    """

    ticks: Sequence[int]
    ns: Sequence[int]

    def of(self, ticks: int) -> int | None:
        """The time in ns since 1970 at which the tick counter showed `ticks`. None if `ticks` is 0 (unknown) or outside
        the readings, or if there are fewer than two readings.
        """
        if not ticks or len(self.ticks) < 2 or not self.ticks[0] <= ticks <= self.ticks[-1]:
            return None
        after = max(bisect_left(self.ticks, ticks), 1)
        first, last = self.ticks[after - 1], self.ticks[after]
        if first == last:
            return self.ns[after]
        begin, end = self.ns[after - 1], self.ns[after]
        return begin + (ticks - first) * (end - begin) // (last - first)
