"""Estimate the smallest difference that comparisons on a machine detect, from A/A measurements alone.

Two sides are drawn from the measured processes, with replacement, and compared as `cbench compare` does: by the
interval of the ratio that belongs to the rank-sum test. Multiplying one side multiplies the interval, so each draw
shows the differences that it would have detected: those larger than 1/low - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.rank import interval_rank

POWER, ALPHA = 0.8, 0.05
DRAWS = 2000
BATCH = 500
FEWEST_A_SIDE = 4
MOST_DRAWN = 40
"""The maximum number of processes to draw per side; with more, the interval shrinks with the square root of their
number.
"""
MOST_A_SIDE = 100_000
REPEATS, REPEATED_DRAWS = 100, 200
"""The number of resamples for the interval of the answer, and of draws from each."""

Logs = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Detectable:
    """The difference, as a share, that comparisons with `processes` per side detect with probability POWER; `low` to
    `high`: its interval.

    `third_found`: the share of draws that detect a third of this difference; more than 30 % if the processes fall into
    groups. `false_alarms`: the share of draws without any difference for which a comparison would have reported one.
    """

    difference: float
    low: float
    high: float
    processes: int
    third_found: float
    false_alarms: float

    def processes_for(self, wanted: float) -> int | None:
        """The number of processes per side that detect the difference `wanted`; intervals shrink with its square root.
        None if too many are needed.
        """
        needed = ceil(self.processes * (self.difference / wanted) ** 2)
        return max(needed, FEWEST_A_SIDE) if needed <= MOST_A_SIDE else None


def detectable(headlines: Sequence[float], processes: int, seed: int, step: float = 0.0) -> Detectable:
    """The smallest detectable difference, from the headlines of at least two processes, all above 0. `step`: the
    counter's step as a share of a headline.
    """
    logs = spread_of(headlines)
    rng = np.random.default_rng(seed)
    side, scale = simulated(processes)
    lows, highs = intervals(logs, side, DRAWS, rng)
    again = [_found(intervals(part, side, REPEATED_DRAWS, rng)[0], scale) for part in _resampled(logs, rng)]
    low, high = (max(float(end), step) for end in np.quantile(again, [ALPHA / 2, 1 - ALPHA / 2]))
    alarms = float(np.mean((lows > 0) | (highs < 0)))
    named = max(_found(lows, scale), step)
    third = float(np.mean(scale * lows + np.log1p(named / 3) > 0))
    return Detectable(named, low, high, processes, third, alarms)


def difference(headlines: Sequence[float], processes: int, seed: int, step: float = 0.0) -> float:
    """The difference that detectable() computes, without its interval."""
    side, scale = simulated(processes)
    lows, _ = intervals(spread_of(headlines), side, DRAWS, np.random.default_rng(seed))
    return max(_found(lows, scale), step)


def simulated(processes: int) -> tuple[int, float]:
    """The number of processes to draw per side, and the factor that scales the result to the requested number."""
    side = min(processes, MOST_DRAWN)
    return side, sqrt(side / processes)


def spread_of(headlines: Sequence[float]) -> Logs:
    """The headlines' logarithms, centered at 0 and scaled to the estimated spread of all processes, because few values
    have too small a spread.
    """
    if len(headlines) < 2 or min(headlines) <= 0:
        raise ValueError("at least two headlines above 0 are needed")
    logs = np.log(np.asarray(headlines, dtype=np.float64))
    logs -= np.median(logs)
    return logs * sqrt(len(logs) / (len(logs) - 1))


def intervals(logs: Logs, processes: int, draws: int, rng: np.random.Generator) -> tuple[Logs, Logs]:
    """The ends of the intervals of A/A comparisons, as logarithms of the ratio."""
    skip = interval_rank(processes, processes, ALPHA)[0]
    lows, highs = np.empty(draws), np.empty(draws)
    for start in range(0, draws, BATCH):
        size = min(BATCH, draws - start)
        a, b = (rng.choice(logs, size=(size, processes)) for _ in range(2))
        ratios = (b[:, :, None] - a[:, None, :]).reshape(size, -1)
        ratios.partition([skip - 1, processes**2 - skip], axis=1)
        lows[start : start + size] = ratios[:, skip - 1]
        highs[start : start + size] = ratios[:, processes**2 - skip]
    return lows, highs


def found_share(logs: Logs, processes: int, difference: float, seed: int, draws: int = DRAWS) -> float:
    """The share of comparisons that detect a planted difference with the correct sign."""
    lows, _ = intervals(logs, processes, draws, np.random.default_rng(seed))
    return float(np.mean(lows + np.log1p(difference) > 0))


def _found(lows: Logs, scale: float) -> float:
    """The smallest difference that the share POWER of the draws detects."""
    return max(float(np.expm1(-scale * np.quantile(lows, 1 - POWER))), 0.0)


def _resampled(logs: Logs, rng: np.random.Generator) -> list[Logs]:
    return [rng.choice(logs, size=len(logs)) for _ in range(REPEATS)]


def one_after_the_other(headlines: Sequence[float], processes: int) -> tuple[int, int]:
    """The number of comparisons of adjacent blocks of processes that report equal code as different, and the number of
    all comparisons.

    Blocks have `processes` processes, or half of the available ones; each comparison has all of A before B.
    """
    logs = np.log(np.asarray(headlines, dtype=np.float64))
    size = min(processes, len(logs) // 2)
    if size < FEWEST_A_SIDE:
        return 0, 0
    skip = interval_rank(size, size, ALPHA)[0]
    starts = range(0, len(logs) - 2 * size + 1, max(size // 2, 1))
    called = 0
    for start in starts:
        a, b = logs[start : start + size], logs[start + size : start + 2 * size]
        ratios = np.sort((b[:, None] - a[None, :]).ravel())
        called += bool(ratios[skip - 1] > 0 or ratios[size**2 - skip] < 0)
    return called, len(starts)
