"""Store trials in one SQLite file, chunk by chunk, so that stored chunks survive a kill and a power cut.

The file has a write-ahead log with synchronous=FULL: a chunk is a transaction, which is on disk when add() returns.
With NORMAL, the kernel would write a chunk back later, during the next trials, and a power cut would lose the chunk
(https://www.sqlite.org/pragma.html#pragma_synchronous). close() merges the log, so that one file
remains, unless the disk is full or another process uses the store.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cbench.model import Calibration, Trial
from cbench.stats.chains import marked
from cbench.store.database import Database, for_reading, for_writing
from cbench.store.records import Run, Stored, StoredSeries, Timeline
from cbench.store.schema import (
    NEW_CHUNK,
    NEW_RUN,
    NEW_SERIES,
    NEW_TRIAL,
    SERIES,
    TRIALS,
    compact,
    number,
    pack,
    unpack,
)
from quiet import QuietError, __version__

GIVEN = ("workload", "params", "cpu", "process")


class Store(Database):
    """An open store, as a context manager. create() adds a run to the store; open() opens it for reading only."""

    def __init__(self, path: Path, connection: sqlite3.Connection, writing: bool) -> None:
        super().__init__(path, connection, writing)
        self._run: int | None = None
        self._kept = 0
        self._drops = self._created = False
        self._series = 0
        self._next: dict[int, int] = {}

    @classmethod
    def create(cls, path: str | os.PathLike[str], host: Mapping[str, Any], command: Sequence[str]) -> Self:
        """Create a store, or open an existing one, and add a new run to it.

        Raises UsageError if the file is not a store or its directory does not exist, QuietError if it cannot be
        written.
        """
        created = not os.path.exists(path)
        store = cls(Path(path), for_writing(Path(path)), True)
        store._created = created
        row = (time.time_ns(), __version__, compact(list(command)), compact(host))
        try:
            store._run = store._write(lambda c: _insert(c, NEW_RUN, row))
        except QuietError:
            store._connection.close()
            raise
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing store for reading. Raises UsageError if the file is not a store."""
        return cls(Path(path), for_reading(Path(path)), False)

    @property
    def kept(self) -> int:
        """The number of stored trials of this run."""
        return self._kept

    def begin(self, facts: Mapping[str, Any]) -> int:
        """Begin a series and return its number.

        `facts`: workload, params, cpu and process; optionally the counter and further data. A counter that is given
        here is kept even if the series is cut short.
        """
        workload, params, cpu, process = (facts[name] for name in GIVEN)
        rest = {name: value for name, value in facts.items() if name not in GIVEN}
        now, ticks = time.time_ns(), _ticks()
        row = (self._run, self._series, workload, compact(params), cpu, process, now, ticks, compact(rest))
        series = self._write(lambda c: _insert(c, NEW_SERIES, row))
        self._series += 1
        self._next[series] = 0
        return series

    def renew(self, series: int, facts: Mapping[str, Any]) -> None:
        """Replace the CPU and the facts of a series that has no trials yet, and set its start time to now."""
        rest = {name: value for name, value in facts.items() if name not in GIVEN}
        row = (facts["cpu"], time.time_ns(), _ticks(), compact(rest), series)
        change = "UPDATE series SET cpu = ?, started_ns = ?, started_ticks = ?, facts = ? WHERE series = ?"
        self._write(lambda c: c.execute(change, row))

    def add(self, series: int, trials: Sequence[Trial]) -> None:
        """Store a chunk completely or not at all. Raises QuietError, with the number of stored trials, if it cannot be
        stored.
        """
        self.add_together([(series, trials)])

    def add_together(self, chunks: Sequence[tuple[int, Sequence[Trial]]]) -> None:
        """Store chunks of several series in one transaction. Raises QuietError as add() does."""
        filled = [(series, trials) for series, trials in chunks if trials]
        if not filled:
            return
        now, clock = time.time_ns(), _ticks()
        rows = [
            (series, position, *pack(trial))
            for series, trials in filled
            for position, trial in enumerate(trials, self._next[series])
        ]
        marks = [(series, self._next[series], len(trials), now, clock) for series, trials in filled]

        def write(c: sqlite3.Connection) -> None:
            c.executemany(NEW_TRIAL, rows)
            c.executemany(NEW_CHUNK, marks)

        self._write(write)
        for series, trials in filled:
            self._next[series] += len(trials)
        self._kept += len(rows)

    def drop_if_empty(self) -> None:
        """After an error, make close() remove the store's file if this run created it and has stored no trial."""
        self._drops = self._created and not self._kept

    def finish(self, series: int, facts: Mapping[str, Any]) -> None:
        """Mark a series as complete. `facts`: facts that its process reported at the end, including the values of the
        warm-up.
        """
        row = (time.time_ns(), _ticks(), compact(facts), series)
        change = "UPDATE series SET ended_ns = ?, ended_ticks = ?, ended = ? WHERE series = ?"
        self._write(lambda c: c.execute(change, row))

    def runs(self) -> list[Run]:
        """All runs, the oldest first."""
        with self._reading() as connection:
            return [run for run, _ in _read(connection, trials=False)]

    def series(self) -> list[StoredSeries]:
        """All series of all runs with their trials, in the order in which they were measured."""
        with self._reading() as connection:
            return [series for _, series_of_run in _read(connection, trials=True) for series in series_of_run]

    def close(self) -> None:
        """End the run and close the store."""
        self._end(done=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(done=kind is None)

    def _end(self, done: bool) -> None:
        try:
            if self._run is not None and done:
                row = (time.time_ns(), self._run)
                self._write(lambda c: c.execute("UPDATE run SET ended_ns = ? WHERE run = ?", row))
        finally:
            super().close()
            if self._drops:
                self.path.unlink(missing_ok=True)

    def _what_is_kept(self) -> str:
        return f"; {self._kept:,} trials of this run are kept in it" if self._kept else "; nothing of this run is kept"


def _ticks() -> int | str:
    """The current ticks of the trials' clock, as stored. The clock is imported here, because reading a store needs no
    compiled modules.
    """
    from quiet import ticks

    return number(ticks())


def _insert(connection: sqlite3.Connection, statement: str, row: Sequence[object]) -> int:
    """Insert one row; returns its number."""
    number = connection.execute(statement, row).lastrowid
    assert number is not None
    return number


def _read(connection: sqlite3.Connection, trials: bool) -> list[tuple[Run, list[StoredSeries]]]:
    """A consistent snapshot of runs and their series, even while another process writes."""
    connection.execute("BEGIN")
    try:
        rows = connection.execute("SELECT run, started_ns, ended_ns, version, command, host FROM run ORDER BY run")
        runs = [
            Run(number, started, ended, version, tuple(json.loads(command)), json.loads(host))
            for number, started, ended, version, command, host in rows.fetchall()
        ]
        return [(run, _series_of(connection, run) if trials else []) for run in runs]
    finally:
        connection.execute("COMMIT")


def _series_of(connection: sqlite3.Connection, run: Run) -> list[StoredSeries]:
    rows = connection.execute(SERIES, (run.number,)).fetchall()
    series = []
    for key, position, workload, params, cpu, process, started, ended, facts, after, *ticks in rows:
        known = {**json.loads(facts), **json.loads(after or "{}")}
        timeline = _timeline(connection, key, (ticks[0], started), (ticks[1], ended))
        trials = _trials(connection, key, timeline)
        trials = _with_marks(trials, known.get("counter", {}).get("calibration"))
        settings = json.loads(params)
        series.append(StoredSeries(key, run, position, workload, settings, cpu, process, started, ended, known, trials))
    return _marked(series)


def _with_marks(stored: tuple[Stored, ...], calibration: Any) -> tuple[Stored, ...]:
    """The trials of a process. A trial whose chains cannot measure its cycles gets a further cause. Unchanged if
    `calibration` is empty.
    """
    if not calibration:
        return stored
    trials = marked([each.trial for each in stored], Calibration(**calibration))
    return tuple(replace(each, trial=trial) for each, trial in zip(stored, trials, strict=True))


def _marked(series: list[StoredSeries]) -> list[StoredSeries]:
    """The series with their `varied` parameters. Processes are numbered from 0 in each test, so a new test begins where
    the numbers restart. Only differences between the processes of one test count.
    """
    tests: dict[tuple[str, int], list[list[int]]] = {}
    for at, each in enumerate(series):
        known = tests.setdefault((each.workload, each.cpu), [])
        if not known or each.process <= series[known[-1][-1]].process:
            known.append([])
        known[-1].append(at)
    result = list(series)
    for members in (members for known in tests.values() for members in known):
        params = [series[at].params for at in members]
        names = frozenset(
            name for one in params for name in one if any(name not in p or p[name] != one[name] for p in params)
        )
        for at in members:
            result[at] = replace(series[at], varied=names)
    return result


def _timeline(connection: sqlite3.Connection, series: int, begin: tuple[Any, int], end: tuple[Any, Any]) -> Timeline:
    rows = connection.execute(
        "SELECT stored_ticks, stored_ns FROM chunk WHERE series = ? ORDER BY first", (series,)
    ).fetchall()
    moments = [begin, *rows, *([end] if end[0] is not None else [])]
    return Timeline([int(ticks) for ticks, _ in moments], [ns for _, ns in moments])


def _trials(connection: sqlite3.Connection, series: int, timeline: Timeline) -> tuple[Stored, ...]:
    trials = []
    for position, *row in connection.execute(TRIALS, (series,)):
        trial = unpack(tuple(row))
        trials.append(Stored(position, trial, timeline.of(trial.begin)))
    return tuple(trials)
