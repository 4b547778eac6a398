"""Check face validity: the properties that readings have if the instruments work. Each rule is a pure function.
D. Flater, NIST TN 1855 (2014), sections 3.5 to 3.8. The Note judges by plots; the numbers here are cbench's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cbench.stats.interval import Values, checked, no_numbers

DROP = 0.5
"""A CPU metric below this share of its median counts as too low, because chance does not halve the CPU time of a
fixed amount of work.
"""

NORMAL_IQRS = 3.0
"""Elapsed times within this many interquartile ranges of the quartiles are normal (Tukey's outer fences)."""

TOLERANCE = 0.01
"""Medians agree if they differ by at most this share."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's verdict on some readings. `holds`: whether the rule holds, None if unknown; `wrong` of `n` trials
    violate it; `words`: the evidence, or the reason why the answer is unknown.

    Rules about medians count no trials: `wrong` is 0 or n.
    """

    rule: str
    holds: bool | None
    wrong: int
    n: int
    words: str


def cpu_drop(cpu: ArrayLike, elapsed: ArrayLike) -> Finding:
    """Check that no trial has a CPU metric below DROP of its median while its elapsed time is normal (NORMAL_IQRS).
    Such a reading is a fault of the instrument. Both metrics must come from the same trials; their units may differ,
    and the CPU metric need not be a time.
    """
    used, took = _alike(cpu, elapsed)
    rule = "CPU time does not drop while elapsed time is normal"
    missing = _missing(used, took)
    if missing:
        return Finding(rule, None, 0, used.size, missing)
    first, third = (float(each) for each in np.quantile(took, (0.25, 0.75)))
    reach = NORMAL_IQRS * (third - first)
    normal = (took >= first - reach) & (took <= third + reach)
    middle = float(np.median(used))
    if middle <= 0:
        return Finding(rule, None, 0, used.size, "half of the CPU readings or more are 0")
    wrong = int(np.count_nonzero(normal & (used < DROP * middle)))
    words = f"{wrong:,} of {used.size:,} trials have a normal duration and a CPU reading below {DROP:g} of the median"
    return Finding(rule, wrong == 0, wrong, used.size, words)


def cpu_drop_alone(cpu: ArrayLike, others: Sequence[ArrayLike]) -> Finding:
    """Like cpu_drop(), for work of a fixed duration that gets the CPU time that other programs leave.

    Each reading is divided by the median of its instrument. No trial may have a quotient of `cpu` below DROP times the
    median quotient of `others` in that trial: competing load lowers all readings, but a fault lowers only one.
    """
    used, *beside = _alike(cpu, *others)
    rule = "the CPU time of one instrument does not drop alone"
    missing = _missing(used, *beside)
    if missing:
        return Finding(rule, None, 0, used.size, missing)
    if not beside:
        return Finding(
            rule, None, 0, used.size, "no other instrument reports how much CPU time the competing load has left"
        )
    middles = [float(np.median(row)) for row in (used, *beside)]
    if min(middles) <= 0:
        return Finding(rule, None, 0, used.size, "half of the CPU readings or more are 0")
    share, *shares = (row / middle for row, middle in zip((used, *beside), middles, strict=True))
    wrong = int(np.count_nonzero(share < DROP * np.median(shares, axis=0)))
    words = f"{wrong:,} of {used.size:,} trials have a CPU reading below {DROP:g} of the other instruments' reading"
    return Finding(rule, wrong == 0, wrong, used.size, words)


def cpu_within_elapsed(cpu: ArrayLike, elapsed: ArrayLike, parallel: bool, resolution: float = 0.0) -> Finding:
    """Check that CPU time is at most the elapsed time of the same trial plus `resolution`, in the same unit. The CPU
    time of parallel work may exceed the elapsed time, so for this work the rule always holds.
    """
    used, took = _alike(cpu, elapsed)
    rule = "CPU time is not above elapsed time"
    missing = _missing(used, took)
    if missing:
        return Finding(rule, None, 0, used.size, missing)
    above = int(np.count_nonzero(used > took + resolution))
    if parallel:
        busy = f", median utilization {np.median(used / took):.2f}" if took.min() > 0 else ""
        return Finding(
            rule, True, 0, used.size, f"{above:,} of {used.size:,} trials above elapsed time: parallel work{busy}"
        )
    return Finding(rule, above == 0, above, used.size, f"{above:,} of {used.size:,} trials above elapsed time")


def elapsed_alike(elapsed: Mapping[str, ArrayLike], tolerance: float = TOLERANCE) -> Finding:
    """Check that several instruments agree on the elapsed time of one workload: all medians are within `tolerance` (a
    share) of the smallest.
    """
    rule = "elapsed times of all instruments agree"
    rows = {name: checked(values) for name, values in elapsed.items()}
    n = sum(row.size for row in rows.values())
    for name, row in rows.items():
        missing = _missing(row)
        if missing:
            return Finding(rule, None, 0, n, f"{name}: {missing}")
    if len(rows) < 2:
        return Finding(rule, None, 0, n, "two instruments are needed")
    middles = sorted((float(np.median(row)), name) for name, row in rows.items())
    (low, least), (high, most) = middles[0], middles[-1]
    if low <= 0:
        return Finding(rule, None, 0, n, f"{least}: the median is not above 0")
    away = high / low - 1
    words = f"medians differ by {100 * away:.3g} % at most: {least} {low:.6g}, {most} {high:.6g}"
    return Finding(rule, away <= tolerance, 0 if away <= tolerance else n, n, words)


def user_system_is_clock(
    user: ArrayLike, system: ArrayLike, clock: ArrayLike, resolution: float, tolerance: float = TOLERANCE
) -> Finding:
    """Check that the median of user + sys equals the median of cpu-clock, up to `tolerance` (a share) and the
    `resolution` of user and of sys.

    All times are in seconds. `user` and `system` must come from the same trials; `clock` may come from others.
    """
    ours, theirs, other = *_alike(user, system), checked(clock)
    rule = "user and system time add up to cpu-clock"
    missing = _missing(ours, theirs) or _missing(other)
    if missing:
        return Finding(rule, None, 0, ours.size, missing)
    together, wanted = float(np.median(ours + theirs)), float(np.median(other))
    away = abs(together - wanted)
    holds = away <= tolerance * wanted + 2 * resolution
    words = f"medians: user + sys {together:.6g} s, cpu-clock {wanted:.6g} s"
    return Finding(rule, holds, 0 if holds else ours.size, ours.size, words)


def pegged(elapsed: ArrayLike, wanted: float, resolution: float) -> Finding:
    """Check that an etalon's elapsed time is never below its waiting time `wanted` minus `resolution`, all in
    seconds.
    """
    row = checked(elapsed)
    rule = "an etalon takes as long as it is set to wait"
    missing = _missing(row)
    if missing:
        return Finding(rule, None, 0, row.size, missing)
    wrong = int(np.count_nonzero(row < wanted - resolution))
    words = f"{wrong:,} of {row.size:,} trials below {wanted:g} s, the shortest {row.min():.6g} s"
    return Finding(rule, wrong == 0, wrong, row.size, words)


def _alike(*rows: ArrayLike) -> list[Values]:
    readings = [checked(row) for row in rows]
    for row in readings[1:]:
        if row.size != readings[0].size:
            raise ValueError(
                f"readings of the same trials are needed, but there are {readings[0].size:,} and {row.size:,}"
            )
    return readings


def _missing(*rows: Values) -> str | None:
    """The reason why no verdict is possible; None if a verdict is possible."""
    if not rows[0].size:
        return "there are no readings"
    return next((words for row in rows if (words := no_numbers(row))), None)
