"""Read a store of `cbench run`; reject stores of studies and screening experiments, which have separate commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from statistics import median

from cbench.formats.content import Content
from cbench.formats.reader import ResultReader, TestSample, plugin_interruptions
from cbench.machine import passport
from cbench.model import CALIBRATED_UNIT, INTERRUPT, Calibration, Trial
from cbench.stats.chains import MARKS, kept
from cbench.stats.headline import needed, resolution_of
from cbench.store.database import reading, study_kind
from cbench.store.groups import Group, grouped, layout
from cbench.store.kind import is_store
from cbench.store.records import NO_CPU, Stored, StoredSeries
from cbench.store.store import Store
from quiet import UsageError

STUDIES = {
    "order": "the store of a study: `cbench order analyze {path}` compares its orders",
    "screen": "the store of a screening experiment: `cbench screen analyze {path}` compares its treatments",
}
"""The error text for a store, by the kind of its study. It names the command that analyzes the store."""


class StoreReader(ResultReader):
    """Each combination of test, counter and CPU in a file of `cbench run --output` is a sample, with the values of its
    processes.
    """

    name = "a store of cbench"
    lists_orders = True
    lists_treatments = True

    def matches(self, content: Content) -> bool:
        return is_store(content.path)

    def read(self, content: Content) -> tuple[TestSample, ...]:
        path = content.path
        with Store.open(path) as store, reading(path):
            groups = [_of_group(group) for group in grouped(store.series())]
        if groups:
            return tuple(groups)
        kind = study_kind(path)
        raise UsageError(f"{path}: {STUDIES.get(kind or '', 'contains no trials').format(path=path)}")


def _of_group(group: Group) -> TestSample:
    """The sample of a group. For calibrated cycles, its values are the kept trials of the processes that have enough of
    them, or all trials if no process does.
    """
    host = group.series[0].run.host
    every, cannot_tell = list(group.processes), ""
    if group.unit == CALIBRATED_UNIT:
        agreeing = [(each, replace(each, trials=tuple(t for t in each.trials if kept(t.trial)))) for each in every]
        enough = [some for each, some in agreeing if some.trials and len(some.trials) >= needed(len(each.trials))]
        cannot_tell = "" if enough else "the chains of too few trials agree on an unshared core"
        every = enough or every
    processes = [each.trials for each in every]
    begun = [each.begun_ns for each in every]
    passports = [passport.Passport.parse(series.run.host, group.counter) for series in group.series]
    return TestSample(
        name=group.name,
        test=group.test,
        workload=group.series[0].workload,
        unit=group.unit,
        quantum=max(*(series.quantum for series in group.series), _resolution(group, processes)),
        cpu=None if group.cpu == NO_CPU else group.cpu,
        host=" ".join(str(host.get("cpu") or "").split()),
        processes=tuple(tuple(each.value for each in trials) for trials in processes),
        clean=tuple(tuple(each.value for each in trials if not each.polluted) for trials in processes),
        cut_short=sum(series.ended_ns is None and not series.each_trial for series in group.series),
        counter=group.counter,
        cannot_tell=cannot_tell,
        method=" or ".join(sorted({str(series.counter.get("method") or "") for series in group.series} - {""})),
        begun=tuple(at for at in begun if at is not None) if None not in begun else (),
        passport=passport.merged([each for each in passports if each is not None]),
        interruptions=_interruptions(group, [each.trial for trials in processes for each in trials]),
        more_processes=_more_processes(group.series[0]),
    )


def _more_processes(series: StoredSeries) -> str:
    """Advice on how to get more processes with the program that measured the series."""
    if "interrupted" in series.facts:
        return "run pytest {n} times, with the same --cbench-store=FILE"
    if "comparison" in series.facts:
        return "cbench ab --layouts {n}" if layout(series, series.trials[0]) else "cbench ab --blocks {n}"
    return "cbench run --trials {n} -- COMMAND" if series.each_trial else "cbench run --processes {n}"


def _interruptions(group: Group, trials: Sequence[Trial]) -> Counter[str]:
    """The number of interruptions by cause: the interrupted trials, plus the pytest plugin's counts for whole
    processes.
    """
    causes = {
        (at, each.kind, each.name if each.kind == INTERRUPT else "")
        for at, trial in enumerate(trials)
        for each in trial.causes
        if each.kind not in MARKS
    }
    found = Counter(f"{kind} {name}".rstrip() for _, kind, name in causes)
    for series in group.series:
        counted = series.facts.get("interrupted", {})
        found += plugin_interruptions(counted, counted.get("interrupts") or {})
    return found


def _resolution(group: Group, processes: Sequence[Sequence[Stored]]) -> int:
    """The uncertainty of a calibrated value due to the clock's steps, in cycles; 0 for counted values."""
    known = [series.counter.get("calibration") for series in group.series]
    timed = [each.trial.chains for trials in processes for each in trials if each.trial.chains]
    if not timed or not known[0]:
        return 0
    return ceil(
        resolution_of(timed, Calibration(**known[0])) * median(each.value for trials in processes for each in trials)
    )
