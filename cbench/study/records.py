"""What a study's store holds, as its rows are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Counts:
    """Trials that have ended, how many of them failed, when the last one ended, and how long one takes on average."""

    done: int
    failed: int
    last_ns: int | None
    mean_ns: float | None
