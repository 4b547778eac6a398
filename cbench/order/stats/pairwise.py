"""Find comparisons between tests ("A is larger than B") that change with the order.

This is step 5 in section 3 of D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement",
USENIX ATC 2023.

In a given order, a test is above another one if the interval of its median lies above that of the other median. If the
intervals overlap, the pair is undecided in that order. A pair changes if fixed and random order disagree on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bounds = NDArray[np.float64]
WORDS = {-1: "below", 0: "cannot tell", 1: "above"}


@dataclass(frozen=True, slots=True)
class ChangedPair:
    """A pair of tests `a` and `b` that the two orders rank differently; the verdict of each order is one of WORDS."""

    a: str
    b: str
    fixed: str
    random: str


@dataclass(frozen=True, slots=True)
class OrderComparison:
    """The comparisons between tests. `pairs`: the number of pairs that could be compared; `changed`: pairs whose
    comparison changes with the order; `reversed`: pairs whose comparison changes into its opposite. `left_off`: the
    number of changed pairs that are not `named`. `expected`: the mean number of changed pairs if the order has no
    effect; `p`: the probability of at least as many changed pairs; both None if not computed.
    """

    pairs: int
    changed: int
    reversed: int
    left_off: int
    named: tuple[ChangedPair, ...]
    expected: float | None = None
    p: float | None = None


def across(
    names: Sequence[str],
    bounds_fixed: tuple[ArrayLike, ArrayLike],
    bounds_random: tuple[ArrayLike, ArrayLike],
    groups: Sequence[Sequence[int]],
    most: int = 1000,
) -> OrderComparison:
    """Compare series within `groups`, from the lower and upper interval ends of each series in both orders (NaN: no
    interval).

    `most`: the maximum number of named pairs. Reversed pairs are named first; within reversed and other pairs, the
    order is that of the series.
    """
    fixed, random = (tuple(np.asarray(end, dtype=np.float64) for end in ends) for ends in (bounds_fixed, bounds_random))
    missing = np.isnan(fixed[0]) | np.isnan(random[0])
    pairs = changed = turned = 0
    found: list[tuple[bool, int, int, int, int]] = []  # (not reversed, a, b, the result in each order)
    for members in groups:
        at = np.array([number for number in members if not missing[number]], dtype=np.intp)
        pairs += at.size * (at.size - 1) // 2
        room = {True: most, False: most}
        for place, a in enumerate(at.tolist()):
            rest = at[place + 1 :]
            by_fixed, by_random = (_against(a, rest, *ends) for ends in (fixed, random))
            opposite = by_fixed * by_random < 0
            differs = by_fixed != by_random
            changed += int(np.count_nonzero(differs))
            turned += int(np.count_nonzero(opposite))
            for plain, which in ((False, opposite), (True, differs & ~opposite)):
                named = np.flatnonzero(which)[: room[plain]].tolist()  # rows are sorted by number
                room[plain] -= len(named)
                found += [(plain, a, int(rest[i]), int(by_fixed[i]), int(by_random[i])) for i in named]
    first = [ChangedPair(names[a], names[b], WORDS[x], WORDS[y]) for _, a, b, x, y in sorted(found)[:most]]
    return OrderComparison(pairs, changed, turned, changed - len(first), tuple(first))


def _against(a: int, rest: NDArray[np.intp], low: Bounds, high: Bounds) -> NDArray[np.int8]:
    return np.asarray((low[a] > high[rest]).astype(np.int8) - (high[a] < low[rest]).astype(np.int8))
