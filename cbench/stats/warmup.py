"""When to stop discarding the first trials."""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 10
LIMIT = 200
TOLERANCE = 0.001


def settled(values: Sequence[int], quantum: int) -> bool:
    """Whether the minima of the last two windows agree within one step of the counter or 0.1 %."""
    if len(values) < 2 * WINDOW:
        return False
    before, after = min(values[-2 * WINDOW : -WINDOW]), min(values[-WINDOW:])
    return abs(after - before) <= max(quantum, TOLERANCE * before)
