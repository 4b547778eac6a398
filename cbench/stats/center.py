"""Compute the robust center and spread of trials that interruptions can only make longer.

The center is the mean of the values within a window that is first placed where the values are densest and is moved to
the mean of its values until it no longer moves. The shortest interval that holds a quarter of the values (Venter, "On
estimation of the mode", 1967) sets the scale: disturbed trials, which are longer, do not widen it. The window is four
times as wide, and at least four times the resolution. It holds 80 % of normally distributed values, so its mean repeats
nearly as well as the mean of all values, while the mean of the shortest quarter or a half-sample mode (Robertson, Cryer
1974; Bickel, Fruehwirth, "On a fast, robust estimator of the mode", 2006) varies several times as much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import fmean, median

QUARTER, HALF = 0.25, 0.5
WIDER = 4
TAIL = 0.05
RECENTERED = 30
ROUNDING = 1 + 1e-9
"""The factor that widens the window, so that rounding does not exclude a value at its edge."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Center:
    """A robust center, `value`, with its interval from `low` to `high`."""

    value: float
    low: float
    high: float


def shortest(ordered: Sequence[float], share: float) -> tuple[float, float]:
    """The ends of the shortest interval that holds this share of sorted values, at least two of them."""
    size = min(max(round(share * len(ordered)), 2), len(ordered))
    width, at = min((ordered[at + size - 1] - ordered[at], at) for at in range(len(ordered) - size + 1))
    return ordered[at], ordered[at] + width


def center(values: Sequence[float], resolution: float) -> Center:
    """The center of one process's values, each known to `resolution`. Raises ValueError if there are no values.

    The interval contains the shortest half of the values, and `resolution` on both sides of the center. At most 5 % of
    the values are below the interval: disturbances make a trial longer, so a lower group of values may be the time of
    an undisturbed trial.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    low, high = shortest(ordered, QUARTER)
    width = max(WIDER * (high - low), 4 * resolution)
    begin = max(ordered, key=lambda start: (bisect_right(ordered, start + width) - bisect_left(ordered, start), -start))
    middle = begin + width / 2
    half = width / 2 * ROUNDING
    for _ in range(RECENTERED):
        inside = ordered[bisect_left(ordered, middle - half) : bisect_right(ordered, middle + half)]
        mean = min(max(fmean(inside), inside[0]), inside[-1]) if inside else middle  # rounding may move it outside
        if mean == middle:
            break
        middle = mean
    low, high = shortest(ordered, HALF)
    expected = TAIL * len(ordered)
    low = min(low, ordered[max(int(expected - 2 * sqrt(expected)), 0)])
    return Center(middle, min(low, middle - resolution), max(high, middle + resolution))


def across(centers: Sequence[Center]) -> Center:
    """The center of several processes: the median of their centers. Its interval extends to the order statistics that
    contain the median at LEVEL, and on each side at least as far as the median of the processes' own distances from the
    center to the nearer end.

    If there are too few processes for such order statistics, the interval spans the intervals of all processes.
    """
    values = sorted(each.value for each in centers)
    rank = _rank(len(values))
    if rank is None:
        return Center(median(values), min(each.low for each in centers), max(each.high for each in centers))
    own = median(min(each.high - each.value, each.value - each.low) for each in centers)
    middle = median(values)
    return Center(middle, min(values[rank], middle - own), max(values[-1 - rank], middle + own))


def _rank(count: int) -> int | None:
    """The highest rank, from 0, such that the median lies between the value at this rank and the value at the same rank
    from the end, with a probability of at least LEVEL. None if there is no such rank.
    """
    below = 0
    found = None
    for rank in range(count // 2):
        below += comb(count, rank)
        if 2 * below > (1 - LEVEL) * 2**count:
            break
        found = rank
    return found
