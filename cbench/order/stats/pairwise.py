"""Would "A is larger than B" change with the order? The paper's section 3, step 5: intervals across tests.

One test is above another in an order when their intervals of the median do not overlap there; else the order leaves it
open. A pair changes when fixed and random order say different things of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bounds = NDArray[np.float64]
BELOW, OPEN, ABOVE = -1, 0, 1


@dataclass(frozen=True, slots=True)
class Changed:
    """What each order says of series `a` against series `b`: BELOW, OPEN or ABOVE."""

    a: int
    b: int
    fixed: int
    random: int

    @property
    def reversed(self) -> bool:
        """Whether the orders say the opposite of each other."""
        return self.fixed * self.random < 0


@dataclass(frozen=True, slots=True)
class Across:
    """`pairs` that could be compared, of which `changed` change, `reversed` of them into their opposite."""

    pairs: int
    changed: int
    reversed: int
    first: tuple[Changed, ...]


def across(
    bounds_fixed: tuple[ArrayLike, ArrayLike],
    bounds_random: tuple[ArrayLike, ArrayLike],
    groups: Sequence[Sequence[int]],
    most: int = 1000,
) -> Across:
    """Lower and upper ends of each series in both orders (NaN: none). Series are compared within `groups`.

    `most`: how many pairs are named; those that are reversed come first, then by number.
    """
    fixed, random = (tuple(np.asarray(end, dtype=np.float64) for end in ends) for ends in (bounds_fixed, bounds_random))
    missing = np.isnan(fixed[0]) | np.isnan(random[0])
    pairs = changed = turned = 0
    opposites: list[Changed] = []
    others: list[Changed] = []
    for members in groups:
        at = np.array([number for number in members if not missing[number]], dtype=np.intp)
        pairs += at.size * (at.size - 1) // 2
        own_opposites: list[Changed] = []
        own_others: list[Changed] = []
        for place, a in enumerate(at.tolist()):
            rest = at[place + 1 :]
            by_fixed, by_random = (_against(a, rest, *ends) for ends in (fixed, random))
            changed += int(np.count_nonzero(by_fixed != by_random))
            opposite = by_fixed * by_random < 0
            for named, which in ((own_opposites, opposite), (own_others, (by_fixed != by_random) & ~opposite)):
                for i in np.flatnonzero(which)[: most - len(named)].tolist():  # rows come by number
                    named.append(Changed(a, int(rest[i]), int(by_fixed[i]), int(by_random[i])))
            turned += int(np.count_nonzero(opposite))
        opposites += own_opposites
        others += own_others
    named = sorted(opposites, key=_by_number)[:most]
    return Across(pairs, changed, turned, (*named, *sorted(others, key=_by_number)[: most - len(named)]))


def _against(a: int, rest: NDArray[np.intp], low: Bounds, high: Bounds) -> NDArray[np.int8]:
    return np.asarray((low[a] > high[rest]).astype(np.int8) - (high[a] < low[rest]).astype(np.int8))


def _by_number(pair: Changed) -> tuple[int, int]:
    return pair.a, pair.b
