"""Find the test that changes another one by running anywhere before it in the same run.

An analysis of direct predecessors (within_run_effects) detects effects that last only until the next test. In a suite
that runs in one process, state persists, such as a filled cache or a fragmented heap. So the trials of a test are split
into runs in which another test ran earlier and runs in which it did not, and compared by ranks (the Kruskal-Wallis H
of two groups); p is computed by permutation, as for predecessors.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbench.order.stats.within_run_effects import LabelEffect, Ordered, median_of_sorted, p_of_two_groups
from cbench.stats.kruskal import tie_correction
from cbench.stats.trials import Codes, Flags, Trials, Values

MOST_CELLS = 20_000_000
"""The maximum product of the numbers of runs and tests; this search is skipped for larger studies."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Earlier:
    """The comparison of a series' trials in runs in which the test `before` ran earlier with its other trials."""

    series: int
    before: int
    effect: LabelEffect


@dataclass(frozen=True, slots=True)
class EarlierTests:
    """For each series, the earlier test that changes it most (`found`). `pairs`: the number of compared pairs of a
    series and a test; 0 if the data do not allow the search.
    """

    found: tuple[Earlier, ...]
    pairs: int


def earlier(trials: Trials, gone: Flags | None = None, only: Container[str] | None = None) -> EarlierTests:
    """The effects of earlier tests in the random runs. `gone`: rows that do not count; `only`: the names of the series
    to compare, None for all. A test is not named if the position alone explains the effect better.
    """
    if trials.run is None or trials.position is None or not trials.single or not trials.series.size:
        return EarlierTests((), 0)
    shape = int(trials.run.max()) + 1, len(trials.test_names)
    if shape[0] * shape[1] > MOST_CELLS:
        return EarlierTests((), 0)
    places = np.full(shape, np.iinfo(np.int32).max, dtype=np.int32)
    places[trials.run, trials.tests[trials.series]] = trials.position
    counts = trials.random & ~np.isnan(trials.value)
    if gone is not None:
        counts &= ~gone
    found, pairs = [], 0
    for series, name in enumerate(trials.names):
        if only is not None and name not in only:
            continue
        rows = np.flatnonzero(counts & (trials.series == series))
        if rows.size < 2:
            continue
        positions = trials.position[rows]
        before = places[trials.run[rows]] < positions[:, None]
        strongest, compared = _strongest(trials.value[rows], positions, before)
        pairs += compared
        if strongest is not None:
            found.append(Earlier(series, *strongest))
    return EarlierTests(tuple(found), pairs)


def _strongest(
    values: Values, positions: Codes, before: NDArray[np.bool_]
) -> tuple[tuple[int, LabelEffect] | None, int]:
    """The column of `before` that separates the values best, with its effect (None if there is none, or if a trend over
    the positions separates them better); and the number of columns with two groups.
    """
    ordered = Ordered.of(values)
    split, n = before[ordered.order], values.size
    sizes = split.sum(axis=0)
    columns = np.flatnonzero((sizes > 0) & (sizes < n))
    ties = 1.0 if ordered.lengths is None else tie_correction(ordered.lengths, n)
    if not columns.size or ties <= 0:
        return None, int(columns.size)
    ranks = ordered.ranks - (n + 1) / 2
    away, some = ranks @ split[:, columns], sizes[columns]
    h = 12 * away**2 / (some * (n - some) * (n + 1)) / ties
    best = int(np.argmax(h))
    if h[best] < (1 - ROUNDING) * _of_position(ranks, positions[ordered.order]):
        return None, int(columns.size)
    after = split[:, columns[best]]
    medians = median_of_sorted(ordered.values[after]), median_of_sorted(ordered.values[~after])
    p = p_of_two_groups(float(h[best]), ordered.lengths, int(some[best]), n)
    return (int(columns[best]), LabelEffect.of(int(some[best]), *medians, p)), int(columns.size)


def _of_position(ranks: Values, positions: Codes) -> float:
    """The statistic of a linear trend of the ranks over the positions, on the scale of H: (n - 1) r²."""
    away = positions - positions.mean()
    scale = float(away @ away) * float(ranks @ ranks)
    return (ranks.size - 1) * float(away @ ranks) ** 2 / scale if scale else 0.0
