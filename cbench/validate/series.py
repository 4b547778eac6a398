"""Read the measurements of a validation from its store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from cbench.store.database import reads_store
from cbench.study.store import StudyStore
from cbench.validate.plan import ValidationFacts, about
from quiet import UsageError


@dataclass(frozen=True, slots=True)
class ValidationSeries:
    """One workload and one kind of trial, with the values of each metric by run. `kind`: the `read` of the instrument
    that takes samples, "" for trials without samples.

    Runs are in chronological order. `lost`, `throttled`: the numbers of lost samples and of pauses of the sampling that
    the kernel reported, summed over all trials.
    """

    workload: str
    kind: str
    values: dict[str, dict[int, float]]
    lost: int = 0
    throttled: int = 0

    def row(self, metric: str) -> list[float]:
        """The values of a metric in chronological order; [] if it was not read."""
        return [value for _, value in sorted(self.values.get(metric, {}).items())]

    def rows(self, *metrics: str) -> list[list[float]]:
        """The values of each of these metrics, from the trials that have all of them, in chronological order."""
        columns = [self.values.get(metric, {}) for metric in metrics]
        both = sorted(set.intersection(*(set(each) for each in columns)))
        return [[each[run] for run in both] for each in columns]


@dataclass(frozen=True, slots=True)
class ValidationData:
    """The data of a validation, and its progress. `failures`: the test and the reason of failed trials, each pair
    once.
    """

    about: ValidationFacts
    series: tuple[ValidationSeries, ...]
    trials: int
    done: int
    failed: int
    failures: tuple[tuple[str, str], ...]


@reads_store
def read(path: Path) -> ValidationData:
    """Read a validation from its store. Raises UsageError if the file contains none, QuietError if it is damaged."""
    with StudyStore.open(path) as store:
        header, runs, counts = store.header(), store.runs(), store.counts()
        try:
            validation = about(header.source)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        values: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        orders = {run.number: run.order for run in runs}
        for run, position, metric, value in store.values():
            values[orders[run][position]][metric][run] = value
        lost, throttled = defaultdict[int, int](int), defaultdict[int, int](int)
        for samples in store.trial_samples():
            lost[samples.test] += samples.lost
            throttled[samples.test] += samples.throttled
        failures = tuple((header.tests[test], reason) for test, reason in store.failures())
    series = []
    for number, name in enumerate(header.tests):
        workload, _, kind = name.partition(" ")
        series.append(
            ValidationSeries(workload, kind.replace("-", ":", 1), dict(values[number]), lost[number], throttled[number])
        )
    total = sum(len(run.order) for run in runs)
    return ValidationData(validation, tuple(series), total, counts.done, counts.failed, failures)
