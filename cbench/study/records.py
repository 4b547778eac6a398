"""Define the records of a study's store, and its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cbench.results import LEFT_OUT

FactValue = None | bool | int | float | str | Sequence["FactValue"] | Mapping[str, "FactValue"]
StoredFacts = dict[str, FactValue]
"""The facts stored about a run or a trial, as a JSON object."""


def part(facts: Mapping[str, FactValue], name: str) -> Mapping[str, FactValue]:
    """The object with this name within facts, empty if missing. Raises ValueError if the value is not an object."""
    found = facts.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} is not an object")
    return found


def texts(facts: Mapping[str, FactValue], name: str) -> Mapping[str, str]:
    """The object with this name within facts, with its values as strings. Raises ValueError if it is not an object."""
    return {key: str(value) for key, value in part(facts, name).items()}


def number(facts: Mapping[str, FactValue], name: str) -> int:
    """The whole number with this name within facts, 0 if missing. Raises ValueError if the value is anything else."""
    found = facts.get(name, 0)
    if not isinstance(found, int):
        raise ValueError(f"{name} is not a whole number")
    return found


@dataclass(frozen=True, slots=True)
class Header:
    """The identity of a study. `source`: the text of the study's file; `tests`: the names of the tests, in the order of
    the baseline. `made_ns`, `ended_ns`: in ns since 1970; `ended_ns`: None until all runs have ended.
    """

    kind: str
    name: str
    seed: int
    source: str
    folder: str
    tests: tuple[str, ...]
    host: Mapping[str, FactValue]
    made_ns: int = 0
    ended_ns: int | None = None

    @property
    def file(self) -> str:
        """The path of the study's file when the study began, "" if it is not stored."""
        return str(self.host.get("file", ""))

    @property
    def hostname(self) -> str:
        """The name of the study's host, "" in old stores that do not contain it."""
        return str(self.host.get("hostname") or "")

    @property
    def machine(self) -> list[str]:
        """The host as text: CPU, kernel, and whether it is virtual."""
        words = [str(self.host.get("cpu", "unknown CPU")), f"Linux {self.host.get('kernel', '?')}"]
        return [*words, "virtual machine"] if self.host.get("virtual") else words

    @property
    def counter(self) -> str:
        """The counter of the study's workloads, "" if it has none."""
        return str(part(self.host, "counter").get("name", ""))

    @property
    def unit(self) -> str:
        """The unit of the counter of the study's workloads, "" if it has none."""
        return str(part(self.host, "counter").get("unit", ""))


def host_names(paths: Sequence[Path], headers: Sequence[Header]) -> list[str]:
    """A name for each store's host: the host's own name, or the store's file name if the host's name is unknown. If
    names repeat, the file name is appended; if this is not unique either, the path.
    """
    names = [header.hostname or path.stem for path, header in zip(paths, headers, strict=True)]
    named_once = [
        name if names.count(name) == 1 else f"{name} ({path.stem})" for name, path in zip(names, paths, strict=True)
    ]
    if len(set(named_once)) == len(named_once):
        return named_once
    return [f"{name} ({path})" for name, path in zip(names, paths, strict=True)]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A planned run and its progress. `done`: the number of trials that have ended; `failure`: the reason why the run
    was left out, None if it was not. Times are in ns since 1970, None before the event.
    """

    number: int
    kind: str
    order: tuple[int, ...]
    begun_ns: int | None
    ended_ns: int | None
    failure: str | None
    done: int
    resumed: int = 0  # number of resumes after interruptions

    @property
    def over(self) -> bool:
        return self.ended_ns is not None


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of `quiet verify` before a run. `lost_pct`: the lost share of each CPU's time, in %."""

    quiet: bool
    drift: bool
    lost_pct: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts known when a run began. `verified`: None if no profile was applied; `confirmed`, `controlled`: the
    levels of an experiment's hard factors and its controlled variables, as read from the host.
    """

    run: int
    boot_id: str
    verified: Verified | None
    confirmed: Mapping[str, str]
    controlled: Mapping[str, str]

    @classmethod
    def parse(cls, run: int, facts: Mapping[str, FactValue]) -> Self:
        """Parse the stored facts of a run. Raises ValueError if they are damaged."""
        said, levels = part(facts, "quiet"), part(facts, "levels")
        every = [cpu.get("lost_pct") for cpu in part(said, "cpus").values() if isinstance(cpu, Mapping)]
        lost = tuple(each for each in every if isinstance(each, int | float))
        verified = Verified(bool(said["quiet"]), bool(said.get("drift")), lost) if "quiet" in said else None
        boot_id = str(facts.get("boot_id") or "")
        return cls(run, boot_id, verified, texts(levels, "confirmed"), texts(levels, "controlled"))


@dataclass(frozen=True, slots=True)
class TrialSamples:
    """The numbers of lost samples and of sampling pauses (throttling) that perf reports for a trial of a test."""

    test: int
    lost: int
    throttled: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial that has ended. `failure`: the reason why it failed, None if it did not. `code`: the exit code, None if
    the command did not start or timed out, or if a workload failed. `values`: for each metric, the number and its text;
    empty if the trial failed. Times are in ns since 1970.
    """

    run: int
    position: int
    test: int
    begun_ns: int
    ended_ns: int
    failure: str | None
    code: int | None
    output: bytes
    errors: bytes
    values: Mapping[str, tuple[float, str]]
    facts: Mapping[str, FactValue]


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of trials that have ended (`done`), the number of these that failed, the end of the last one in ns
    since 1970, and the mean duration of a trial in ns. The last two are None before the first trial has ended.
    """

    done: int
    failed: int
    last_ns: int | None
    mean_ns: float | None


@dataclass(frozen=True, slots=True)
class TestFailure:
    """A test and one reason for which trials of it failed."""

    test: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunLeftOut:
    """A run that was skipped."""

    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """The progress of a study. `running`: whether a process is running the study; `left_s`: estimated time of the
    remaining trials in seconds, None before the first trial has ended; `set`: settings that an experiment has applied
    to this host, None for a study of orders.
    """

    name: str
    data: str
    runs: int
    runs_over: int
    runs_left_out: int
    runs_resumed: int
    trials: int
    trials_done: int
    trials_failed: int
    failures: tuple[TestFailure, ...]
    left_out: tuple[RunLeftOut, ...]
    running: bool
    finished: bool
    last_ended_s_ago: float | None
    left_s: float | None
    trial_s_mean: float | None
    set: tuple[str, ...] | None = field(default=None, metadata={LEFT_OUT: None})
