"""Group series that belong together: the processes of one test on one CPU, counter and host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbench.store.records import LAYOUT, NO_CPU, Stored, StoredSeries


@dataclass(frozen=True, slots=True)
class Process:
    """Trials that together form one independent value. `series`: the series of the first trial."""

    series: StoredSeries
    trials: tuple[Stored, ...]

    @property
    def begun_ns(self) -> int | None:
        """Start time in ns since 1970; None if the time of a command's trial is unknown."""
        return self.trials[0].begin_ns if self.series.each_trial else self.series.started_ns


@dataclass(frozen=True, slots=True)
class Group:
    """The processes of one test. `name`: the test's name, with a suffix if several groups share the test."""

    name: str
    test: str
    cpu: int
    unit: str
    counter: str
    series: tuple[StoredSeries, ...]

    @property
    def processes(self) -> tuple[Process, ...]:
        """The trials, process by process. If builds vary, all trials of one build form one process, because they share
        its layout.
        """
        units: dict[object, list[tuple[StoredSeries, Stored]]] = {}
        for series in self.series:
            for at, trials in enumerate(series.processes):
                built = layout(series, trials[0]) if trials else None
                units.setdefault(built or (series.number, at), []).extend((series, each) for each in trials)
        return tuple(Process(rows[0][0], tuple(each for _, each in rows)) for rows in units.values())


def layout(series: StoredSeries, trial: Stored) -> tuple[object, int] | None:
    """The comparison to which the measured build belongs, and the build's number; None if builds do not vary."""
    number = trial.counts.get(LAYOUT)
    return None if number is None else (series.facts.get("comparison"), number)


def grouped(series: Sequence[StoredSeries]) -> list[Group]:
    """All series that have trials, in groups, in the order in which each group was first measured."""
    members_of: dict[tuple[str, int, str, str, str], list[StoredSeries]] = {}
    for each in series:
        if each.trials:
            members_of.setdefault((each.test, each.cpu, each.unit, each.counter_name, _host(each)), []).append(each)
    groups = []
    for key, members in members_of.items():
        test, cpu, unit, counter, host = key
        others = [other for other in members_of if other[0] == test]
        name = test
        if len({other[1] for other in others}) > 1:
            name += f" CPU {cpu}" if cpu != NO_CPU else " (any CPU)"
        if len({other[3] for other in others if other[2] == unit}) > 1:
            name += f" [{counter or 'unknown counter'}]"
        elif len({other[2] for other in others}) > 1:
            name += f" [{unit or 'unknown unit'}]"
        if len({other[4] for other in others}) > 1:
            runs = ",".join(str(number) for number in sorted({each.run.number for each in members}))
            name += f" (run {runs}: {host})"
        groups.append(Group(name, test, cpu, unit, counter, tuple(members)))
    return groups


def _host(series: StoredSeries) -> str:
    """The facts about a host that must be equal for series to be in one group."""
    host = series.run.host
    parts = (host.get("hostname"), host.get("cpu"), host.get("kernel"))
    return ", ".join(str(part) for part in parts if part) or "unknown host"
