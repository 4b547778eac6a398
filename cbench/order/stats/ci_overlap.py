"""How two confidence intervals of medians lie to each other: OrderSage's three cases.

1: they do not overlap (touching ends do). 2: they overlap, and the medians lie inside. 3: anything else.
What "inside" means differs between the paper's Algorithm 2 and its prose, and again in its tool.

D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHM, PROSE, TOOL = "algorithm", "prose", "tool"
RULES = (ALGORITHM, PROSE, TOOL)


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """A median and its interval."""

    low: float
    median: float
    high: float


def case(fixed: MedianInterval, random: MedianInterval, rule: str = ALGORITHM) -> int:
    """The case: 1, 2 or 3.

    algorithm  2 when both medians lie strictly inside the other's interval (as printed).
    prose      2 when at least one lies inside, ends included (as the text says).
    tool       2 when at least one lies inside, ends included only where the random interval ends higher (as its code).
    """
    if fixed.high < random.low or random.high < fixed.low:
        return 1
    if rule == ALGORITHM:
        inside = _strictly(fixed.median, random) and _strictly(random.median, fixed)
    elif rule == PROSE or (rule == TOOL and random.high > fixed.high):
        inside = _within(fixed.median, random) or _within(random.median, fixed)
    elif rule == TOOL:
        inside = _strictly(fixed.median, random) or _strictly(random.median, fixed)
    else:
        raise ValueError(f"no such rule: {rule}")
    return 2 if inside else 3


def gap(fixed: MedianInterval, random: MedianInterval) -> float:
    """How far apart the intervals are, in widths of the wider one; negative: how much they overlap. 0 for points."""
    apart = max(fixed.low, random.low) - min(fixed.high, random.high)
    widest = max(fixed.high - fixed.low, random.high - random.low)
    return apart / widest if widest else 0.0


def _strictly(value: float, of: MedianInterval) -> bool:
    return of.low < value < of.high


def _within(value: float, of: MedianInterval) -> bool:
    return of.low <= value <= of.high
