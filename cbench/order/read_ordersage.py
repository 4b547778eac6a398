"""Read the result files of OrderSage as the trials of a study.

A run is identified by its run_uuid, because run numbers restart at each phase of a study that was not interleaved. The
column time_start is the CPU time of the controlling process, so it cannot order the runs; a version 1 UUID contains the
time (RFC 9562, section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from uuid import UUID

from cbench.formats.json_value import DamagedError
from cbench.formats.ordersage import COMMANDS, SHARED, metrics_of, numbers, short_names
from cbench.report.text import counted
from cbench.stats.trials import Trials
from cbench.tables.columns import ColumnError, trials
from cbench.tables.read import plain
from quiet import UsageError

HOST = "hostname"
COLUMNS = {"order": "order_type", "run": "run_uuid", "position": "order_number", "value": "result"}


def read(path: Path, names: Sequence[str]) -> tuple[Trials, list[str]]:
    """The trials and warnings from a file with these columns. Raises UsageError for damaged content."""
    command = next(name for name in COMMANDS if name in names)
    columns = plain(path, [*SHARED, command, *([HOST] if HOST in names else [])])
    labels = short_names(columns[command])
    ranks = _in_time(columns["run_uuid"])
    rows = list(zip(*(columns[name] for name in (*SHARED, command)), strict=True))
    try:
        results = [numbers(f"line {line}", row[3], row[4]) for line, row in enumerate(rows, start=2)]
    except DamagedError as error:
        raise UsageError(f"{path}: {error}") from None
    metrics = metrics_of([labels[row[5]] for row in rows], results)
    kept = ("test", "order", "metric", "run", "position", "value", "host")
    renamed: dict[str, list[object]] = {name: [] for name in kept}
    hosts = columns.get(HOST, [""] * len(rows))
    lines = []
    for line, (row, values, host) in enumerate(zip(rows, results, hosts, strict=True), start=2):
        run, position, order, _, _, test = row
        of_test = metrics[labels[test]]
        if values and len(values) != len(of_test):
            raise UsageError(
                f"{path}: line {line}: {counted(len(values), 'number')}; other results of this test have {len(of_test)}"
            )
        for metric, value in zip(of_test, values or [nan] * len(of_test), strict=True):
            renamed["test"].append(labels[test])
            renamed["order"].append(order)
            renamed["metric"].append(metric)
            renamed["run"].append(ranks[run])
            renamed["position"].append(position)
            renamed["value"].append(value)
            renamed["host"].append(host)
            lines.append(line)
    if len(set(hosts)) < 2:
        del renamed["host"]
    try:
        pooled, warnings = trials(renamed)
    except ColumnError as error:
        place = "" if error.row is None else f"line {lines[error.row]}: "
        why = error.why if error.first is None else f"{error.why} in line {lines[error.first]}"
        raise UsageError(f"{path}: {place}column {COLUMNS.get(error.column, command)}: {why}") from None
    bare = [metric or name for name, metric in zip(pooled.names, pooled.metrics, strict=True)]
    if len(set(bare)) == len(bare):  # use the paper's names
        pooled = replace(pooled, names=tuple(bare))
    if failed := sum(not values for values in results):
        warnings.append(f"{failed:,} of {len(rows):,} trials failed")
    return pooled, warnings


def _in_time(runs: Sequence[str]) -> dict[str, int]:
    """The number of each run, from 0: in chronological order if all are version 1 UUIDs, otherwise in the order of
    the file.
    """
    ordered = list(dict.fromkeys(runs))
    try:
        times = {run: UUID(run) for run in ordered}
    except ValueError:
        times = {}
    if times and all(each.version == 1 for each in times.values()):
        ordered.sort(key=lambda run: times[run].time)
    return {run: number for number, run in enumerate(ordered)}
