"""Trials on disk: one SQLite file that grows, chunk by chunk, and keeps what it has whatever happens next.

Write-ahead log with synchronous=FULL: a chunk is a transaction, and it is on the disk when add() returns. With NORMAL
the kernel would write it back later, in the middle of the next trials, and a power cut would lose it
(https://www.sqlite.org/pragma.html#pragma_synchronous). A closed store is one file without a log.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from cbench.model import Trial
from cbench.store import database
from cbench.store.read import read
from cbench.store.records import Run, StoredSeries
from cbench.store.schema import NEW_CHUNK, NEW_RUN, NEW_SERIES, NEW_TRIAL, compact, number, pack
from quiet import QuietError, __version__

T = TypeVar("T")

GIVEN = ("workload", "params", "cpu", "process")


class Store:
    """An open store; a context manager. create() adds a run to it, open() only reads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, run: int | None) -> None:
        self._path = path
        self._connection = connection
        self._run = run
        self._kept = 0
        self._series = 0
        self._next: dict[int, int] = {}

    @classmethod
    def create(cls, path: str | os.PathLike[str], host: Mapping[str, Any], command: Sequence[str]) -> Self:
        """A new store, or an existing one, with a new run in it.

        UsageError for a file that is no such store or a folder that is none; QuietError when it cannot be written.
        """
        at = Path(path)
        connection = database.for_writing(at)
        store = cls(at, connection, None)
        row = (time.time_ns(), __version__, compact(list(command)), compact(host))
        try:
            store._run = store._write(lambda c: _insert(c, NEW_RUN, row))
        except QuietError:
            connection.close()
            raise
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """An existing store, to read it. UsageError when it is none."""
        at = Path(path)
        return cls(at, database.for_reading(at), None)

    @property
    def kept(self) -> int:
        """How many trials of this run are stored."""
        return self._kept

    def begin(self, facts: Mapping[str, Any]) -> int:
        """A new series: its number. `facts` has workload, params, cpu and process; counter and whatever else is known.

        A counter that is given here is kept even if the series is cut short.
        """
        workload, params, cpu, process = (facts[name] for name in GIVEN)
        rest = {name: value for name, value in facts.items() if name not in GIVEN}
        now, ticks = time.time_ns(), _ticks()
        row = (self._run, self._series, workload, compact(params), cpu, process, now, ticks, compact(rest))
        series = self._write(lambda c: _insert(c, NEW_SERIES, row))
        self._series += 1
        self._next[series] = 0
        return series

    def add(self, series: int, trials: Sequence[Trial]) -> None:
        """Store a chunk: all of it or nothing. QuietError, which says what is kept, when that is impossible."""
        if not trials:
            return
        first = self._next[series]
        rows = [(series, position, *pack(trial)) for position, trial in enumerate(trials, first)]
        chunk = (series, first, len(rows), time.time_ns(), _ticks())

        def write(c: sqlite3.Connection) -> None:
            c.executemany(NEW_TRIAL, rows)
            c.execute(NEW_CHUNK, chunk)

        self._write(write)
        self._next[series] = first + len(rows)
        self._kept += len(rows)

    def finish(self, series: int, facts: Mapping[str, Any]) -> None:
        """The series is complete; `facts` is what its process said at its end, the warm-up's values too."""
        row = (time.time_ns(), _ticks(), compact(facts), series)
        change = "UPDATE series SET ended_ns = ?, ended_ticks = ?, ended = ? WHERE series = ?"
        self._write(lambda c: c.execute(change, row))

    def runs(self) -> list[Run]:
        """All runs, the oldest first."""
        return [run for run, _ in self._read(trials=False)]

    def series(self) -> list[StoredSeries]:
        """All series of all runs with their trials, in the order in which they were measured."""
        return [series for _, found in self._read(trials=True) for series in found]

    def close(self) -> None:
        """Ends the run. A log that cannot be merged into the file (a full disk) stays beside it and counts."""
        self._end(done=True)

    def __enter__(self) -> Self:
        return self

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
            database.close(self._connection, written=self._run is not None)

    def _read(self, trials: bool) -> list[tuple[Run, list[StoredSeries]]]:
        try:
            return read(self._connection, trials)
        except (sqlite3.Error, json.JSONDecodeError, TypeError, ValueError) as error:
            raise QuietError(f"{self._path}: damaged: {error}") from None

    def _write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """One transaction."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            made = change(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            kept = f"{self._kept:,} trials of this run are kept in it" if self._kept else "nothing of this run is kept"
            raise QuietError(f"{self._path}: {database.reason(error)}; {kept}") from None
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return made


def _ticks() -> int | str:
    """The clock of the trials, as it is stored; imported here, since reading a store needs no compiled parts."""
    from quiet import ticks

    return number(ticks())


def _insert(connection: sqlite3.Connection, statement: str, row: Sequence[object]) -> int:
    """Insert one row: its number."""
    number = connection.execute(statement, row).lastrowid
    assert number is not None
    return number
