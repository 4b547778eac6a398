"""A screening experiment's store as one row a trial: its place, its factors' levels, its responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cbench.screen.config.model import COLUMNS
from cbench.screen.data.load_store import StoredScreen, read
from cbench.tables import write

WHOLE = ("run", "batch", "iteration", "position", "treatment", "begun_ns", "ended_ns")


def contents(path: Path, kind: str, clean_only: bool) -> tuple[str | bytes, int]:
    """The file's content in the format `kind`, and how many trials are in it. UsageError where that cannot be."""
    write.check(path, kind, clean_only, "a screening experiment", "factors")
    found = read(path)
    rows = _rows(found)
    real = [response.name for response in found.screen.responses]
    return write.content(path, kind, rows, WHOLE, real), len(rows)


def _rows(found: StoredScreen) -> list[dict[str, Any]]:
    rows = []
    for trial in found.trials:
        treatment = found.treatments[trial.treatment]
        row: dict[str, Any] = dict(treatment.levels)
        row |= {
            "workload": trial.workload,
            "run": trial.run,
            "batch": trial.batch,
            "iteration": trial.iteration,
            "position": trial.position,
            "treatment": trial.treatment,
            "questionable": treatment.questionable or None,
        }
        row |= {response.name: trial.values.get(response.name) for response in found.screen.responses}
        row |= {"failure": trial.failure, "begun_ns": trial.begun_ns, "ended_ns": trial.ended_ns}
        assert set(COLUMNS) <= row.keys()
        rows.append(row)
    return rows
