"""Define the schema of a store, which is an SQLite file, and the migrations between schema versions.

run          One command on one host.
series       One workload with one set of parameters in one process on one CPU. `facts`: the data known before its
             trials; `ended`: the data known after them. `process` numbers a workload's processes from 0.
trial        One execution, with its value, output and counts. `position` counts from 0 within the parent row.
chunk        Trials that were stored together, and the time on two clocks: ticks of quiet.noise.clock, as in trial.begin
             and trial.end, and ns since 1970.
study        The content of a study's file and the measured host, at most one per store.
study_run    Every run of the study, planned in full before the first one begins, with its order as test numbers; if one
             process of a suite executes the run, the order in which its tests ran replaces the planned one.
study_trial  A trial that has ended, failed or not, with its output.
study_value  The numbers read from a trial, and their text.

A number in a column of type ANY is an integer if it fits into SQLite's signed 64 bits, otherwise its decimal digits as
text, so it is always exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, is_dataclass
from typing import Any

from cbench.model import FAULT, INTERRUPT, KERNEL, LINES, MIGRATION, SWITCH, ChainTimes, Trial, TrialCause

APPLICATION_ID = 0x63626E63  # "cbnc": identifies the file as a store, also for file(1)

STEPS = (
    """
    CREATE TABLE run (
        run INTEGER PRIMARY KEY, started_ns INTEGER NOT NULL, ended_ns INTEGER,
        version TEXT NOT NULL, command TEXT NOT NULL, host TEXT NOT NULL
    ) STRICT;
    CREATE TABLE series (
        series INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run, position INTEGER NOT NULL,
        workload TEXT NOT NULL, params TEXT NOT NULL, cpu INTEGER NOT NULL, process INTEGER NOT NULL,
        started_ns INTEGER NOT NULL, started_ticks ANY NOT NULL, ended_ns INTEGER, ended_ticks ANY,
        facts TEXT NOT NULL, ended TEXT, UNIQUE (run, position)
    ) STRICT;
    CREATE TABLE trial (
        series INTEGER NOT NULL REFERENCES series, position INTEGER NOT NULL,
        value ANY NOT NULL, output ANY NOT NULL, "begin" ANY NOT NULL, "end" ANY NOT NULL,
        valid INTEGER NOT NULL, migrated INTEGER NOT NULL,
        context_switches INTEGER NOT NULL, page_faults INTEGER NOT NULL,
        causes TEXT, interrupts TEXT, counts TEXT, traced TEXT, more TEXT, PRIMARY KEY (series, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE chunk (
        series INTEGER NOT NULL REFERENCES series, first INTEGER NOT NULL, trials INTEGER NOT NULL,
        stored_ns INTEGER NOT NULL, stored_ticks ANY NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE study (
        study INTEGER PRIMARY KEY CHECK (study = 1), made_ns INTEGER NOT NULL, ended_ns INTEGER,
        version TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, seed INTEGER NOT NULL,
        source TEXT NOT NULL, directory TEXT NOT NULL, tests TEXT NOT NULL, host TEXT NOT NULL
    ) STRICT;
    CREATE TABLE study_run (
        run INTEGER PRIMARY KEY, kind TEXT NOT NULL, tests TEXT NOT NULL,
        begun_ns INTEGER, ended_ns INTEGER, reset TEXT, facts TEXT, failure TEXT, resumed TEXT
    ) STRICT;
    CREATE TABLE study_trial (
        run INTEGER NOT NULL REFERENCES study_run, position INTEGER NOT NULL, test INTEGER NOT NULL,
        begun_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL, failure TEXT, code INTEGER,
        output BLOB NOT NULL, errors BLOB NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE study_value (
        run INTEGER NOT NULL, position INTEGER NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (run, position, metric), FOREIGN KEY (run, position) REFERENCES study_trial
    ) STRICT, WITHOUT ROWID;
    """,
)
VERSION = len(STEPS)

NEW_RUN = "INSERT INTO run (started_ns, version, command, host) VALUES (?, ?, ?, ?)"
NEW_SERIES = (
    "INSERT INTO series (run, position, workload, params, cpu, process, started_ns, started_ticks, facts) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
NEW_CHUNK = "INSERT INTO chunk (series, first, trials, stored_ns, stored_ticks) VALUES (?, ?, ?, ?, ?)"
NEW_TRIAL = (
    'INSERT INTO trial (series, position, value, output, "begin", "end", valid, migrated, context_switches, '
    "page_faults, causes, interrupts, counts, traced, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
TRIALS = (
    'SELECT position, value, output, "begin", "end", valid, migrated, context_switches, page_faults, causes, '
    "interrupts, counts, traced, more FROM trial WHERE series = ? ORDER BY position"
)
SERIES = (
    "SELECT series, position, workload, params, cpu, process, started_ns, ended_ns, facts, ended, "
    "started_ticks, ended_ticks FROM series WHERE run = ? ORDER BY position"
)

_BITS = 2**63


def number(value: int) -> int | str:
    """The stored form of a number: an integer if it fits into 64 bits, otherwise text."""
    return value if -_BITS <= value < _BITS else str(value)


def compact(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), default=_plain)


def _plain(thing: object) -> object:
    if is_dataclass(thing) and not isinstance(thing, type):
        return asdict(thing)
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, set | frozenset):
        return sorted(thing)
    raise TypeError(f"cannot be stored: {type(thing).__name__}")


def pack(trial: Trial) -> tuple[object, ...]:
    """A trial as a row in the order of NEW_TRIAL's columns; empty values are NULL, and values without a column are in
    `more`.
    """
    numbers = (trial.value, trial.output, trial.begin, trial.end)
    traced = None  # None means that there was no trace, () that nothing was traced
    if trial.traced is not None:
        traced = compact([{"kind": part.kind, "text": part.name, "ns": part.ns} for part in trial.traced])
    return (
        *map(number, numbers),
        *(int(trial.valid), int(trial.migrated), trial.context_switches, trial.page_faults),
        *(
            compact(content) if content else None
            for content in ([cause.text for cause in trial.causes], trial.interrupts, trial.counts)
        ),
        traced,
        _more(trial),
    )


def _more(trial: Trial) -> str | None:
    """The fields of a trial that have no column, as JSON; None if all of them are empty."""
    more: dict[str, object] = {}
    if trial.kernel is not None:
        more["kernel"] = trial.kernel
    if trial.chains is not None:
        more["chains"] = astuple(trial.chains)
    return compact(more) if more else None


def cause(text: str, traced: Sequence[TrialCause], interrupts: Mapping[str, int]) -> TrialCause:
    """The cause that a stored description stands for."""
    for part in traced:
        if part.name == text:
            return part
    for kind in (SWITCH, MIGRATION, FAULT):
        if text.startswith(f"{kind} (") and text.endswith(")"):
            return TrialCause(kind, text.removeprefix(f"{kind} (").removesuffix(")"))
    if text.startswith(f"{INTERRUPT} ") and text != LINES:
        name = text.removeprefix(f"{INTERRUPT} ")
        return TrialCause(INTERRUPT, name, interrupts.get(name, 1))
    if instructions := re.fullmatch(rf"{re.escape(KERNEL)} \(([\d,]+) instructions\)", text):
        return TrialCause(KERNEL, count=int(instructions[1].replace(",", "")))
    return TrialCause(text)


def unpack(row: tuple[Any, ...]) -> Trial:
    """The trial that a row contains; the inverse of pack()."""
    value, output, begin, end, valid, migrated, switches, faults, *texts = row
    causes, interrupts, counts, traced, more = (None if text is None else json.loads(text) for text in texts)
    parts = None
    if traced is not None:
        parts = tuple(TrialCause(part["kind"], part["text"], ns=part["ns"]) for part in traced)
    return Trial(
        value=int(value),
        output=int(output),
        causes=tuple(cause(text, parts or (), interrupts or {}) for text in causes or ()),
        context_switches=switches,
        page_faults=faults,
        interrupts=interrupts or {},
        migrated=bool(migrated),
        valid=bool(valid),
        begin=int(begin),
        end=int(end),
        counts=counts or {},
        kernel=(more or {}).get("kernel"),
        traced=parts,
        chains=ChainTimes(*more["chains"]) if more and "chains" in more else None,
    )
