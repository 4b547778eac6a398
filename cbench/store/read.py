"""Reading a store's rows into records."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Any

from cbench.store.records import Run, Stored, StoredSeries, Timeline
from cbench.store.schema import SERIES, TRIALS, integer, unpack


def read(connection: sqlite3.Connection, trials: bool) -> list[tuple[Run, list[StoredSeries]]]:
    """Runs and their series as of one moment, though another process may be writing."""
    connection.execute("BEGIN")
    try:
        rows = connection.execute("SELECT run, started_ns, ended_ns, version, command, host FROM run ORDER BY run")
        runs = [
            Run(number, started, ended, version, tuple(json.loads(command)), json.loads(host))
            for number, started, ended, version, command, host in rows.fetchall()
        ]
        return [(run, _series(connection, run) if trials else []) for run in runs]
    finally:
        connection.execute("COMMIT")


def _series(connection: sqlite3.Connection, run: Run) -> list[StoredSeries]:
    rows = connection.execute(SERIES, (run.number,)).fetchall()
    found = []
    for number, position, workload, params, cpu, process, started, ended, facts, after, *ticks in rows:
        known = {**json.loads(facts), **json.loads(after or "{}")}
        timeline = _timeline(connection, number, (ticks[0], started), (ticks[1], ended))
        trials = _trials(connection, number, timeline)
        settings = json.loads(params)
        found.append(
            StoredSeries(number, run, position, workload, settings, cpu, process, started, ended, known, trials)
        )
    return marked(found)


def marked(series: list[StoredSeries]) -> list[StoredSeries]:
    """With what was varied: processes are numbered from 0 in each test, so where the numbers begin again, the next
    begins, and what differs before that is not a part of it."""
    tests: dict[tuple[str, int], list[list[int]]] = {}
    for at, each in enumerate(series):
        known = tests.setdefault((each.workload, each.cpu), [])
        if not known or each.process <= series[known[-1][-1]].process:
            known.append([])
        known[-1].append(at)
    made = list(series)
    for members in (members for known in tests.values() for members in known):
        params = [series[at].params for at in members]
        names = frozenset(
            name for one in params for name in one if any(name not in p or p[name] != one[name] for p in params)
        )
        for at in members:
            made[at] = replace(series[at], varied=names)
    return made


def _timeline(connection: sqlite3.Connection, series: int, begin: tuple[Any, int], end: tuple[Any, Any]) -> Timeline:
    rows = connection.execute(
        "SELECT stored_ticks, stored_ns FROM chunk WHERE series = ? ORDER BY first", (series,)
    ).fetchall()
    moments = [begin, *rows, *([end] if end[0] is not None else [])]
    return Timeline([integer(ticks) for ticks, _ in moments], [ns for _, ns in moments])


def _trials(connection: sqlite3.Connection, series: int, timeline: Timeline) -> tuple[Stored, ...]:
    found = []
    for position, *row in connection.execute(TRIALS, (series,)):
        trial, counts = unpack(tuple(row))
        found.append(Stored(position, trial, counts, timeline.of(trial.begin)))
    return tuple(found)
