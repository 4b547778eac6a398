"""Build a short timeline of the events around one wake-up, for users, with times relative to the requested time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quiet.noise.attribute import Cause
from quiet.noise.call_nesting import BEGIN, END, NOTE, POINT, SWITCH, TraceEvent
from quiet.noise.decode import titles
from quiet.noise.names import label
from quiet.noise.wake.anatomy import IDLE_NOTE, NOT_IDLE, Thread

MOST_EVENTS = 200
BEFORE_NS = 2_000_000


class TimelineEvent(NamedTuple):
    """An event: its time in ns relative to the requested time of the wake-up, and its description."""

    ns: float
    event: str


def timeline(
    events: Sequence[TraceEvent],
    thread: Thread,
    due: int,
    at: int,
    ns: Callable[[float], float],
) -> list[TimelineEvent]:
    """The last MOST_EVENTS events, from BEFORE_NS before the wake-up was due until the thread ran, with lines for when
    it was due and when it ran.

    `ns` converts ticks to nanoseconds.
    """
    title = titles(thread.comm)
    rows: list[tuple[int, str]] = [(due, "due: the timer should expire now")]
    opened: dict[tuple[str, int], str] = {}
    for event in events:
        text = _text(event, thread, title, opened)
        if text and event.time <= at and ns(due - event.time) <= BEFORE_NS:
            rows.append((event.time, text))
    rows.append((at, f"{title(thread.pid)} runs in user space"))
    rows.sort(key=lambda row: row[0])
    return [TimelineEvent(round(ns(time - due), 1), text) for time, text in rows[-MOST_EVENTS:]]


def _text(event: TraceEvent, thread: Thread, title: Callable[[int], str], opened: dict[tuple[str, int], str]) -> str:
    if event.action == SWITCH:
        return f"switch from {title(event.pid)} to {title(event.other)}"
    if event.action == BEGIN:
        opened[event.kind, event.key] = event.name
        return f"{label(Cause(event.kind, event.name))} begins"
    if event.action == END:
        name = opened.pop((event.kind, event.key), event.name)
        return f"{label(Cause(event.kind, name))} ends" if name else ""
    if event.action == POINT:
        return label(Cause(event.kind, event.name))
    if event.action == NOTE and event.kind == IDLE_NOTE:
        return "idle ends" if event.key == NOT_IDLE else f"idle state {thread.idle_states(event.key)} begins"
    if event.action == NOTE and event.other:
        return f"wakes {title(event.other)}"
    return f"{event.kind}: {event.name}"
