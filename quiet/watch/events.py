"""What watching tells: events, as JSON objects and as lines to read."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from quiet.settings.plan import Change
from quiet.targets import value_types

WATCHING, DRIFT, MENDED, REPAIRED, REFUSED, NOTE, ENDED = (
    *("watching", "drift", "as wanted again", "repaired", "not repaired", "note", "ended"),
)
_WIDTH = max(map(len, (WATCHING, DRIFT, MENDED, REPAIRED, REFUSED, NOTE, ENDED)))


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line. `change` is the drift that it is about, `by` what told of it, `text` further words."""

    what: str
    change: Change | None = None
    by: str = ""
    text: str = ""
    more: dict[str, object] = field(default_factory=dict)


def shape(event: WatchEvent) -> dict[str, object]:
    """One object of `quiet watch --json`, of one line."""
    shaped: dict[str, object] = {"time": round(time.time(), 3), "event": event.what}
    if change := event.change:
        shaped |= {
            "knob": change.knob,
            "target": change.target,
            "label": change.label or None,
            "current": None if change.current is None else value_types.plain(change.kind, change.current),
            "wanted": change.wanted,
            "why": change.why,
        }
    if event.by:
        shaped["by"] = event.by
    if event.text:
        shaped["text"] = event.text
    return shaped | event.more


def line(event: WatchEvent) -> str:
    """The same for people, with the time of day."""
    parts = [time.strftime("%H:%M:%S"), event.what.ljust(_WIDTH)]
    if change := event.change:
        target = f"{change.target.removeprefix('file:')} {change.label}".strip()
        now = "absent" if change.current is None else value_types.plain(change.kind, change.current)
        parts.append(f"{change.knob}: {target}: {now}, wanted {change.wanted}")
        if event.what in (MENDED, REPAIRED):
            parts[-1] = f"{change.knob}: {target}: {change.wanted}"
    said = "; ".join(filter(None, (event.text, event.by and f"told by {event.by}")))
    return "  ".join([*parts, *filter(None, [f"({said})" if event.change and said else said])])
