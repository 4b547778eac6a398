"""Calibrate the detector's loop on a CPU: its period, the clock's step, and the cost of interrupts and page faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from quiet.noise._noise import ffi, lib

PERIODS = 50_000
INTERRUPTIONS = 41  # timer interrupts that the detector causes, to measure how long one takes
FAULTS = 1000


def periods(count: int = PERIODS) -> list[int]:
    """Measure the differences between successive clock readings of the loop on the calling thread, in ticks."""
    return _lengths(lib.qn_periods, count)


def _lengths(measure: Callable[[Any, int], int | None], count: int) -> list[int]:
    lengths = ffi.new("uint64_t[]", count)
    return [] if measure(lengths, count) else list(lengths)


def calibrate(differences: Sequence[int]) -> tuple[float, int]:
    """The loop's period and the clock's step, in ticks, from differences between the loop's readings.

    The period is the mean without interrupted readings (over ten times the median). If a tick is longer than the loop,
    as is possible on arm64, most differences are 0 and the others are one tick.
    """
    usual = max(median(differences), 1)
    counts = Counter(each for each in differences if each <= 10 * usual)
    kept = counts.total()
    common = sorted(value for value, count in counts.items() if count * 50 > kept)
    return sum(value * count for value, count in counts.items()) / kept, _step(common)


def _step(common: Sequence[int]) -> int:
    """The clock's step: the common divisor of the frequent differences, to within one tick; 1 if there is none."""
    places: list[list[int]] = []
    for value in common:
        if places and value - places[-1][-1] <= 1:
            places[-1].append(value)
        else:
            places.append([value])
    middles = [sum(place) / len(place) for place in places]
    least = min((b - a for a, b in pairwise([0, *middles]) if b - a > 4), default=0)  # a few ticks may be rounding
    if not least or len(middles) < 2:
        return 1
    last = middles[-1]
    # A reading is truncated to a whole tick, so a difference is within one tick of a multiple of the step.
    for count in range(round(last / (least + 2)), round(last / (least - 2)) + 1):
        multiples = [max(round(middle * count / last), 1) for middle in middles]
        low = max((middle - 1) / multiple for middle, multiple in zip(middles, multiples, strict=True))
        high = min((middle + 1) / multiple for middle, multiple in zip(middles, multiples, strict=True))
        if low <= high:
            return round((low + high) / 2)
    return 1


def interruptions(count: int = INTERRUPTIONS) -> list[int]:
    """Measure how long single timer interrupts stop the calling thread, in ticks of the clock.

    A length is 0 if the interrupt did not arrive. The list is empty if the kernel refuses the timer.
    """
    return _lengths(lib.qn_interruptions, count)


def faults(count: int = FAULTS) -> list[int]:
    """Measure the durations of page faults, in ticks; empty if the kernel provides no memory."""
    return _lengths(lib.qn_faults, count)
