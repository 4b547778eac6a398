"""OrderSage's own result files: *_all_exp_results.csv (2021) and *_all_test_results.csv (2022).

A run is known by its run_uuid, for its number starts again at each phase of a study that was not interleaved. Its
time_start is the CPU time of the process that controlled it and says nothing; a UUID of version 1 has the time in it
(RFC 9562, section 5.1). A result of several numbers is STREAM's (copy, scale, add, triad).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import isinf, isnan, nan
from pathlib import Path
from uuid import UUID

from cbench.report.text import some
from cbench.stats.trials import Trials
from cbench.tables.columns import MISSING, ColumnError, trials
from cbench.tables.read import plain
from quiet import UsageError

SHARED = ("run_uuid", "order_number", "order_type", "completion_status", "result")
COMMANDS = ("exp_command", "test_command")
HOST = "hostname"
STREAM = ("copy_omp", "scale_omp", "add_omp", "triad_omp")
SUCCESS, FAILURE = "Success", "Failure"
COLUMNS = {"order": "order_type", "run": "run_uuid", "position": "order_number", "value": "result"}


def is_one(names: Sequence[str]) -> bool:
    """Whether a CSV with these columns is such a file."""
    return set(SHARED) <= set(names) and any(name in names for name in COMMANDS)


def lacking(names: Sequence[str]) -> str:
    """The one column that a CSV with these columns lacks for being such a file; nothing where that is not all."""
    missing = [name for name in SHARED if name not in names]
    if not any(name in names for name in COMMANDS):
        missing.append(" or ".join(COMMANDS))
    return missing[0] if len(missing) == 1 else ""


def read(path: Path, names: Sequence[str]) -> tuple[Trials, list[str]]:
    """The trials and warnings. Raises UsageError."""
    command = next(name for name in COMMANDS if name in names)
    columns = plain(path, [*SHARED, command, *([HOST] if HOST in names else [])])
    labels = _labels(columns[command])
    ranks = _in_time(columns["run_uuid"])
    rows = list(zip(*(columns[name] for name in (*SHARED, command)), strict=True))
    results = [_numbers(path, line, row[3], row[4]) for line, row in enumerate(rows, start=2)]
    kinds = _kinds([labels[row[5]] for row in rows], results)
    made: dict[str, list[object]] = {name: [] for name in ("test", "order", "metric", "run", "position", "value")}
    lines = []
    for line, (row, numbers) in enumerate(zip(rows, results, strict=True), start=2):
        run, position, order, _, _, test = row
        of_test = kinds[labels[test]]
        if numbers and len(numbers) != len(of_test):
            raise UsageError(f"{path}: line {line}: {len(numbers)} numbers, where other results have {len(of_test)}")
        for kind, value in zip(of_test, numbers or [nan] * len(of_test), strict=True):
            made["test"].append(labels[test])
            made["order"].append(order)
            made["metric"].append(kind)
            made["run"].append(ranks[run])
            made["position"].append(position)
            made["value"].append(value)
            lines.append(line)
    try:
        found, warnings = trials(made)
    except ColumnError as error:
        place = "" if error.row is None else f"line {lines[error.row]}: "
        why = error.why if error.first is None else f"{error.why} in line {lines[error.first]}"
        raise UsageError(f"{path}: {place}column {COLUMNS.get(error.column, command)}: {why}") from None
    bare = [kind or name for name, kind in zip(found.names, found.metrics, strict=True)]
    if len(set(bare)) == len(bare):  # as the paper names them
        found = replace(found, names=tuple(bare))
    if failed := sum(not numbers for numbers in results):
        warnings.append(f"{failed:,} of {len(rows):,} trials failed")
    if len(hosts := list(dict.fromkeys(columns.get(HOST, ())))) > 1:
        warnings.append(f"trials of {len(hosts):,} hosts are pooled: {some(hosts)}")
    return found, warnings


def _labels(commands: Sequence[str]) -> dict[str, str]:
    """Short names: without ./ before and .sh behind, where the rest is still unique."""
    short = {each: each.removeprefix("./").removesuffix(".sh") for each in dict.fromkeys(commands)}
    return short if len(set(short.values())) == len(short) else {each: each for each in short}


def _in_time(runs: Sequence[str]) -> dict[str, int]:
    """A number for each run: by the time in its UUID, or where that is not in all of them as they come in the file."""
    found = list(dict.fromkeys(runs))
    try:
        times = {run: UUID(run) for run in found}
    except ValueError:
        times = {}
    if times and all(each.version == 1 for each in times.values()):
        found.sort(key=lambda run: times[run].time)
    return {run: number for number, run in enumerate(found)}


def _numbers(path: Path, line: int, status: str, result: str) -> list[float]:
    """The numbers of a result; none where the trial failed, whatever its result is then, or where one is missing."""
    if status == FAILURE:
        return []
    if status != SUCCESS:
        raise UsageError(f"{path}: line {line}: completion_status is {status!r}, neither {SUCCESS} nor {FAILURE}")
    if result.strip() in MISSING:
        return []
    try:
        found = [float(each) for each in json.loads(result)] if result.startswith("[") else [float(result)]
    except (ValueError, TypeError):
        found = []
    if not found or "_" in result or any(map(isinf, found)):
        raise UsageError(f"{path}: line {line}: result {result[:40]!r} is no number")
    return [] if any(map(isnan, found)) else found


def _kinds(tests: Sequence[str], results: Sequence[Sequence[float]]) -> dict[str, Sequence[str]]:
    """The names of each test's metrics; one without a name where a test has but one number, or always failed."""
    kinds: dict[str, Sequence[str]] = {}
    for test, numbers in zip(tests, results, strict=True):
        if numbers and test not in kinds:
            count = len(numbers)
            kinds[test] = STREAM if count == len(STREAM) else [str(n) for n in range(count)] if count > 1 else [""]
    return {test: kinds.get(test, [""]) for test in tests}
