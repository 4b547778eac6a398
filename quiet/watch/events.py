"""Define the events that `quiet watch` reports."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field

from quiet.settings.plan import Change

WATCHING, DRIFT, MENDED, REPAIRED, REFUSED, INTERRUPTED, NOTE, ENDED = NAMES = (
    *("watching", "drift", "as wanted again", "repaired", "not repaired", "interrupted", "note", "ended"),
)


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """The summary at the end of a watch.

    `looks`: the number of checks; `drifts`, `repaired`, `open`: how many drifts were detected, were repaired, and are
    still open; `cpu_percent`: CPU time as a share of one CPU.
    """

    seconds: float
    cpu_seconds: float
    cpu_percent: float
    looks: int
    drifts: int
    repaired: int
    open: int
    interruptions: int | None = None  # None: not counted


@dataclass(frozen=True, slots=True)
class WatchInterruption:
    """A cause that interrupted watched CPUs, with its count for each CPU in the last `seconds`."""

    cause: str
    kind: str
    counts: Mapping[int, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event: its drift or cause, the source that reported it (`by`), and further text.

    `missing`: the sources that this host lacks.
    """

    event: str
    change: Change | None = None
    by: str = ""
    text: str = ""
    missing: tuple[str, ...] | None = None
    summary: WatchSummary | None = None
    interruption: WatchInterruption | None = None
    time: float = field(default_factory=clock.time)

    @property
    def settled(self) -> bool:
        """Whether the drift has ended."""
        return self.event in (MENDED, REPAIRED)
