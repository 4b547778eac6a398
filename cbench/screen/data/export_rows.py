"""A screening experiment's trials as rows: the reader of its store for `cbench export`."""

from __future__ import annotations

from pathlib import Path

from cbench.screen.config.model import COLUMNS
from cbench.screen.data.load_store import read

Cell = None | int | float | str


def trial_rows(path: Path) -> tuple[list[str], list[str], list[tuple[Cell, ...]]]:
    """The columns, those of them that are responses, and a row for each trial. UsageError, QuietError."""
    stored = read(path)
    responses = [response.name for response in stored.screen.responses]
    factors = list(stored.treatments[0].levels) if stored.treatments else []
    before = ["workload", "run", "batch", "iteration", "position", "treatment", "questionable"]
    columns = [*factors, *before, *responses, "failure", "begun_ns", "ended_ns"]
    assert set(COLUMNS) <= set(columns)
    rows: list[tuple[Cell, ...]] = []
    for trial in stored.trials:
        treatment = stored.treatments[trial.treatment]
        rows.append(
            (
                *(treatment.levels[factor] for factor in factors),
                *(trial.workload, trial.run, trial.batch, trial.iteration, trial.position, trial.treatment),
                treatment.questionable or None,
                *(trial.values.get(name) for name in responses),
                *(trial.failure, trial.begun_ns, trial.ended_ns),
            )
        )
    return columns, responses, rows
