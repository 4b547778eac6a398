"""Mode, floor, range and percentiles of one workload's trials, as in the thesis's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Summary:
    """All in the counter's unit; `p90`, `p99` and `max` are differences from the mode.

    `floor` is the lowest value that repeats, None when no value does; `at_floor` counts the trials on it and
    `near_floor` those within one step of the counter. `mode_count` is 1 when no value repeats.
    """

    count: int
    minimum: int
    mode: int
    mode_count: int
    floor: int | None
    at_floor: int
    near_floor: int
    range: int
    p90: int
    p99: int
    max: int


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The nearest-rank percentile of sorted values: always one of them."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def mode(values: Sequence[int]) -> tuple[int, int]:
    """The most frequent value and how often it occurs; of several, the lowest."""
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most), most


def floor(values: Sequence[int]) -> int | None:
    """The lowest value that occurs at least twice."""
    return min((value for value, count in Counter(values).items() if count > 1), default=None)


def by_chance(values: Sequence[int], lowest: int, quantum: int) -> bool:
    """Whether more values lie below a floor than on it: two of many agree somewhere, and the true floor lies lower."""
    return sum(value < lowest - quantum for value in values) > sum(abs(value - lowest) <= quantum for value in values)


def summarise(values: Sequence[int], quantum: int = 1, base: Sequence[int] | None = None) -> Summary:
    """`base`: those of the values that floor and mode are taken from, None for all. Raises ValueError on no values."""
    if not values:
        raise ValueError("no trials to summarise")
    ordered = sorted(values)
    most, _ = mode(base or values)
    lowest = floor(values if base is None else base)
    return Summary(
        count=len(ordered),
        minimum=ordered[0],
        mode=most,
        mode_count=ordered.count(most),
        floor=lowest,
        at_floor=0 if lowest is None else ordered.count(lowest),
        near_floor=0 if lowest is None else sum(abs(value - lowest) <= quantum for value in ordered),
        range=ordered[-1] - ordered[0],
        p90=percentile(ordered, 90) - most,
        p99=percentile(ordered, 99) - most,
        max=ordered[-1] - most,
    )
