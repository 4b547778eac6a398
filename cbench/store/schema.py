"""What a store looks like on disk: one SQLite file, a version number in it, and the steps from version to version.

run: one command on one host. series: one workload with one set of parameters in one process on one CPU; `facts` is
what was known before its trials, `ended` what was known after them. trial: one execution, one number. chunk: trials
that were stored together, and when, on two clocks: ticks of quiet.noise.clock, as in trial.begin and trial.end, and
nanoseconds since 1970. `process` numbers a workload's processes from 0, `position` counts from 0 in what is above.

study: what a study's file said and who is measured, one to a file. study_run: every run of it, planned in full before
the first begins, its order as numbers of tests. study_trial: a trial that has ended, failed or not, with what it
printed. study_value: the numbers read from it, and their text.

A number is an integer where it fits into SQLite's 64 bits with sign, else its decimal digits as text: exact always.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from cbench.model import FAULT, INTERRUPT, KERNEL, LINES, MIGRATION, SWITCH, Trial, TrialCause

APPLICATION_ID = 0x63626E63  # "cbnc": `file` and we know by it whose file it is

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
        source TEXT NOT NULL, folder TEXT NOT NULL, tests TEXT NOT NULL, host TEXT NOT NULL
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

NUMBERS = ("value", "output", "begin", "end")
WHOLE = ("valid", "migrated", "context_switches", "page_faults")
TEXTS = ("causes", "interrupts", "counts", "traced")
COLUMNS = (*NUMBERS, *WHOLE, *TEXTS, "more")

KNOWN = frozenset(field.name for field in fields(Trial))
DEFAULTS = {field.name: field.default for field in fields(Trial) if field.default is not MISSING}

_BITS = 2**63


def number(value: int) -> int | str:
    """As it is stored."""
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
    """A trial in the order of COLUMNS; what is empty is NULL, and a field that has no column is in `more`."""
    each = {field.name: getattr(trial, field.name) for field in fields(trial)}
    row: list[object] = [number(each.pop(name)) for name in NUMBERS]
    row += [int(each.pop(name)) for name in WHOLE]
    each["causes"] = [cause.text for cause in trial.causes]
    if trial.traced is not None:
        each["traced"] = [{"kind": part.kind, "text": part.name, "ns": part.ns} for part in trial.traced]
    for name in TEXTS:
        content = each.pop(name, None)
        known = content is not None if name == "traced" else content  # nothing traced is not the same as not traced
        row.append(compact(content) if known else None)
    rest = {name: value for name, value in each.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return (*row, compact(rest) if rest else None)


def cause(text: str, traced: Sequence[TrialCause], interrupts: Mapping[str, int]) -> TrialCause:
    """A cause from its words: the file holds these."""
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


def unpack(row: tuple[Any, ...]) -> tuple[Trial, Mapping[str, int]]:
    """The trial of a row of COLUMNS, and its counts."""
    each = dict(zip(COLUMNS, row, strict=True))
    content: dict[str, Any] = {name: int(each[name]) for name in NUMBERS}
    content |= {"valid": bool(each["valid"]), "migrated": bool(each["migrated"])}
    content |= {name: each[name] for name in ("context_switches", "page_faults")}
    content["interrupts"] = json.loads(each["interrupts"]) if each["interrupts"] else {}
    traced = None
    if each["traced"] is not None:
        traced = tuple(TrialCause(part["kind"], part["text"], ns=part["ns"]) for part in json.loads(each["traced"]))
        content["traced"] = traced
    texts = json.loads(each["causes"]) if each["causes"] else ()
    content["causes"] = tuple(cause(text, traced or (), content["interrupts"]) for text in texts)
    counts: Mapping[str, int] = json.loads(each["counts"]) if each["counts"] else {}
    more = json.loads(each["more"]) if each["more"] else {}
    content |= {"counts": counts, **{name: more[name] for name in more if name in KNOWN}}
    return Trial(**content), counts
