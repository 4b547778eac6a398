"""Which differences of values in one block show an effect and nothing else.

Two treatments that differ in the levels of one factor only: their difference has no block and no other factor in it,
and where that factor is inert it is as often positive as negative, whatever the noise is. For an interaction four
treatments: the difference of two such differences. Where no two treatments are alike in everything else (fractions),
all treatments of a block make one difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cbench.screen.stats.effects import Levels, Values


@dataclass(frozen=True, slots=True)
class Differences:
    """`at`: shape (differences, corners), numbers of treatments; `weights`: shape (corners,), theirs, with sum 0;
    `shows`: shape (differences, df), what each difference says of the effect's degrees of freedom."""

    at: NDArray[np.intp]
    weights: Values
    shows: Values

    @property
    def signed(self) -> bool:
        """Whether each says the same, so that their mean is the effect."""
        return bool((self.shows == self.shows[0]).all())


def differences(levels: Levels, effect: Sequence[int], batch: NDArray[np.intp]) -> Differences | None:
    """`levels`: shape (treatments, factors); `effect`: one factor or two; `batch`: treatments with another number here
    are never in one block. None where nothing shows the effect."""
    found = _matched(levels, effect, batch)
    return _contrast(levels, effect) if found is None and np.unique(batch).size == 1 else found


def _matched(levels: Levels, effect: Sequence[int], batch: NDArray[np.intp]) -> Differences | None:
    codes = [np.unique(levels[:, each], return_inverse=True) for each in effect]
    shape = [found.size for found, _ in codes]
    places = np.column_stack([at for _, at in codes])
    others = np.column_stack([np.delete(levels, list(effect), axis=1), batch])
    _, groups = np.unique(others, axis=0, return_inverse=True)
    table = np.full((int(groups.max()) + 1, int(np.prod(shape))), -1)
    table[groups.ravel(), np.ravel_multi_index(tuple(places.T), shape)] = np.arange(levels.shape[0])
    found, cells = [], []
    for corners in _corners(shape):
        at = np.column_stack([table[:, int(np.ravel_multi_index(corner, shape))] for corner, _ in corners])
        at = at[(at >= 0).all(axis=1)]
        cell = np.zeros(shape)
        for corner, sign in corners:
            cell[corner] = sign
        found.append(at)
        cells.append(np.tile(cell.ravel(), (at.shape[0], 1)))
    every = np.concatenate(cells)
    if not every.size:
        return None
    # An orthonormal basis of what the cells' signs span: as many columns as there are degrees of freedom.
    _, sizes, right = np.linalg.svd(np.unique(every, axis=0), full_matrices=False)
    signs = np.array([sign for _, sign in _corners(shape)[0]], dtype=np.float64)
    return Differences(np.concatenate(found), signs, every @ right[sizes > 1e-8 * sizes[0]].T)


def _corners(shape: Sequence[int]) -> list[list[tuple[tuple[int, ...], int]]]:
    """Each two levels of one factor, or of both, with the signs of the difference."""
    if len(shape) == 1:
        return [[((b,), 1), ((a,), -1)] for a, b in combinations(range(shape[0]), 2)]
    return [
        [((b, d), 1), ((a, d), -1), ((b, c), -1), ((a, c), 1)]
        for a, b in combinations(range(shape[0]), 2)
        for c, d in combinations(range(shape[1]), 2)
    ]


def _contrast(levels: Levels, effect: Sequence[int]) -> Differences | None:
    """All treatments at once, where all factors have two levels, the effect is balanced and it is orthogonal to all
    other effects of as many factors or fewer."""
    mains: dict[int, Values] = {}
    for factor in range(levels.shape[1]):
        found = np.unique(levels[:, factor])
        if found.size > 2:
            return None
        if found.size == 2:
            mains[factor] = np.where(levels[:, factor] == found[1], 1.0, -1.0)
    every: dict[tuple[int, ...], Values] = {(each,): column for each, column in mains.items()}
    if len(effect) == 2:
        every |= {(a, b): mains[a] * mains[b] for a, b in combinations(mains, 2)}
    signs = every.pop(tuple(effect))
    if abs(signs.sum()) > 0.5 or any(abs(float(signs @ other)) > 0.5 for other in every.values()):
        return None
    half = 2 ** (len(effect) - 1)
    return Differences(np.arange(signs.size)[np.newaxis], signs * (2 * half / signs.size), np.ones((1, 1)))
