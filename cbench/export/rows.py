"""A store as one row a trial, for spreadsheets, data frames and `cbench order analyze`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from cbench.store.records import Stored, StoredSeries

FIXED = "fixed"
"""The order of `cbench run`: as it was typed, the same in every run (order, run and position as in a study's file)."""

COLUMNS = (
    *("run", "series", "test", "workload", "params", "cpu", "process", "order", "position", "value", "unit"),
    *("polluted", "cause", "time", "output", "valid", "migrated", "context_switches", "page_faults", "interrupts"),
)
WHOLE = {"run", "series", "cpu", "process", "position", "context_switches", "page_faults"}
UNSIGNED = {"value", "output"}
LOGICAL = {"polluted", "valid", "migrated"}


def counted(series: Sequence[StoredSeries]) -> list[str]:
    """The further counters that any trial has, by name."""
    return sorted({name for each in series for stored in each.trials for name in stored.counts})


def rows(series: Sequence[StoredSeries], clean_only: bool = False) -> Iterator[dict[str, Any]]:
    """COLUMNS and one `count.NAME` a further counter; None where a trial has none."""
    names = counted(series)
    for each in series:
        for stored in each.trials:
            if not (clean_only and stored.polluted):
                yield {**_row(each, stored), **{f"count.{name}": stored.counts.get(name) for name in names}}


def _row(series: StoredSeries, stored: Stored) -> dict[str, Any]:
    trial = stored.trial
    return {
        "run": series.run.number,
        "series": series.number,
        "test": series.test,
        "workload": series.workload,
        "params": " ".join(f"{name}={value}" for name, value in sorted(series.params.items())),
        "cpu": series.cpu,
        "process": series.process,
        "order": FIXED,
        "position": stored.position,
        "value": trial.value,
        "unit": series.unit,
        "polluted": trial.polluted,
        "cause": ", ".join(cause.text for cause in trial.causes),
        "time": _time(stored.begin_ns),
        "output": trial.output,
        "valid": trial.valid,
        "migrated": trial.migrated,
        "context_switches": trial.context_switches,
        "page_faults": trial.page_faults,
        "interrupts": ", ".join(f"{name} {count}" for name, count in trial.interrupts.items()),
    }


def _time(ns: int | None) -> str:
    """A moment in UTC, to the microsecond: the two clocks that it is computed from are not read together any closer."""
    if ns is None:
        return ""
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ns // 1000 % 10**6:06}Z"


def as_csv(series: Sequence[StoredSeries], clean_only: bool = False) -> str:
    """RFC 4180 with line feeds: yes and no as 1 and 0, numbers in full, nothing where there is nothing."""
    text = io.StringIO()
    names = [*COLUMNS, *(f"count.{name}" for name in counted(series))]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows(series, clean_only):
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    return text.getvalue()
