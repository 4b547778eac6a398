"""Compute sums of bootstrap samples: n values drawn with replacement from n values, any number of times.

For many values, the draw is a count per value and not an index per draw; one lookup gives four counts.

These counts are multinomial: those of independent Poisson variables, given that they add up to n. The variables are
drawn with a mean a little below 1. If they add up to less than n, the missing values are drawn one by one (given their
sum T, Poisson counts are those of T draws, for any T; n - T further draws give n). Samples with more than n are
rejected: rejection depends only on T and does not change the distribution of the counts given T. The result is
therefore an exact bootstrap sample, not an approximation.

Four counts are drawn at once: 16 random bits are one of 65,536 cells, and each combination of four counts has as many
cells as its probability fills. Probabilities below one cell share the last cells, from which the rare combinations are
drawn by a second table of cells and, for the remainder, by their cumulated probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, factorial, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.stats.interval import Values

CHUNK = 120_000
"""So many values are drawn at a time: the results stay in the CPU's caches, and larger products of matrices
take four times as long per value in OpenBLAS."""

COUNTED = 256
"""From this many values on, counts per value are drawn instead of indices."""

FOUR = 4
CELLS = 1 << 16
MOST_COUNTS = 19
"""A Poisson count with a mean below 1 is larger in fewer than one in 1e18 cases."""

BELOW = 1.75
"""So many standard deviations below n the counts' sum is on average: 1 in 25 samples is discarded."""

BLOCKS = 8
"""So many counts are drawn together as one chunk."""

Packed = NDArray[np.uint32]
"""Four counts of one byte each."""

Places = NDArray[np.intp]


def sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of `replicates` bootstrap samples of the row."""
    if row.size >= COUNTED:
        return counted_sums(row, replicates, rng)
    return plain_sums(row, replicates, rng)


def plain_sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """Sums by definition: draw n positions, look up the values, add them."""
    totals = np.empty(replicates)
    rows = max(1, CHUNK // row.size)
    for start in range(0, replicates, rows):
        stop = min(start + rows, replicates)
        places = rng.integers(0, row.size, size=(stop - start, row.size), dtype=np.uint32)
        totals[start:stop] = row[places].sum(axis=1)
    return totals


def rounding(n: int, middle: float, scale: float) -> float:
    """Means of samples that differ by less are treated as equal: in units of `scale`, of n values around `middle`."""
    return 8 * float(np.finfo(np.float64).eps) * (sqrt(n) + abs(middle) / scale)


@dataclass(frozen=True, slots=True)
class CountTable:
    """Four counts of each cell, but of those from `rare` on. For these, the four of a cell of `left` are taken or, from
    `left_rare` on there, four of `last` by the `cumulated` probabilities."""

    cells: Packed
    rare: int
    left: Packed
    left_rare: int
    last: Packed
    cumulated: Values


@lru_cache(maxsize=4)
def table(mean: float) -> CountTable:
    """The cells for four Poisson counts with this mean, which is at most 1."""
    one = np.array([exp(-mean) * mean**k / factorial(k) for k in range(MOST_COUNTS + 1)])
    pair = np.multiply.outer(one, one).ravel()
    every = np.stack(list(np.indices((MOST_COUNTS + 1,) * FOUR, dtype=np.uint8)), axis=-1).reshape(-1, FOUR)
    packed = every.view(np.uint32).ravel()
    cells, rare, left = _cells(packed, np.multiply.outer(pair, pair).ravel())
    more, left_rare, last = _cells(packed, left / left.sum())
    return CountTable(cells, rare, more, left_rare, packed, np.cumsum(last))


def _cells(packed: Packed, chances: Values) -> tuple[Packed, int, Values]:
    """Each of `packed` as often as its chance fills a cell; the first remaining cell; and the remainder of each
    probability, in cells."""
    whole = np.floor(chances * CELLS).astype(np.intp)
    full = int(whole.sum())
    cells = np.zeros(CELLS, dtype=np.uint32)
    cells[:full] = np.repeat(packed, whole)
    return cells, full, chances * CELLS - whole


def counted_sums(row: Values, replicates: int, rng: np.random.Generator) -> Values:
    """The sums of `replicates` bootstrap samples of the row, by how often each value is drawn."""
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
    """Sums of the missing draws, by definition."""
    drawn = np.zeros(int(missing.sum()) + 1)
    row.take(rng.integers(0, row.size, size=drawn.size - 1, dtype=np.uint32), out=drawn[:-1], mode="clip")
    return np.where(missing > 0, np.add.reduceat(drawn, np.cumsum(missing) - missing), 0.0)


class Drawer:
    """Draws sets of Poisson counts, with a mean a little below 1, for the values of a row.

    It keeps the memory that it draws into: to be given pages by the kernel takes as long as to draw. Draws are
    converted to numbers in BLOCKS parts, which stay in the CPU's caches.
    """

    def __init__(self, row: Values, rows: int) -> None:
        width = -(-row.size // FOUR)
        self.table = table(1 - BELOW / sqrt(row.size))
        self.places = np.empty(BLOCKS * rows * width, dtype=np.intp)
        self.packed = np.empty(BLOCKS * rows * width, dtype=np.uint32)
        self.numbers = np.empty((rows, FOUR * width))
        self.sums = np.empty((BLOCKS * rows, 2))
        # Beside each value a 1, to count with. Padding of the last four is added as 0 and counted as 0.
        self.marked = np.zeros((FOUR * width, 2), order="F")
        self.marked[: row.size] = np.stack([row, np.ones_like(row)], axis=1)

    def poisson_sums(self, rng: np.random.Generator) -> Values:
        """The sums of the values and of the counts for the next sets of counts, in place of those before."""
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
    """The number of combinations that the last cells represent."""
    codes = rng.integers(0, CELLS, size=size, dtype=np.uint16)
    drawn = cells.left[codes]
    last = np.flatnonzero(codes >= cells.left_rare)
    at = cells.cumulated.searchsorted(rng.random(last.size) * cells.cumulated[-1], side="right")
    drawn[last] = cells.last[at]
    return drawn
