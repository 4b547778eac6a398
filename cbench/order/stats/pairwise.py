"""Would "A is larger than B" change with the order? The paper's section 3, step 5: intervals across tests.

One test is above another in an order when their intervals of the median do not overlap there; else the order leaves it
open. A pair changes when fixed and random order say different things of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    fixed, random = (
        (np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        for low, high in (bounds_fixed, bounds_random)
    )
    pairs = count = turned = 0
    named: list[Changed] = []
    for members in groups:
        at = np.array([each for each in members if not _missing(each, fixed, random)], dtype=np.intp)
        pairs += at.size * (at.size - 1) // 2
        own: list[Changed] = []
        for a, said, also in _rows(at, fixed, random):
            differ = np.flatnonzero(said[1] != also)
            opposite = said[1][differ] * also[differ] < 0
            count += differ.size
            turned += int(opposite.sum())
            # Rows come by number: behind `most` named pairs only one that is reversed can still come to the fore.
            plain = differ[~opposite][:most] if len(own) < most else differ[:0]
            for i in (*differ[opposite][:most], *plain):
                own.append(Changed(int(a), int(said[0][i]), int(said[1][i]), int(also[i])))
            if len(own) > 4 * most:
                own = _foremost(own, most)
        named = _foremost(named + own, most)
    return Across(pairs, count, turned, tuple(named))


def _rows(
    at: NDArray[np.intp], fixed: tuple[Bounds, Bounds], random: tuple[Bounds, Bounds]
) -> Iterator[tuple[int, tuple[NDArray[np.intp], NDArray[np.int8]], NDArray[np.int8]]]:
    """For each series those after it, what the fixed order says of it against each, and what the random order does."""
    for i in range(at.size - 1):
        rest = at[i + 1 :]
        yield int(at[i]), (rest, _against(at[i], rest, *fixed)), _against(at[i], rest, *random)


def _against(one: np.intp, rest: NDArray[np.intp], low: Bounds, high: Bounds) -> NDArray[np.int8]:
    return np.asarray((low[one] > high[rest]).astype(np.int8) - (high[one] < low[rest]).astype(np.int8))


def _missing(number: int, *bounds: tuple[Bounds, Bounds]) -> bool:
    return any(bool(np.isnan(low[number])) for low, _ in bounds)


def _foremost(named: list[Changed], most: int) -> list[Changed]:
    return sorted(named, key=lambda pair: (not pair.reversed, pair.a, pair.b))[:most]
