"""Estimate the number of comparisons between tests that change by chance alone, by permuting the runs' labels.

The labels "fixed" and "random" are reassigned DRAWS times, to whole runs and, if the design has pairs, within pairs;
this preserves drift and the correlation between the tests of a run. If the runs are unknown, the labels of each test's
values are permuted. If there are too many tests, only a sample of them is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbench.order.stats.paired import complete
from cbench.stats import median_ranks
from cbench.stats.trials import Codes, Flags, Trials, Values

DRAWS = 199
MOST_SERIES = 140
MOST_VALUES = 20_000
SEED = 1


@dataclass(frozen=True, slots=True)
class ByChance:
    """The mean number of comparisons that change, and the probability of at least the observed number (None if only
    some tests were counted).
    """

    expected: float
    p: float | None


def changed_by_chance(
    trials: Trials,
    slices: Sequence[slice],
    gone: Flags | None,
    pair: Codes | None,
    level: float,
    seen: tuple[int, int],
) -> ByChance | None:
    """The changes by chance, in trials grouped by `slices`. `seen`: the observed numbers of comparisons and of changed
    comparisons. None if nothing can change.
    """
    if not seen[0]:
        return None
    counted = [number for number, rows in enumerate(slices) if rows.stop > rows.start]
    mean = max(1, trials.value.size // max(1, len(counted)))
    most = max(2, min(MOST_SERIES, MOST_VALUES // mean))
    step = -(-len(counted) // most)
    chosen = counted[::step]
    draw = np.random.default_rng(SEED)
    kinds_of_runs = trials.run_orders()
    labels = None if kinds_of_runs is None else _labels(kinds_of_runs, pair, draw)
    ends = []
    for number in chosen:
        rows = slices[number]
        keep = ~np.isnan(trials.value[rows]) if gone is None else ~gone[rows]
        if pair is not None and trials.run is not None:
            keep[keep] = complete(trials.random[rows][keep], pair[trials.run[rows][keep]])
        value, random = trials.value[rows][keep], trials.random[rows][keep]
        order = np.argsort(value)
        if labels is None or trials.run is None:
            mixed = draw.permuted(np.tile(random, (DRAWS, 1)), axis=1)
        else:
            mixed = labels[:, trials.run[rows][keep]][:, order]
        upto = np.cumsum(mixed, axis=1, dtype=np.int32)
        others = np.arange(1, order.size + 1, dtype=np.int32) - upto
        ends.append([_ends(value[order], each, level) for each in (others, upto)])
    bounds = np.array(ends)  # series, order, end, draw
    kinds = np.array([hash(trials.metrics[number]) if trials.metrics else 0 for number in chosen])
    changes = np.array([_changed(bounds[..., at], kinds) for at in range(DRAWS)])
    pairs = _pairs(bounds[..., 0], kinds)
    if not pairs:
        return None
    p = (1 + int(np.count_nonzero(changes >= seen[1]))) / (DRAWS + 1) if step == 1 else None
    return ByChance(float(changes.mean()) * seen[0] / pairs, p)


def _labels(kinds: Flags, pair: Codes | None, draw: np.random.Generator) -> NDArray[np.bool_]:
    """The label of each run in each draw."""
    if pair is None:
        return draw.permuted(np.tile(kinds, (DRAWS, 1)), axis=1)
    flip = draw.integers(0, 2, size=(DRAWS, int(pair.max()) + 1)).astype(bool)
    return np.asarray(np.where(pair >= 0, kinds ^ flip[:, pair], kinds))


def _ends(ordered: Values, upto: NDArray[np.int32], level: float) -> tuple[Values, Values]:
    """The ends of the interval of a subset's median, one pair per draw; NaN if there is no interval. `upto`: the number
    of the subset's values up to each value.
    """
    if not ordered.size:
        return np.full(DRAWS, np.nan), np.full(DRAWS, np.nan)
    sizes = upto[:, -1]
    found = {int(size): median_ranks.ranks(int(size), level) for size in np.unique(sizes)}
    low = np.array([(found[int(size)] or (0, 0))[0] for size in sizes])
    high = np.array([(found[int(size)] or (0, 0))[1] for size in sizes])
    ends = []
    for rank in (low, high):
        at = np.count_nonzero(upto < rank[:, None], axis=1)
        ends.append(np.where(rank > 0, ordered[np.minimum(at, ordered.size - 1)], np.nan))
    return ends[0], ends[1]


def _against(bounds: Values) -> NDArray[np.int8]:
    low, high = bounds[0], bounds[1]
    return np.asarray((low[:, None] > high).astype(np.int8) - (high[:, None] < low).astype(np.int8))


def _changed(bounds: Values, kinds: NDArray[np.int64]) -> int:
    differs = np.asarray(np.not_equal(_against(bounds[:, 0].T), _against(bounds[:, 1].T)), dtype=np.bool_)
    differs[kinds[:, None] != kinds] = False
    return int(np.count_nonzero(np.triu(differs, 1)))


def _pairs(bounds: Values, kinds: NDArray[np.int64]) -> int:
    there = np.asarray(~np.isnan(bounds).any(axis=(1, 2)))
    return int(np.count_nonzero(np.triu((kinds[:, None] == kinds) & there[:, None] & there, 1)))
