"""Compute mode, floor, range, percentiles and spread of one workload's trials.

The figures are those of Kozak, "Chasing Zero Variability in Software Performance".

The spread is divided into parts within and between processes by a one-way random effects analysis of variance with
unequal group sizes: Searle, Casella, McCulloch, "Variance Components" (1992), section 3.6: s_w^2 = MSW, s_b^2 = (MSB -
MSW) / n0 with n0 = (N - sum(n_i^2) / N) / (a - 1), not below 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one workload's trials, in the counter's unit; `p90`, `p99` and `max` are differences from the
    mode.

    `floor`: the lowest value that repeats, None if no value does; `at_floor`: the number of trials equal to the floor;
    `near_floor`: the number of trials at most one step of the counter from the floor. `mode_count`: the number of
    trials equal to the mode, 1 if no value repeats.
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
    """The nearest-rank percentile of sorted values, which is always one of the values."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def mode(values: Sequence[int]) -> tuple[int, int]:
    """The most frequent value and its number of occurrences; if several are equally frequent, the lowest one."""
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most), most


def floor(values: Sequence[int]) -> int | None:
    """The lowest value that occurs at least twice; None if there is none."""
    return min((value for value, count in Counter(values).items() if count > 1), default=None)


def by_chance(values: Sequence[int], lowest: int, quantum: int) -> bool:
    """Whether a floor is a coincidence: more values are below `lowest` by more than `quantum` than are within `quantum`
    of it. Then the values that repeat there are equal by chance, and the true floor is lower.
    """
    return sum(value < lowest - quantum for value in values) > sum(abs(value - lowest) <= quantum for value in values)


def summarise(values: Sequence[int], quantum: int = 1, base: Sequence[int] | None = None) -> Summary:
    """Summarize the values. `base`: the subset of values from which floor and mode are derived, None for all; if
    it is empty, there is no floor, and the mode is that of all values. Raises ValueError if there are no values.
    """
    if not values:
        raise ValueError("no trials to summarize")
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


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread within and between processes, in the values' unit. `floors`, `medians`: the ranges of the processes'
    lowest values and medians; `within`, `between`: standard deviations within and between processes; `share_between`:
    the share of the variance that is between processes (the intraclass correlation), 0 if nothing varies.
    """

    floors: int
    medians: float
    within: float
    between: float
    share_between: float


def spread(groups: Sequence[Sequence[int]]) -> Spread | None:
    """The spread of groups of values, one per process; None if fewer than two processes have two or more values."""
    groups = [group for group in groups if len(group) >= 2]
    if len(groups) < 2:
        return None
    total = sum(len(group) for group in groups)
    base = min(min(group) for group in groups)  # subtracted first, so that large values lose no digits
    means = [fmean(value - base for value in group) for group in groups]
    grand = sum(mean * len(group) for mean, group in zip(means, groups, strict=True)) / total
    inner = sum((value - base - mean) ** 2 for mean, group in zip(means, groups, strict=True) for value in group)
    outer = sum(len(group) * (mean - grand) ** 2 for mean, group in zip(means, groups, strict=True))
    within = inner / (total - len(groups))
    size = (total - sum(len(group) ** 2 for group in groups) / total) / (len(groups) - 1)
    between = max((outer / (len(groups) - 1) - within) / size, 0.0)
    lows, middles = [min(group) for group in groups], [median(group) for group in groups]
    return Spread(
        floors=max(lows) - min(lows),
        medians=max(middles) - min(middles),
        within=sqrt(within),
        between=sqrt(between),
        share_between=between / (between + within) if between + within else 0.0,
    )


def by_level(levels: Sequence[object], floors: Sequence[int]) -> Mapping[str, float]:
    """The median of the processes' floors for each level; {} if there is only one level, or a level with only one
    process.
    """
    found: dict[str, list[int]] = {}
    for level, value in zip(levels, floors, strict=True):
        found.setdefault(str(level), []).append(value)
    if len(found) < 2 or min(len(values) for values in found.values()) < 2:
        return {}
    return {level: median(values) for level, values in sorted(found.items())}
