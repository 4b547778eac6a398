"""Select order statistics of all sums of two samples, without computing all sums.

The number of sums up to a value takes one search in a sorted sample per value of the other sample. Such counts narrow
an interval around the wanted sum until the sums inside it are few enough to be listed (D. B. Johnson, T. Mizoguchi,
"Selecting the Kth element in X + Y and X_1 + X_2 + ... + X_m", SIAM J. Comput. 7 (1978) 147-153, is the first such
method).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbench.stats.trials import Values

POINTS = 64
"""A first guess comes from this many quantiles of each sample."""
LISTED = 1_000_000
"""The maximum number of sums that are listed."""
AROUND = POINTS * POINTS // 20
GUESSES = 16
"""After this many steps, the limits come from sums, because many sums may be equal."""
MOST_STEPS = 80


@dataclass(frozen=True, slots=True)
class PairwiseSums:
    """The sums rows[i] + columns[j] for j >= starts[i]. `columns` is sorted; `guesses`: sorted sums of quantiles."""

    rows: Values
    columns: Values
    starts: NDArray[np.intp]
    guesses: Values

    @classmethod
    def of_differences(cls, first: Values, second: Values) -> PairwiseSums:
        """All differences second - first of two sorted samples."""
        guesses = np.sort((thinned(second)[None, :] - thinned(first)[:, None]).ravel())
        return cls(-first, second, np.zeros(first.size, dtype=np.intp), guesses)

    @classmethod
    def of_itself(cls, ordered: Values) -> PairwiseSums:
        """All sums of two values of a sorted sample, which may be the same one."""
        some = thinned(ordered)
        guesses = np.sort((some[None, :] + some[:, None])[np.triu_indices(some.size)])
        return cls(ordered, ordered, np.arange(ordered.size), guesses)

    @property
    def size(self) -> int:
        """The number of sums."""
        return self.rows.size * self.columns.size - int(self.starts.sum())

    def at(self, rank: int) -> float:
        """The sum with this rank, from 0."""
        values, first = self._around(rank)
        return float(np.partition(values, rank - first)[rank - first])

    def median(self) -> float:
        """The median of all sums."""
        values, first = self._around(self.size // 2)
        at = self.size // 2 - first
        if self.size % 2:
            return float(np.partition(values, at)[at])
        if not at:
            return (self.at(self.size // 2 - 1) + float(values.min())) / 2
        parted = np.partition(values, (at - 1, at))
        return float(parted[at - 1] + parted[at]) / 2

    def _around(self, rank: int) -> tuple[Values, int]:
        """Some sums next to each other, among them that with this rank; and the number of sums below them. If very many
        sums are equal to that with this rank, it is the only one, and counts as the first of them.
        """
        low, high = float(self.rows.min() + self.columns[0]), float(self.rows.max() + self.columns[-1])
        below, upto = np.zeros(self.rows.size, dtype=np.intp), self.columns.size - self.starts
        place = int((rank + 0.5) / self.size * self.guesses.size)
        guesses = [float(self.guesses[max(place - AROUND, 0)])]
        guesses.append(float(self.guesses[min(place + AROUND, self.guesses.size - 1)]))
        most = min(LISTED, max(POINTS * POINTS, 4 * (self.rows.size + self.columns.size)))
        for step in range(MOST_STEPS):
            first = int(below.sum())
            inside = int(upto.sum()) - first
            if inside <= most:
                break
            share = (rank + 0.5 - first) / inside if step % 3 else 0.5
            middle = guesses.pop() if guesses else low + share * (high - low)
            if step >= GUESSES or not low < middle < high:
                if guesses:
                    continue
                middle, rounding = self._middle(below, upto)
                fewer = self._upto(middle - rounding, "left")
                count = self._upto(middle + rounding)
                if int(fewer.sum()) <= rank < int(count.sum()):
                    return np.array([middle]), rank
            else:
                fewer = count = self._upto(middle)
            if int(fewer.sum()) > rank:
                high, upto = middle, fewer
            else:
                low, below = middle, count
        width = upto - below
        if int(width.sum()) > LISTED:  # the values inside are equal, except for rounding
            return np.array([self._middle(below, upto)[0]]), rank
        first = int(below.sum())
        at = np.repeat(self.starts + below - (np.cumsum(width) - width), width) + np.arange(int(width.sum()))
        return np.repeat(self.rows, width) + self.columns[at], first

    def _middle(self, below: NDArray[np.intp], upto: NDArray[np.intp]) -> tuple[float, float]:
        """A sum with at least a quarter of the sums inside on each side of it (the weighted median of rows' medians),
        and how much a sum that is equal except for rounding may differ from it.
        """
        width = upto - below
        some = np.flatnonzero(width > 0)
        terms = self.columns[(self.starts + below)[some] + width[some] // 2]
        order = np.argsort(self.rows[some] + terms)
        weight = np.cumsum(width[some][order])
        at = order[weight.searchsorted(weight[-1] / 2)]
        row, column = float(self.rows[some][at]), float(terms[at])
        return row + column, 4 * float(np.spacing(max(abs(row), abs(column))))

    def guess(self, rank: int, side: int) -> float:
        """About the sum with this rank from the lower end (`side` -1) or from the upper end (1)."""
        place = int((rank + 0.5) / self.size * self.guesses.size)
        return float(self.guesses[place if side < 0 else -1 - place])

    def _upto(self, value: float, side: Literal["left", "right"] = "right") -> NDArray[np.intp]:
        """For each row, the number of its sums up to this value; with side "left", without those that equal it."""
        return np.asarray(np.maximum(self.columns.searchsorted(value - self.rows, side=side) - self.starts, 0))


def thinned(ordered: Values) -> Values:
    """At most POINTS quantiles of a sorted sample."""
    if ordered.size <= POINTS:
        return ordered
    return ordered[((np.arange(POINTS) + 0.5) / POINTS * ordered.size).astype(np.intp)]
