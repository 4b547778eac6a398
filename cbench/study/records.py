"""The records of a study's store, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cbench.results import LEFT_OUT

FactValue = None | bool | int | float | str | Sequence["FactValue"] | Mapping[str, "FactValue"]
StoredFacts = dict[str, FactValue]
"""What is stored of a run or a trial, as JSON."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a study is. `source`: its file's text; `tests`: their names, in the baseline's order."""

    kind: str
    name: str
    seed: int
    source: str
    folder: str
    tests: tuple[str, ...]
    host: Mapping[str, Any]
    made_ns: int = 0
    ended_ns: int | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as planned, and how far it is: `done` trials have ended."""

    number: int
    kind: str
    order: tuple[int, ...]
    begun_ns: int | None
    ended_ns: int | None
    failure: str | None
    done: int
    resumed: int = 0  # how often it went on after it had been cut short

    @property
    def over(self) -> bool:
        return self.ended_ns is not None


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial that has ended. `values`: for each metric the number and its text; none where it failed."""

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
    """Trials that have ended, how many of them failed, when the last one ended, and how long one takes on average."""

    done: int
    failed: int
    last_ns: int | None
    mean_ns: float | None


@dataclass(frozen=True, slots=True)
class TestFailure:
    """Trials of a test that failed for one reason."""

    test: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunLeftOut:
    """A run that was left out."""

    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How far a study is. `running`: in some process; `left_s`: of the trials that are left, None before the first has
    ended; `set`: what an experiment has set on this host, None for a study of orders."""

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
