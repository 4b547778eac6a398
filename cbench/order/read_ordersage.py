"""OrderSage's own result files: *_all_exp_results.csv (2021) and *_all_test_results.csv (2022).

A run is known by its run_uuid, for its number begins anew with each phase of a study that was not interleaved. Its
time_start is the CPU time of the process that controlled it and says nothing; a UUID of version 1 has the time in it
(RFC 9562, section 5.1). A result of several numbers is STREAM's (copy, scale, add, triad).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from cbench.order.read_table import plain
from cbench.stats.order.data import Trials
from cbench.stats.order.encode import ColumnError, trials
from quiet.errors import UsageError

SHARED = ("run_uuid", "order_number", "order_type", "completion_status", "result")
COMMANDS = ("exp_command", "test_command")
STREAM = ("copy_omp", "scale_omp", "add_omp", "triad_omp")
SUCCESS, FAILURE = "Success", "Failure"


def is_one(names: Sequence[str]) -> bool:
    """Whether a CSV with these columns is such a file."""
    return set(SHARED) <= set(names) and any(name in names for name in COMMANDS)


def read(path: Path, names: Sequence[str]) -> tuple[Trials, list[str]]:
    """The trials and warnings. Raises UsageError."""
    command = next(name for name in COMMANDS if name in names)
    columns = plain(path, [*SHARED, command])
    labels = _labels(columns[command])
    made: dict[str, list[object]] = {name: [] for name in ("test", "order", "metric", "run", "position", "value")}
    ranks = _in_time(columns["run_uuid"])
    failed = 0
    for line, (run, position, order, status, result, test) in enumerate(
        zip(*(columns[name] for name in (*SHARED, command)), strict=True), start=2
    ):
        numbers = _numbers(path, line, status, result)
        failed += numbers == [None]
        kinds = STREAM if len(numbers) == len(STREAM) else [str(n) for n in range(len(numbers))]
        for kind, value in zip(kinds, numbers, strict=True):
            made["test"].append(labels[test])
            made["order"].append(order)
            made["metric"].append("" if len(numbers) == 1 else kind)
            made["run"].append(ranks[run])
            made["position"].append(position)
            made["value"].append(value)
    try:
        found, warnings = trials(made)
    except ColumnError as error:
        raise UsageError(f"{path}: column {error.column}: {error.why}") from None
    bare = [name.rpartition(":")[2] for name in found.names]
    if len(set(bare)) == len(bare):  # as the paper names them
        found = replace(found, names=tuple(bare))
    if failed:
        warnings.append(f"{failed:,} trials failed")
    return found, warnings


def _labels(commands: Sequence[str]) -> dict[str, str]:
    """Short names: without ./ before and .sh behind, where these still tell one from another."""
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


def _numbers(path: Path, line: int, status: str, result: str) -> list[float | None]:
    if status == FAILURE:
        return [None]
    if status != SUCCESS:
        raise UsageError(f"{path}: line {line}: completion_status is {status!r}, neither {SUCCESS} nor {FAILURE}")
    try:
        value = json.loads(result)
        return [float(each) for each in value] if isinstance(value, list) and value else [float(value)]
    except (ValueError, TypeError):
        raise UsageError(f"{path}: line {line}: result {result!r} is no number") from None
