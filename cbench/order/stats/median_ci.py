"""Compute confidence intervals of medians by ranks, and classify the intervals of two orders by OrderSage's three
cases.

The ranks come from cbench/stats/median_ranks.py. OrderSage uses Le Boudec's normal approximation, increases both ranks
by one, and clamps them to the sample.

Case 1: the intervals do not overlap (touching ends count as overlap). Case 2: they overlap, and each median lies inside
the other interval. Case 3: anything else. D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance
Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """A median and its interval."""

    low: float
    median: float
    high: float


def case(fixed: MedianInterval, random: MedianInterval, published: bool = False) -> int:
    """The case: 1, 2 or 3. For case 2, the paper's Algorithm 2 requires each median to be strictly inside the other
    interval.

    `published`: use OrderSage's rule, by which a single median inside is enough, and a median on an end also counts as
    inside if the upper end of the random order's interval is the higher one.
    """
    if fixed.high < random.low or random.high < fixed.low:
        return 1
    pairs = ((fixed.median, random), (random.median, fixed))
    if not published:
        inside = all(other.low < median < other.high for median, other in pairs)
    elif random.high > fixed.high:
        inside = any(other.low <= median <= other.high for median, other in pairs)
    else:
        inside = any(other.low < median < other.high for median, other in pairs)
    return 2 if inside else 3


def gap(fixed: MedianInterval, random: MedianInterval) -> float:
    """The distance between the intervals in widths of the wider one, negative if they overlap; 0 if both are points."""
    apart = max(fixed.low, random.low) - min(fixed.high, random.high)
    widest = max(fixed.high - fixed.low, random.high - random.low)
    return apart / widest if widest else 0.0
