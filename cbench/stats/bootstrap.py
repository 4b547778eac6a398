"""Compute sums of bootstrap samples: n values drawn with replacement from n values, any number of times.

For many values, the program draws a count per value instead of an index per draw; one table lookup yields four counts.

The counts are multinomial, which is the distribution of independent Poisson variables, given that these add up to n.
The variables are drawn with a mean a little below 1. If they add up to less than n, the missing values are drawn one by
one: given their sum T, Poisson counts are distributed like T draws, so n - T further draws complete the sample. Samples
with a sum above n are rejected; rejection depends only on T and does not change the distribution of the counts given T.
The result is therefore an exact bootstrap sample, not an approximation.

Four counts are drawn at once: 16 random bits select one of 65,536 cells, and each combination of four counts has as
many cells as its probability fills. The remaining fractions of a cell share the last cells. If one of these is
selected, a second table of cells selects the combination and, for the remainder, cumulative probabilities do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.interval import Values

CHUNK = 120_000
"""The number of values drawn at a time: the results stay in the CPU's caches, and larger matrix products take four
times as long per value in OpenBLAS.
"""

COUNTED = 256
"""With at least this many values, counts per value are drawn instead of indices."""

FOUR = 4
CELLS = 1 << 16
MOST_COUNTS = 19
"""The largest count in the table; a Poisson count with a mean below 1 exceeds it in fewer than one in 1e18 cases."""

BELOW = 1.75
"""The difference between n and the expected sum of the counts, in standard deviations; 1 in 25 samples is discarded."""

BLOCKS = 8
"""The number of parts in which a chunk of counts is converted."""

Packed = NDArray[np.uint32]
"""Four counts, one byte each."""

Places = NDArray[np.intp]


def sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of `replicates` bootstrap samples of the row. Shape (replicates,)."""
    if row.size >= COUNTED:
        return counted_sums(row, replicates, rng)
    return plain_sums(row, replicates, rng)


def plain_sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of bootstrap samples by definition: draw n positions, look up the values, add them."""
    totals = np.empty(replicates)
    rows = max(1, CHUNK // row.size)
    for start in range(0, replicates, rows):
        stop = min(start + rows, replicates)
        places = rng.integers(0, row.size, size=(stop - start, row.size), dtype=np.uint32)
        totals[start:stop] = row[places].sum(axis=1)
    return totals


def rounding(n: int, middle: float, scale: float) -> float:
    """The difference, in units of `scale`, below which means of n values around `middle` are treated as equal."""
    return 8 * float(np.finfo(np.float64).eps) * (sqrt(n) + abs(middle) / scale)


@dataclass(frozen=True, slots=True)
class CountTable:
    """The combinations of four counts that random cell numbers select. `cells`: the combination of each cell before
    `rare`. From `rare` on, a second cell number selects a combination from `left`; if this number is at least
    `left_rare`, the `cumulated` probabilities select a combination from `last`.
    """

    cells: Packed
    rare: int
    left: Packed
    left_rare: int
    last: Packed
    cumulated: Values


@lru_cache(maxsize=4)
def table(mean: float) -> CountTable:
    """The table for four Poisson counts with this mean, which must be at most 1."""
    one = np.array([exp(-mean) * mean**k / factorial(k) for k in range(MOST_COUNTS + 1)])
    pair = np.multiply.outer(one, one).ravel()
    every = np.stack(list(np.indices((MOST_COUNTS + 1,) * FOUR, dtype=np.uint8)), axis=-1).reshape(-1, FOUR)
    packed = every.view(np.uint32).ravel()
    cells, rare, left = _cells(packed, np.multiply.outer(pair, pair).ravel())
    more, left_rare, last = _cells(packed, left / left.sum())
    return CountTable(cells, rare, more, left_rare, packed, np.cumsum(last))


def _cells(packed: Packed, chances: Values) -> tuple[Packed, int, Values]:
    """Each of `packed` repeated for the cells that its probability fills; the first remaining cell; and the remainder
    of each probability, in cells.
    """
    whole = np.floor(chances * CELLS).astype(np.intp)
    full = int(whole.sum())
    cells = np.zeros(CELLS, dtype=np.uint32)
    cells[:full] = np.repeat(packed, whole)
    return cells, full, chances * CELLS - whole


def counted_sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of `replicates` bootstrap samples of the row, computed from counts per value."""
    n = row.size
    drawer = Drawer(row, max(1, CHUNK // n))
    totals = np.empty(replicates)
    done = 0
    while done < replicates:
        drawn = drawer.poisson_sums(rng)
        drawn = drawn[drawn[:, 1] <= n][: replicates - done]
        missing = n - drawn[:, 1].astype(np.intp)
        totals[done : done + missing.size] = drawn[:, 0] + _more(row, missing, rng)
        done += missing.size
    return totals


def _more(row: Values, missing: Places, rng: np.random.Generator) -> Values:
    """For each sample, the sum of its missing draws, drawn one by one. `missing`: their number in each sample."""
    drawn = np.zeros(int(missing.sum()) + 1)
    row.take(rng.integers(0, row.size, size=drawn.size - 1, dtype=np.uint32), out=drawn[:-1], mode="clip")
    return np.where(missing > 0, np.add.reduceat(drawn, np.cumsum(missing) - missing), 0.0)


class Drawer:
    """Draws sets of Poisson counts, with a mean a little below 1, for the values of a row.

    It reuses its memory, because getting pages from the kernel takes as long as the draws. Draws are converted to
    numbers in BLOCKS parts, which stay in the CPU's caches.
    """

    def __init__(self, row: Values, rows: int) -> None:
        width = -(-row.size // FOUR)
        self.table = table(1 - BELOW / sqrt(row.size))
        self.places = np.empty(BLOCKS * rows * width, dtype=np.intp)
        self.packed = np.empty(BLOCKS * rows * width, dtype=np.uint32)
        self.numbers = np.empty((rows, FOUR * width))
        self.sums = np.empty((BLOCKS * rows, 2))
        # A 1 next to each value counts the draws. The padding of the last group of four is 0 in both columns.
        self.marked = np.zeros((FOUR * width, 2), order="F")
        self.marked[: row.size] = np.stack([row, np.ones_like(row)], axis=1)

    def poisson_sums(self, rng: np.random.Generator) -> Values:
        """Draw the next sets of counts. Returns the sum of the values and the sum of the counts of each set, in an
        array that the next call overwrites.
        """
        random = np.asarray(rng.bit_generator.random_raw(-(-self.packed.size // FOUR)))
        codes = random.view(np.uint16)[: self.packed.size]
        np.copyto(self.places, codes)
        self.table.cells.take(self.places, out=self.packed, mode="clip")
        late = np.flatnonzero(codes >= self.table.rare)
        self.packed[late] = _rare(late.size, self.table, rng)
        rows = len(self.numbers)
        counts = self.packed.view(np.uint8).reshape(BLOCKS, rows, -1)
        for number, block in enumerate(counts):
            np.copyto(self.numbers, block)
            np.matmul(self.numbers, self.marked, out=self.sums[number * rows : (number + 1) * rows])
        return self.sums


def _rare(size: int, cells: CountTable, rng: np.random.Generator) -> Packed:
    """Draw `size` combinations of counts from those that the last cells represent."""
    codes = rng.integers(0, CELLS, size=size, dtype=np.uint16)
    drawn = cells.left[codes]
    last = np.flatnonzero(codes >= cells.left_rare)
    at = cells.cumulated.searchsorted(rng.random(last.size) * cells.cumulated[-1], side="right")
    drawn[last] = cells.last[at]
    return drawn
