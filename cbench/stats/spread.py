"""How much of the spread lies within processes and how much between them.

One-way random effects analysis of variance with unequal group sizes: Searle, Casella, McCulloch, "Variance Components"
(1992), section 3.6: s_w^2 = MSW, s_b^2 = (MSB - MSW) / n0 with n0 = (N - sum(n_i^2) / N) / (a - 1), not below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Spread:
    """All in the values' unit. `floors`, `medians`: the range of the processes' own; `within`, `between`: standard
    deviations; `share_between`: of the variance (the intraclass correlation), 0 when there is none at all."""

    floors: int
    medians: float
    within: float
    between: float
    share_between: float


def spread(groups: Sequence[Sequence[int]]) -> Spread | None:
    """Of one group of values a process; None with fewer than two processes that have two values."""
    groups = [group for group in groups if len(group) >= 2]
    if len(groups) < 2:
        return None
    total = sum(len(group) for group in groups)
    base = min(min(group) for group in groups)  # differences from it: no digits are lost on large values
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
    """The median of the processes' values for each level; {} for one level only, or one with a single process."""
    found: dict[str, list[int]] = {}
    for level, value in zip(levels, floors, strict=True):
        found.setdefault(str(level), []).append(value)
    if len(found) < 2 or min(len(values) for values in found.values()) < 2:
        return {}
    return {level: median(values) for level, values in sorted(found.items())}
