"""Results that differ between trials, said as `cbench run` says it, by the commands that measure under conditions."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.model import Trial
from cbench.run.run import shortcomings


def lines(workload: str, cpu: int, trials: Sequence[Trial]) -> list[str]:
    """What `cbench run` would say of one workload's trials of all conditions; nothing where all results are equal."""
    outputs = len({trial.output for trial in trials})
    found = {"workload": workload, "cpu": cpu, "clean_trials": {"reached": None}, "outputs": outputs, "trials": trials}
    return shortcomings([found])
