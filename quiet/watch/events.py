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


def ended(
    why: str,
    seconds: float,
    cpu_s: float,
    looks: int,
    drifts: tuple[int, int, int] | None = None,
    interruptions: int | None = None,
) -> WatchEvent:
    """The event at the end of a watch.

    `drifts`: how many were detected, were repaired, and are still open; None: a watch without a profile.
    """
    detected, repaired, left = drifts or (0, 0, 0)
    counts = [f"{detected} drifts, {repaired} repaired, {left} open"] if drifts else []
    counts += [f"{interruptions} interruptions"] if interruptions is not None else []
    share = 100 * cpu_s / seconds if seconds else 0.0
    text = f"{why} after {seconds:.0f} s: {'; '.join(counts)}; {cpu_s:.2f} s of CPU time ({share:.3f} %)"
    summary = WatchSummary(
        round(seconds, 1), round(cpu_s, 4), round(share, 4), looks, detected, repaired, left, interruptions
    )
    return WatchEvent(ENDED, text=text, summary=summary)
