"""Store a study on disk: the complete plan before anything runs, then each trial in a separate transaction; if a
run is one process of a suite, all its trials in one.

The file is a cbench store (store/schema.py), with SQLite's write-ahead log and synchronous=FULL: a trial survives a
kill and a power failure once add() has returned.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from cbench.store.database import Database, for_reading, for_writing, has_study
from cbench.store.schema import compact
from cbench.study.orders import PlannedRun
from cbench.study.records import (
    Counts,
    Ended,
    FactValue,
    Header,
    RunFacts,
    StoredRun,
    TrialSamples,
    number,
    part,
    texts,
)
from quiet import QuietError, UsageError, __version__

KINDS = {"order": "a study of orders", "screen": "a screening experiment"}
FILES = {"order": "STUDY.toml", "screen": "SCREEN.toml"}
"""The placeholder for the file's name in messages, by the header's kind, which is also the name of the command."""


class StudyStore(Database):
    """An open store of a study or of a screening experiment, as a context manager."""

    @classmethod
    def create(cls, path: Path, header: Header, plan: Sequence[PlannedRun]) -> Self:
        """Create a study with all its runs planned. Raises UsageError if the file already has content, QuietError for
        other errors.
        """
        row = (
            *(time.time_ns(), __version__, header.kind, header.name, header.seed, header.source, header.folder),
            *(compact(list(header.tests)), compact(header.host)),
        )

        def write(c: sqlite3.Connection) -> None:
            c.execute(
                "INSERT INTO study (study, made_ns, version, kind, name, seed, source, directory, tests, host) "
                "VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            rows = ((place, run.kind, compact(list(run.order))) for place, run in enumerate(plan))
            c.executemany("INSERT INTO study_run (run, kind, tests) VALUES (?, ?, ?)", rows)

        store = cls(path, for_writing(path), True)
        with store._closed_on_error():  # a process killed while creating the store may have left it empty
            if has_study(store._connection):
                advice = "to start over, remove it or name another file (-o)"
                kind = store.header().kind
                raise UsageError(f"{path}: already exists; `cbench {kind} resume {path}` continues it; {advice}")
            if store._connection.execute("SELECT count(*) FROM run").fetchone()[0]:
                raise UsageError(f"{path}: contains measurements; choose another file for the study (-o)")
            store._write(write)
        return store

    @classmethod
    def open(cls, path: Path, writing: bool = False, kind: str | None = None) -> Self:
        """Open an existing study. Raises UsageError if the file is not a study, or not of this kind."""
        if writing and not path.exists():
            raise UsageError(f"{path}: no such file")
        store = cls(path, for_writing(path) if writing else for_reading(path), writing)
        with store._closed_on_error():
            if not has_study(store._connection):
                begins = f"`cbench {kind or 'order'} run {FILES[kind or 'order']} -o FILE` starts one"
                raise UsageError(f"{path}: contains no study; {begins}")
            if kind is not None and (found := store.header().kind) != kind:
                raise UsageError(
                    f"{path}: is {KINDS.get(found, found)}, not {KINDS[kind]}; use `cbench {found}` with the same "
                    "subcommands (resume, status, analyze, report)"
                )
        return store

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            with self._reading():
                yield
        except QuietError:
            self.close()
            raise

    def identity(self) -> str:
        """A name for the study that is unique on this host, from the file's device and inode numbers and the study's
        time of creation.
        """
        status = self.path.stat()
        return f"{status.st_dev:x}-{status.st_ino:x}-{self.header().made_ns:x}"

    def header(self) -> Header:
        with self._reading() as c:
            row = c.execute(
                "SELECT kind, name, seed, source, directory, tests, host, made_ns, ended_ns FROM study"
            ).fetchone()
            kind, name, seed, source, folder, *texts, made, ended = row
            tests, host = map(json.loads, texts)
            if not tests or not all(isinstance(test, str) for test in tests) or not isinstance(host, dict):
                raise ValueError("its tests or its host cannot be read")
            return Header(kind, name, seed, source, folder, tuple(tests), host, made, ended)

    def runs(self) -> list[StoredRun]:
        """All runs, in chronological order."""
        tests = range(len(self.header().tests))
        with self._reading() as c:
            rows = c.execute(
                "SELECT run, kind, tests, begun_ns, ended_ns, failure, resumed, "
                "(SELECT count(*) FROM study_trial WHERE study_trial.run = study_run.run) FROM study_run ORDER BY run"
            ).fetchall()
            orders = [tuple(json.loads(row[2])) for row in rows]
            numbered = [row[0] for row in rows] == list(range(len(rows)))
            if not numbered or not all(order and all(test in tests for test in order) for order in orders or [()]):
                raise ValueError("its runs cannot be read")
            return [
                StoredRun(run, kind, order, begun, ended, failure, done, len(json.loads(resumed or "[]")))
                for order, (run, kind, _, begun, ended, failure, resumed, done) in zip(orders, rows, strict=True)
            ]

    def begin_run(self, run: int, reset: Mapping[str, FactValue], facts: Mapping[str, FactValue]) -> None:
        """Record that the host is reset and that the run's first trial may begin."""
        row = (time.time_ns(), compact(reset), compact(facts), run)
        self._write(lambda c: c.execute("UPDATE study_run SET begun_ns = ?, reset = ?, facts = ? WHERE run = ?", row))

    def ask_to_boot(self, run: int, boot_id: str, times: int) -> None:
        """Record that the host is about to reboot for this run. `times`: the number of reboots requested so far;
        `boot_id`: the ID of the boot that ends.
        """
        row = (compact({"boot_id_before": boot_id, "asked": times}), run)
        self._write(lambda c: c.execute("UPDATE study_run SET reset = ? WHERE run = ?", row))

    def asked_to_boot(self, run: int) -> tuple[str, int]:
        """The ID of the boot that must end for a run, and the number of requested reboots; "" and 0 if none was
        requested.
        """
        with self._reading() as c:
            found = c.execute("SELECT reset FROM study_run WHERE run = ?", (run,)).fetchone()[0]
            asked = json.loads(found or "{}")
            return str(asked.get("boot_id_before", "")), int(asked.get("asked", 0))

    def resume_run(self, run: int, position: int, facts: Mapping[str, FactValue]) -> None:
        """Record that an interrupted run resumes at this position."""

        def write(c: sqlite3.Connection) -> None:
            before = c.execute("SELECT resumed FROM study_run WHERE run = ?", (run,)).fetchone()[0]
            every = [*json.loads(before or "[]"), {"position": position, "at_ns": time.time_ns(), **facts}]
            c.execute("UPDATE study_run SET resumed = ? WHERE run = ?", (compact(every), run))

        self._write(write)

    def add(self, trial: Ended) -> None:
        """Store a trial that has ended, in one transaction. Raises QuietError if it cannot be stored."""
        self._write(lambda c: _insert(c, trial))

    def add_run(self, run: int, trials: Sequence[Ended]) -> None:
        """Store all trials of a run that was one process, the order in which they ran, and the run's end, in one
        transaction.
        """

        def write(c: sqlite3.Connection) -> None:
            for trial in trials:
                _insert(c, trial)
            order = compact([trial.test for trial in trials])
            c.execute("UPDATE study_run SET tests = ?, ended_ns = ? WHERE run = ?", (order, time.time_ns(), run))

        self._write(write)

    def end_run(self, run: int, failure: str | None = None) -> None:
        """Record the end of a run: complete, or ended by a `failure` outside its tests, such as in its reset."""
        row = (time.time_ns(), failure, run)
        self._write(lambda c: c.execute("UPDATE study_run SET ended_ns = ?, failure = ? WHERE run = ?", row))

    def finish(self) -> None:
        """Record that all runs have ended."""
        self._write(lambda c: c.execute("UPDATE study SET ended_ns = ?", (time.time_ns(),)))

    def counts(self) -> Counts:
        """The study's progress, without reading every trial."""
        with self._reading() as c:
            done, failed, last, mean = c.execute(
                "SELECT count(*), count(failure), max(ended_ns), avg(ended_ns - begun_ns) FROM study_trial"
            ).fetchone()
            return Counts(done, failed, last, mean)

    def failures(self) -> list[tuple[int, str]]:
        """The pairs of test number and failure reason of all failed trials; each pair once, the most recent first."""
        with self._reading() as c:
            return c.execute(
                "SELECT test, failure FROM study_trial WHERE failure IS NOT NULL "
                "GROUP BY test, failure ORDER BY max(ended_ns) DESC"
            ).fetchall()

    def first_failure(self) -> tuple[int, str]:
        """The test and the reason of the first failed trial; at least one trial must have failed."""
        with self._reading() as c:
            test, reason = c.execute(
                "SELECT test, failure FROM study_trial WHERE failure IS NOT NULL ORDER BY run, position LIMIT 1"
            ).fetchone()
            return int(test), str(reason)

    def trials(self) -> list[tuple[int, int, int, str | None, int, int]]:
        """Run, position, test, failure, start and end (in ns since 1970) of every trial, in chronological order."""
        with self._reading() as c:
            return c.execute(
                "SELECT run, position, test, failure, begun_ns, ended_ns FROM study_trial ORDER BY run, position"
            ).fetchall()

    def values(self) -> list[tuple[int, int, str, float]]:
        """Run, position, metric and value of every number that was read."""
        with self._reading() as c:
            return c.execute("SELECT run, position, metric, value FROM study_value ORDER BY run, position").fetchall()

    def units(self) -> dict[tuple[int, str], str]:
        """The units of a suite's results, by test number and metric; {} for a study without a suite."""
        with self._reading() as c:
            rows = c.execute("SELECT test, facts FROM study_trial WHERE failure IS NULL GROUP BY test")
            results = [(test, part(json.loads(facts), "results")) for test, facts in rows]
            return {(test, metric): texts(each, metric)["unit"] for test, each in results for metric in each}

    def run_facts(self) -> list[RunFacts]:
        """The facts about the host at the beginning of each run that has begun."""
        with self._reading() as c:
            rows = c.execute("SELECT run, facts FROM study_run WHERE begun_ns IS NOT NULL ORDER BY run")
            return [RunFacts.parse(run, json.loads(facts or "{}")) for run, facts in rows]

    def trial_samples(self) -> list[TrialSamples]:
        """For each trial in chronological order, the lost samples and the sampling pauses that perf reports; 0 for a
        trial without perf samples.
        """
        with self._reading() as c:
            rows = c.execute("SELECT test, facts FROM study_trial ORDER BY run, position")
            known = [(test, part(json.loads(facts or "{}"), "samples")) for test, facts in rows]
            return [TrialSamples(test, number(each, "lost"), number(each, "throttled")) for test, each in known]

    def resumed_boots(self) -> dict[int, tuple[str, ...]]:
        """The IDs of the boots in which each interrupted run was resumed."""
        with self._reading() as c:
            rows = c.execute("SELECT run, resumed FROM study_run WHERE resumed IS NOT NULL ORDER BY run")
            return {run: tuple(str(each.get("boot_id", "")) for each in json.loads(text)) for run, text in rows}


def _insert(c: sqlite3.Connection, trial: Ended) -> None:
    row = (
        *(trial.run, trial.position, trial.test, trial.begun_ns, trial.ended_ns, trial.failure, trial.code),
        *(trial.output, trial.errors, compact(trial.facts)),
    )
    values = [(trial.run, trial.position, metric, value, text) for metric, (value, text) in trial.values.items()]
    c.execute("INSERT INTO study_trial VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    c.executemany("INSERT INTO study_value VALUES (?, ?, ?, ?, ?)", values)
