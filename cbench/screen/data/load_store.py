"""Read a screening experiment's store: the plan and every trial that has ended.

In the terms of a study (cbench/study/store.py), a treatment with a workload is a test, an iteration is a run with its
own order, and the run's kind contains its batch: "batch 0". The header's host facts define the tests and batches under
"screen"; the header's source is the text of the experiment's file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cbench.report.text import counted
from cbench.screen.config.file import parse
from cbench.screen.config.model import COLUMNS, SCREEN, Screen, ScreenTest, Treatment
from cbench.screen.config.treatments import batch_number
from cbench.screen.execute import pending_restores
from cbench.store.database import reads_store
from cbench.study import lock
from cbench.study.model import VALUE
from cbench.study.records import Header, RunFacts, StoredRun
from cbench.study.store import StudyStore
from quiet import QuietError

Cell = None | int | float | str


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A trial that has ended. `iteration` counts from 0 within its batch, `position` within its iteration."""

    run: int
    batch: int
    iteration: int
    position: int
    test: int
    treatment: int
    workload: str
    failure: str | None
    begun_ns: int
    ended_ns: int
    values: Mapping[str, float]  # response -> value; empty if the trial failed


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The facts about a batch: boot IDs (several if a reboot interrupted the batch), controlled variables, and
    confirmed levels.
    """

    number: int
    boot_ids: tuple[str, ...]
    controlled: Mapping[str, str]
    confirmed: Mapping[str, str]  # hard factor -> the value that was read back


@dataclass(frozen=True, slots=True)
class StoredScreen:
    """The content of a store. `units`: the unit of each response, "" if it has none; `warnings`: lines for a report;
    `iterations_left`: the number of iterations that are not finished.
    """

    header: Header
    screen: Screen
    treatments: tuple[Treatment, ...]  # only those that are run; a treatment's number is its index
    tests: tuple[ScreenTest, ...]
    batches: tuple[Mapping[str, str], ...]  # levels of the hard factors, per batch
    trials: tuple[StoredTrial, ...]  # in chronological order
    facts: tuple[BatchFacts, ...]  # only batches that have begun
    units: Mapping[str, str]
    warnings: tuple[str, ...]
    iterations_left: int


@reads_store
def read(path: Path) -> StoredScreen:
    """The experiment in a store. Raises UsageError if the store contains no experiment, and QuietError if it is
    damaged.
    """
    with StudyStore.open(path, kind=SCREEN) as store:
        header, runs = store.header(), {run.number: run for run in store.runs()}
        ended, values, known = store.trials(), store.values(), store.run_facts()
        resumed = store.resumed_boots()
    screen = parse(header.source, str(path), header.folder, check=False)
    treatments, tests, batches = plan_of(header, str(path))
    numbers: dict[tuple[int, int], dict[str, float]] = {}
    for run, position, metric, value in values:
        numbers.setdefault((run, position), {})[metric] = value
    places = _places(runs.values())
    trials = tuple(
        StoredTrial(
            run=run,
            batch=places[run][0],
            iteration=places[run][1],
            position=position,
            test=test,
            treatment=tests[test].treatment,
            workload=tests[test].workload,
            failure=failure,
            begun_ns=begun,
            ended_ns=done,
            values=numbers.get((run, position), {}),
        )
        for run, position, test, failure, begun, done in ended
    )
    units = {
        each.name: each.metric.unit or (header.unit if each.metric.source == VALUE else "") for each in screen.responses
    }
    return StoredScreen(
        header=header,
        screen=screen,
        treatments=treatments,
        tests=tests,
        batches=batches,
        trials=trials,
        facts=_facts(known, resumed, places),
        units=units,
        warnings=(*_warnings(path, trials, list(runs.values())), *_set(path)),
        iterations_left=sum(not run.over for run in runs.values()),
    )


@reads_store
def trial_rows(path: Path) -> tuple[list[str], list[str], list[tuple[Cell, ...]]]:
    """The names of all columns, the names of the response columns, and a row for each trial. Raises UsageError and
    QuietError as read() does.
    """
    stored = read(path)
    responses = [response.name for response in stored.screen.responses]
    factors = list(stored.treatments[0].levels) if stored.treatments else []
    columns = [*factors, *COLUMNS[:-3], *responses, *COLUMNS[-3:]]
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


def plan_of(
    header: Header, label: str
) -> tuple[tuple[Treatment, ...], tuple[ScreenTest, ...], tuple[Mapping[str, str], ...]]:
    """The plan in the header: treatments, tests, and the hard factors' levels in each batch. Raises QuietError if the
    plan is damaged.
    """
    try:
        said: Any = header.host["screen"]
        treatments = tuple(
            Treatment(number, tuple(each["numbers"]), each["levels"], each["questionable"], each["unobtainable"])
            for number, each in enumerate(said["treatments"])
        )
        tests = tuple(
            ScreenTest(number, each["treatment"], each["workload"], header.tests[number])
            for number, each in enumerate(said["tests"])
        )
        batches = tuple(dict(levels) for levels in said["batches"])
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise QuietError(f"{label}: damaged: the plan of the experiment is unusable: {error!r}") from None
    return treatments, tests, batches


def _places(runs: Iterable[StoredRun]) -> dict[int, tuple[int, int]]:
    """The batch and the iteration, numbered from 0 within the batch, of each run."""
    counts: dict[int, int] = {}
    places = {}
    for run in runs:
        batch = batch_number(run)
        places[run.number] = (batch, counts.setdefault(batch, 0))
        counts[batch] += 1
    return places


def _facts(
    known: Sequence[RunFacts],
    resumed: Mapping[int, Sequence[str]],
    places: Mapping[int, tuple[int, int]],
) -> tuple[BatchFacts, ...]:
    batches: dict[int, BatchFacts] = {}
    for begun in known:
        number = places[begun.run][0]
        boots = [begun.boot_id, *resumed.get(begun.run, ())]
        if number in batches:
            boots = [*batches[number].boot_ids, *boots]
            batches[number] = replace(batches[number], boot_ids=tuple(dict.fromkeys(boots)))
        else:
            batches[number] = BatchFacts(number, tuple(dict.fromkeys(boots)), begun.controlled, begun.confirmed)
    return tuple(batches.values())


def _set(path: Path) -> list[str]:
    """Warnings about levels that a process left set on this host when it ended."""
    if lock.held(path):
        return []
    try:
        pending = pending_restores.read(pending_restores.place(path))
    except QuietError as error:
        return [str(error)]
    return [f"{each.name} is still set on this host: `cbench screen resume` restores it" for each in pending]


def _warnings(path: Path, trials: Sequence[StoredTrial], runs: Sequence[StoredRun]) -> list[str]:
    warnings = []
    if failed := sum(each.failure is not None for each in trials):
        warnings.append(f"{failed:,} of {len(trials):,} trials failed")
    if lost := [run for run in runs if run.failure]:
        warnings.append(f"{len(lost):,} of {len(runs):,} iterations were left out: {lost[0].failure}")
    if left := sum(not run.over for run in runs):
        warnings.append(
            f"the experiment is not finished: {left:,} of {counted(len(runs), 'iteration')} "
            f"{'is' if left == 1 else 'are'} left; to complete it: cbench screen resume {path}"
        )
    return warnings
