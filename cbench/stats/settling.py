"""Decide when to stop discarding the first trials, and determine whether a series stays in one state.

Caches, predictors and the clock's frequency need some trials before a workload reaches a steady state (Kozak, "Chasing
Zero Variability in Software Performance", figure 3-13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

WINDOW = 10
LIMIT, LIMIT_S = 200, 10.0
"""The maximum number of warm-up trials, and the time in seconds after which no further warm-up trial begins."""
TOLERANCE = 0.001
MISPREDICTIONS = 2
"""The maximum difference in mispredictions between two settled windows."""
MISPREDICTED_SHARE = 0.05

STATE_SHARE = 0.2
"""The minimum share of trials in a state."""
APART = 5
"""The minimum distance between two states, in multiples of the larger interquartile range of their trials."""

RULE = (
    f"the lowest of {WINDOW} trials and the lowest of the {WINDOW} before agree within one step of the counter or "
    f"{TOLERANCE:.1%}, and so do their median mispredicted branches within {MISPREDICTIONS} or "
    f"{MISPREDICTED_SHARE:.0%}, whichever is more"
)


def settled(values: Sequence[int], quantum: int, mispredictions: Sequence[int] = ()) -> bool:
    """Whether RULE holds for the last two windows. RULE compares their lowest values, because an interruption makes a
    trial longer and never shorter. `mispredictions`: mispredicted branches of the same trials, empty if not counted.
    """
    if len(values) < 2 * WINDOW:
        return False
    before, after = min(values[-2 * WINDOW : -WINDOW]), min(values[-WINDOW:])
    if abs(after - before) > max(quantum, TOLERANCE * before):
        return False
    if len(mispredictions) < len(values):
        return True
    earlier, later = median(mispredictions[-2 * WINDOW : -WINDOW]), median(mispredictions[-WINDOW:])
    return abs(later - earlier) <= max(MISPREDICTIONS, MISPREDICTED_SHARE * earlier)


@dataclass(frozen=True, slots=True)
class States:
    """The two levels between which a series changes: their medians, the share of trials at the lower level, the number
    of changes, and the index, from 0, of the first trial after a change.
    """

    low: int
    high: int
    low_share: float
    changes: int
    first_change: int

    def text(self, unit: str, first: int | None = None) -> str:
        """The states as text, with trials counted from 1. `first`: the index of the first change among all trials, from
        0.
        """
        levels = f"{self.low:,} ({self.low_share:.0%} of the trials) and {self.high:,} {unit}"
        if self.changes == 1:
            return f"changes state once, at trial {(self.first_change if first is None else first) + 1:,}: {levels}"
        return f"alternates between two states, {levels}; {self.changes:,} changes"


def states(values: Sequence[int], quantum: int = 1) -> States | None:
    """The two states of a series, None if it stays in one.

    The trials are split at the widest gap between neighboring values that leaves STATE_SHARE of them on each side; the
    two sides are states if the distance between their medians is more than APART times the wider side's interquartile
    range, and more than two steps of the counter.
    """
    ordered = sorted(values)
    least = max(int(len(ordered) * STATE_SHARE), 2)
    if len(ordered) < 2 * least or least < 2:
        return None
    gaps = [(high - low, place) for place, (low, high) in enumerate(pairwise(ordered), 1)]
    width, place = max(gaps[least - 1 : len(ordered) - least], default=(0, 0))
    if not width:
        return None
    low, high = ordered[:place], ordered[place:]
    distance = median(high) - median(low)
    if distance <= max(2 * quantum, APART * max(_middle_half(low), _middle_half(high))):
        return None
    upper = [value >= high[0] for value in values]
    changes = [number for number, (one, other) in enumerate(pairwise(upper), 1) if one != other]
    return States(round(median(low)), round(median(high)), len(low) / len(ordered), len(changes), changes[0])


def _middle_half(ordered: Sequence[int]) -> int:
    return ordered[(3 * len(ordered)) // 4] - ordered[len(ordered) // 4]
