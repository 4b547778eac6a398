"""Estimate the smallest difference that comparisons on a machine detect, from A/A measurements alone.

Two sides are drawn from the measured processes, with replacement, and compared as `cbench compare` does: by the
interval of the ratio that belongs to the rank-sum test. Multiplying one side multiplies the interval, so each draw
shows the differences that it would have detected: those larger than 1/low - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, expm1, log, log1p, sqrt
from random import Random
from statistics import median

from cbench.stats.rank import interval_rank

POWER, ALPHA = 0.8, 0.05
DRAWS = 2000
FEWEST_A_SIDE = 4
MOST_DRAWN = 20
"""The maximum number of processes to draw per side; with more, the interval shrinks with the square root of their
number.
"""
MOST_A_SIDE = 100_000
REPEATS, REPEATED_DRAWS = 100, 200
"""The number of resamples for the interval of the answer, and of draws from each."""


@dataclass(frozen=True, slots=True)
class Detectable:
    """The difference, as a share, that comparisons with `processes` per side detect with probability POWER; `low` to
    `high`: its interval.

    `third_found`: the share of draws that detect a third of this difference; more than 30 % suggests that the processes
    fall into groups. `false_alarms`: the share of draws without any difference for which a comparison would have
    reported one.
    """

    difference: float
    low: float
    high: float
    processes: int
    third_found: float
    false_alarms: float

    def processes_for(self, wanted: float) -> int | None:
        """The number of processes per side that detect the difference `wanted`, a share; intervals shrink with the
        square root of this number. None if more than MOST_A_SIDE are needed.
        """
        needed = ceil(self.processes * (self.difference / wanted) ** 2)
        return max(needed, FEWEST_A_SIDE) if needed <= MOST_A_SIDE else None


def detectable(headlines: Sequence[float], processes: int, seed: int, step: float = 0.0) -> Detectable:
    """The smallest detectable difference, from the headlines of the measured processes. `processes`: the number per
    side in a comparison; `step`: the counter's step as a share of a headline. Raises ValueError for fewer than two
    headlines, or if one is not above 0.
    """
    logs = spread_of(headlines)
    random = Random(seed)
    side, scale = simulated(processes)
    drawn = intervals(logs, side, DRAWS, random)
    lows = [low for low, _ in drawn]
    again = []
    for _ in range(REPEATS):
        part = random.choices(logs, k=len(logs))
        again.append(_found([low for low, _ in intervals(part, side, REPEATED_DRAWS, random)], scale))
    low, high = (max(_quantile(again, share), step) for share in (ALPHA / 2, 1 - ALPHA / 2))
    alarms = sum(low > 0 or high < 0 for low, high in drawn) / DRAWS
    named = max(_found(lows, scale), step)
    third = sum(scale * low + log1p(named / 3) > 0 for low in lows) / DRAWS
    return Detectable(named, low, high, processes, third, alarms)


def difference(headlines: Sequence[float], processes: int, seed: int, step: float = 0.0) -> float:
    """The difference that detectable() computes, without its interval."""
    side, scale = simulated(processes)
    drawn = intervals(spread_of(headlines), side, DRAWS, Random(seed))
    return max(_found([low for low, _ in drawn], scale), step)


def simulated(processes: int) -> tuple[int, float]:
    """The number of processes to draw per side, and the factor that scales the result to the requested number."""
    side = min(processes, MOST_DRAWN)
    return side, sqrt(side / processes)


def spread_of(headlines: Sequence[float]) -> list[float]:
    """The headlines' logarithms, centered at 0 and scaled up by sqrt(n / (n - 1)), because a small sample
    underestimates the spread of all processes. Raises ValueError for fewer than two headlines, or if one is not above
    0.
    """
    if len(headlines) < 2 or min(headlines) <= 0:
        raise ValueError("at least two headlines above 0 are needed")
    logs = [log(value) for value in headlines]
    middle, wider = median(logs), sqrt(len(logs) / (len(logs) - 1))
    return [(value - middle) * wider for value in logs]


def intervals(logs: Sequence[float], processes: int, draws: int, random: Random) -> list[tuple[float, float]]:
    """The intervals of A/A comparisons, as logarithms of the ratio."""
    drawn = ((random.choices(logs, k=processes), random.choices(logs, k=processes)) for _ in range(draws))
    return [_interval(a, b) for a, b in drawn]


def _interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The interval of b - a that belongs to the rank-sum test."""
    skip = interval_rank(len(a), len(b), ALPHA)[0]
    differences = sorted(y - x for x, y in product(a, b))
    return differences[skip - 1], differences[-skip]


def _found(lows: Sequence[float], scale: float) -> float:
    """The smallest difference that the share POWER of the draws detects."""
    return max(expm1(-scale * _quantile(lows, 1 - POWER)), 0.0)


def _quantile(values: Sequence[float], share: float) -> float:
    """The quantile of at least one value, interpolated linearly (type 7 of Hyndman and Fan, 1996)."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def one_after_the_other(headlines: Sequence[float], processes: int) -> tuple[int, int]:
    """The number of comparisons of adjacent blocks of processes that report equal code as different, and the number of
    all comparisons.

    Blocks have `processes` processes, or half of the available ones; each comparison has all of A before B. (0, 0) if a
    block would have fewer than FEWEST_A_SIDE.
    """
    logs = [log(value) for value in headlines]
    size = min(processes, len(logs) // 2)
    if size < FEWEST_A_SIDE:
        return 0, 0
    starts = range(0, len(logs) - 2 * size + 1, max(size // 2, 1))
    called = 0
    for start in starts:
        low, high = _interval(logs[start : start + size], logs[start + size : start + 2 * size])
        called += low > 0 or high < 0
    return called, len(starts)
