"""Determine the step by which a clock advances, from differences between two reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import ceil

RARE = 0.005
"""A difference that occurs in a smaller share of the reads counts as an interruption."""

ROUNDING = 2
"""Differences up to this far apart count as one level: a step of 24.5 appears as 24 and 25."""


def quantum(deltas: Sequence[int]) -> int:
    """The counter's step, rounded up; at least 1.

    If a counter advances in coarse steps, the differences form narrow levels, one step apart. If it advances in fine
    steps, they form a continuum, and the step is their smallest distance.
    """
    counts = {value: count for value, count in Counter(deltas).items() if count >= len(deltas) * RARE}
    values = sorted(counts)
    if len(values) < 2:
        return 1
    levels: list[list[int]] = [[values[0]]]
    for value in values[1:]:
        if value - levels[-1][-1] <= ROUNDING:
            levels[-1].append(value)
        else:
            levels.append([value])
    if len(levels) > 1 and all(level[-1] - level[0] <= ROUNDING for level in levels):
        centres = [sum(v * counts[v] for v in level) / sum(counts[v] for v in level) for level in levels]
        return ceil(min(high - low for low, high in pairwise(centres)))
    return min(high - low for low, high in pairwise(values))
