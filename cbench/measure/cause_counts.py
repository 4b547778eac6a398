"""Count the causes that disturbed trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cbench.model import Trial
from cbench.results import LEFT_OUT
from cbench.stats.chains import kept


@dataclass(frozen=True, slots=True)
class CauseCount:
    """A cause and the number of trials with it; times (ns) are None if only the counters detected it."""

    cause: str
    trials: int
    total_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class PollutedTrial:
    """A trial's number, from 0, and its causes as text. `left_out`: whether its calibrated cycles do not count."""

    trial: int
    cause: str
    left_out: bool = field(default=False, metadata={LEFT_OUT: False})


def polluted_trials(trials: Sequence[Trial], calibrated: bool = False) -> tuple[PollutedTrial, ...]:
    """The polluted trials. `calibrated`: whether their values are calibrated cycles."""
    return tuple(
        PollutedTrial(number, ", ".join(cause.text for cause in trial.causes), calibrated and not kept(trial))
        for number, trial in enumerate(trials)
        if trial.polluted
    )


def cause_counts(trials: Sequence[Trial]) -> tuple[CauseCount, ...]:
    """The trials' causes by name, the most frequent first."""
    times: dict[str, list[int | None]] = {}
    for trial in trials:
        for cause in trial.causes:
            times.setdefault(cause.text, []).append(cause.ns)
    rows = []
    for text, each in sorted(times.items(), key=lambda item: (-len(item[1]), item[0])):
        known = [ns for ns in each if ns is not None]
        rows.append(CauseCount(text, len(each), sum(known) if known else None, max(known, default=None)))
    return tuple(rows)
