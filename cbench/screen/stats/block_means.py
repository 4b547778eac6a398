"""Compute the means of treatments so that they are comparable although some blocks lack values.

If a trial failed, the plain means of two treatments are over different blocks, and their difference contains the
difference between these blocks, such as drift of the host. The model value = block + treatment, fitted by least
squares, removes this difference: F. Yates, "Incomplete randomized blocks", Ann. Eugenics 7 (1936) 121-140.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbench.screen.stats.effects import Values


def even(counts: NDArray[np.intp]) -> bool:
    """Whether blocks that share a treatment contain the same treatments, equally often, so that plain means are
    comparable. `counts`: the number of values, shape (blocks, treatments).
    """
    counts = counts[counts.any(axis=1)]
    if not counts.size:
        return True
    _, at, group = np.unique((counts > 0).argmax(axis=1), return_index=True, return_inverse=True)
    kinds = counts[at]
    return bool((counts == kinds[group.ravel()]).all() and ((kinds > 0).sum(axis=0) <= 1).all())


def block_means(values: Values) -> Values:
    """The mean of each treatment, adjusted for the blocks in which it has no value. `values`: shape (blocks,
    treatments), NaN if missing; every treatment has a value. The level is the mean over all blocks that are connected
    by shared treatments; treatments that no blocks connect, such as those of different batches, keep their own levels.
    """
    known = ~np.isnan(values)
    values, known = values[known.any(axis=1)], known[known.any(axis=1)]
    center = float(np.nanmean(values))
    filled = np.where(known, values - center, 0.0)
    sizes = known.sum(axis=1)
    shared = (known / sizes[:, np.newaxis]).T @ known
    matrix = np.diag(known.sum(axis=0)) - shared
    blocks = filled.sum(axis=1) / sizes
    right = filled.sum(axis=0) - known.T @ blocks
    means = np.empty(values.shape[1])
    for ours in _connected(shared > 0):
        # The differences of the means have a unique solution; adding 1 to each entry makes their sum 0.
        apart = np.linalg.solve(matrix[np.ix_(ours, ours)] + 1.0, right[ours])
        mine = known[:, ours].any(axis=1)
        levels = blocks[mine] - known[np.ix_(mine, ours)] @ apart / sizes[mine]
        means[ours] = center + levels.mean() + apart
    return means


def _connected(adjacent: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The sets of treatments that are connected, directly or through other treatments."""
    left = np.ones(adjacent.shape[0], dtype=bool)
    found = []
    while left.any():
        ours = np.zeros(left.size, dtype=bool)
        ours[left.argmax()] = True
        while (more := adjacent[ours].any(axis=0) & ~ours).any():
            ours |= more
        left &= ~ours
        found.append(np.flatnonzero(ours))
    return found
