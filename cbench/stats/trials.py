"""Represent the trials of a study as columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
START = -1
"""The number that stands for the predecessor of the first trial of a run."""
BLOCK = 1 << 20


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials of a study, with one row for each value; a trial of a test with several metrics has several rows.

    `names`: the names of the series, one for each metric of each test; `tests`: the test number of each series;
    `test_names`: the names of the tests. `series`, `random`, `value`: the series of each row, whether its run has a
    random order, and its value, NaN for a failed trial. `run`: the run of each row, numbered from 0; if `timed`, in
    chronological order of the runs' starts; `position`: the position of the trial in its run, from 0. Both are None if
    unknown. `metrics`: the metric of each series, empty if every test has only one. `single`: whether no two tests have
    the same position in a run. `host`: the index into `hosts` of each row, only with several hosts; the runs of a host
    then have consecutive numbers. `release`: frees memory if the columns are in a file.
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
    metrics: tuple[str, ...] = ()
    single: bool = True
    host: Codes | None = None
    hosts: tuple[str, ...] = ()
    release: Callable[[], None] = field(default=_nothing, repr=False, compare=False)

    def blocks(self) -> Iterator[slice]:
        """The row numbers of all trials in parts, for steps that copy a column; memory is released after each part."""
        for begin in range(0, self.series.size, BLOCK):
            yield slice(begin, min(begin + BLOCK, self.series.size))
            self.release()

    def _is_grouped(self) -> bool:
        last = -1
        for rows in self.blocks():
            part = self.series[rows]
            if part[0] < last or (part[1:] < part[:-1]).any():
                return False
            last = int(part[-1])
        return True

    def grouped(self) -> tuple[Trials, list[slice]]:
        """The trials with the rows of each series in sequence, and the slice of rows of each series."""
        if self._is_grouped():
            bounds = np.searchsorted(self.series, np.arange(len(self.names) + 1, dtype=self.series.dtype))
            return self, [slice(begin, end) for begin, end in itertools.pairwise(bounds.tolist())]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(self.series, minlength=len(self.names)))])
        slices = [slice(begin, end) for begin, end in itertools.pairwise(bounds.tolist())]
        narrow = (
            self.series.astype(np.uint16) if len(self.names) <= 2**16 else self.series
        )  # 16-bit numbers are radix-sorted
        order = np.argsort(narrow, kind="stable")
        run, position, host = (None if each is None else each[order] for each in (self.run, self.position, self.host))
        return replace(
            self,
            series=self.series[order],
            random=self.random[order],
            value=self.value[order],
            run=run,
            position=position,
            host=host,
        ), slices

    def run_orders(self) -> Flags | None:
        """For each run, whether its order is random; None if runs are unknown."""
        if self.run is None or not self.run.size:
            return None
        kinds = np.zeros(int(self.run.max()) + 1, dtype=bool)  # all rows of a run have one order
        for rows in self.blocks():
            kinds[self.run[rows]] = self.random[rows]
        return kinds

    def clash(self) -> bool:
        """Whether two tests have the same position in a run, so that their order is unknown."""
        if self.run is None or self.position is None or not self.series.size:
            return False
        width = int(self.position.max()) + 1
        place, test = self.run.astype(np.int64) * width + self.position, self.tests[self.series]
        cells = (int(self.run.max()) + 1) * width
        if cells <= 4 * place.size:
            ran = np.empty(cells, dtype=np.int32)
            ran[place] = test
            return bool((ran[place] != test).any())
        order = np.argsort(place, kind="stable")
        ordered, tests = place[order], test[order]
        return bool(((ordered[1:] == ordered[:-1]) & (tests[1:] != tests[:-1])).any())

    def predecessors(self) -> Codes | None:
        """For each row, the number of the test that ran directly before it in its run, or START; None if unknown."""
        if self.run is None or self.position is None or not self.single:
            return None
        if not self.series.size:
            return np.empty(0, dtype=np.int32)
        width = int(self.position.max()) + 1
        place = self.run.astype(np.int64) * width + self.position
        cells = (int(self.run.max()) + 1) * width
        if cells <= 2 * place.size:  # almost no gaps: one table lookup, without sorting
            ran = np.full(cells, START, dtype=np.int32)
            ran[place] = self.tests[self.series]
            if (ran != START).all():
                ran[width - 1 :: width] = (
                    START  # the cell before a run's first trial is the last cell of the previous run
                )
                return np.asarray(ran[place - 1])
        return self._predecessors_sorted(place, width)

    def _predecessors_sorted(self, place: NDArray[np.int64], width: int) -> Codes:
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
