"""The trials of a study as columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
START = -1
"""In place of a predecessor's number: nothing ran before in this run."""


@dataclass(frozen=True, slots=True)
class Trials:
    """One row for each value of each trial; a trial of a test with several metrics has several rows.

    names: of the series, one for each metric of each test; `tests` has the number of a series' test, `test_names` their
    names. series, random, value: of each row; NaN for a trial that failed. run: numbered from 0 in the order in which
    the runs were begun (`timed`; else in any); position: of the trial in its run, from 0. None where that is not known.
    """

    names: tuple[str, ...]
    tests: Codes
    test_names: tuple[str, ...]
    series: Codes
    random: Flags
    value: Values
    run: Codes | None = None
    position: Codes | None = None
    timed: bool = True

    def by_series(self) -> Iterator[NDArray[np.intp]]:
        """The rows of each series, in their order; as many as there are names."""
        order: NDArray[np.intp] | None = None
        if self.series.size and (np.diff(self.series) < 0).any():
            order = np.argsort(self.series, kind="stable")
        bounds = np.zeros(len(self.names) + 1, dtype=np.intp)
        np.cumsum(np.bincount(self.series, minlength=len(self.names)), out=bounds[1:])
        for begin, end in itertools.pairwise(bounds):
            yield np.arange(begin, end) if order is None else order[begin:end]

    def predecessors(self) -> Codes | None:
        """For each row the number of the test that ran before it in its run, or START; None where that is not known."""
        if self.run is None or self.position is None:
            return None
        if not self.series.size:
            return np.empty(0, dtype=np.int32)
        width = int(self.position.max()) + 1
        place = self.run.astype(np.int64) * width + self.position
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        new = np.ones(order.size, dtype=bool)  # the first row of each trial
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        firsts = np.flatnonzero(new)
        trial_tests = self.tests[self.series[order[firsts]]]
        trial_runs = ordered[firsts] // width
        before = np.full(firsts.size, START, dtype=np.int32)
        same = trial_runs[1:] == trial_runs[:-1]
        before[1:][same] = trial_tests[:-1][same]
        found = np.empty(order.size, dtype=np.int32)
        found[order] = before[np.cumsum(new) - 1]
        return found
