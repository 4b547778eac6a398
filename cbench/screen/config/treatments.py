"""Derive an experiment's treatments with their responses, and the tests and batches that they form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cbench.screen.config.model import (
    BUILT,
    EXCLUDED,
    FRACTION,
    FULL,
    MIXED,
    NO_PROFILER,
    QUESTIONABLE,
    UNOBTAINABLE,
    Response,
    Screen,
    ScreenTest,
    ScreenWorkload,
    Treatment,
    matches,
)
from cbench.screen.design import batches as batching
from cbench.screen.design import factorial, fractional, plackett
from cbench.study import model as study
from cbench.study.instruments import perf_record
from cbench.study.instruments.instrument import NO_CALL_GRAPH, SAMPLES, Sampling
from cbench.study.orders import PlannedRun
from cbench.study.records import StoredRun
from quiet import UsageError

BATCH = "batch "
"""The text before the batch's number in the kind of a run."""
UNSAMPLED = "nothing is sampled: no profiler runs"


def batch_number(run: PlannedRun | StoredRun) -> int:
    """The number of the batch to which an iteration belongs."""
    return int(run.kind.removeprefix(BATCH))


def factors(screen: Screen) -> tuple[factorial.Factor, ...]:
    """The factors as the design modules represent them."""
    return tuple(factorial.Factor(factor.name, factor.names, factor.hard) for factor in screen.factors)


def fraction(screen: Screen) -> fractional.Fraction | plackett.PlackettBurman | None:
    """The requested two-level design; None for a full factorial. Raises UsageError if the design does not exist."""
    names = [factor.name for factor in screen.factors]
    try:
        if screen.design == FULL:
            return None
        if screen.design != FRACTION:
            return plackett.plackett_burman(names, screen.runs)
        if screen.generators:
            return fractional.fraction(names, screen.generators)
        return fractional.best_fraction(names, screen.runs or 1 << (len(names) - 1))
    except ValueError as error:
        raise UsageError(str(error)) from None


def treatments(screen: Screen) -> tuple[Treatment, ...]:
    """The treatments that are run, numbered from 0; in a full factorial, the level of the last factor varies fastest.
    Raises UsageError if the design does not exist, or if no treatments remain.
    """
    chosen = fraction(screen)

    def excluded(numbers: factorial.Treatment) -> bool:
        levels = named(screen, numbers)
        return any(each.kind == EXCLUDED and matches(each.where, levels) for each in screen.constraints)

    try:
        numbers = factorial.full_factorial(factors(screen), excluded) if chosen is None else chosen.treatments
    except ValueError as error:
        raise UsageError(str(error)) from None
    return tuple(_treatment(screen, number, each) for number, each in enumerate(numbers))


def named(screen: Screen, numbers: factorial.Treatment) -> dict[str, str]:
    """The names of a treatment's levels by factor."""
    return {factor.name: factor.names[number] for factor, number in zip(screen.factors, numbers, strict=True)}


def _treatment(screen: Screen, number: int, numbers: factorial.Treatment) -> Treatment:
    levels = named(screen, numbers)
    meant = [each for each in screen.constraints if matches(each.where, levels)]
    missing: dict[str, str] = {}
    if NO_PROFILER in (screen.level(factor, level).profiler for factor, level in levels.items()):
        samples = [each for each in screen.responses if each.metric.source == SAMPLES]
        lacking = [each.name for each in samples if not perf_record.parse(each.metric.detail).call_graph]
        missing = dict.fromkeys(lacking, UNSAMPLED)
    for each in meant:
        if each.kind == UNOBTAINABLE:
            missing |= dict.fromkeys(each.responses, each.reason)
    questionable = "; ".join(dict.fromkeys(each.reason for each in meant if each.kind == QUESTIONABLE))
    return Treatment(number, numbers, levels, questionable, missing)


def obtainable(screen: Screen, treatment: Treatment, workload: ScreenWorkload) -> tuple[Response, ...]:
    """The responses that a treatment measures for a workload."""
    return tuple(
        each for each in screen.responses if workload.name in each.workloads and each.name not in treatment.unobtainable
    )


def tests(screen: Screen, planned: tuple[Treatment, ...]) -> tuple[ScreenTest, ...]:
    """The tests, which are all combinations of treatments and workloads, in the order of the treatments."""
    several = len(screen.workloads) > 1
    pairs = [(treatment, workload.name) for treatment in planned for workload in screen.workloads]
    return tuple(
        ScreenTest(number, treatment.number, name, f"{name} {treatment.name}" if several else treatment.name)
        for number, (treatment, name) in enumerate(pairs)
    )


def study_tests(
    screen: Screen, planned: tuple[Treatment, ...], folder_of: Callable[[Treatment], str]
) -> tuple[study.Test, ...]:
    """The tests in the form in which a study runs them; `folder_of`: the directory of a treatment's build."""
    made = []
    for each in tests(screen, planned):
        workload = {one.name: one for one in screen.workloads}[each.workload]
        treatment = planned[each.treatment]
        made.append(
            study.Test(
                name=each.name,
                command=workload.command,
                workload=workload.workload.replace(BUILT, folder_of(treatment)),
                params=workload.params,
                metrics=tuple(one.metric for one in obtainable(screen, treatment, workload)),
                timeout_s=workload.timeout_s,
                directory=workload.directory,
                sampling=sampled(screen, treatment, workload),
            )
        )
    return tuple(made)


def sampled(screen: Screen, treatment: Treatment, workload: ScreenWorkload) -> Sampling | None:
    """The sampling of a treatment's command by `perf record`; None if the command is not sampled.

    If a factor has profilers, its level decides whether to sample and with which call graph; otherwise, the response
    that counts the samples does. Event and rate come from the level if it names either of them, otherwise from this
    response. Raises UsageError if responses contradict each other or the level.
    """
    counted = {
        perf_record.parse(each.metric.detail)
        for each in obtainable(screen, treatment, workload)
        if each.metric.source == SAMPLES
    }
    if len(counted) > 1:
        raise UsageError(
            f"{treatment.name} is sampled in two ways, but runs under one `perf record`: use one event and rate"
        )
    wanted = next(iter(counted), None)
    profilers = [screen.level(factor, level).profiler for factor, level in treatment.levels.items()]
    level = next((text for text in profilers if text), "")
    if level == NO_PROFILER or not (level or wanted):
        return None
    if not level:
        assert wanted is not None
        return replace(wanted, call_graph=wanted.call_graph or NO_CALL_GRAPH)
    own = perf_record.parse(level)
    if wanted is not None and wanted.call_graph and wanted.call_graph != own.call_graph:
        raise UsageError(f"{treatment.name} is sampled in two ways: use either {own.call_graph} or {wanted.call_graph}")
    if wanted is None or "," in level:
        return own
    return replace(wanted, call_graph=own.call_graph)


def batches(screen: Screen, planned: tuple[Treatment, ...]) -> tuple[batching.Batch, ...]:
    """The batches in the order in which they run, with the numbers of their treatments. Raises UsageError for an
    invalid sequence.
    """
    hard = screen.hard
    sequence = None
    if screen.sequence == (MIXED,):
        sequence = [(level,) for level in batching.boot_sequence(len(hard[0].levels), screen.batches, screen.seed)]
    elif screen.sequence:
        sequence = [(hard[0].names.index(name),) for name in screen.sequence]
    numbers = [each.numbers for each in planned]
    try:
        return batching.batches(factors(screen), numbers, screen.batches, screen.seed, sequence)
    except ValueError as error:
        raise UsageError(str(error)) from None


def levels_of(screen: Screen, batch: batching.Batch) -> dict[str, str]:
    """The names of a batch's levels of the hard factors, by factor."""
    return {factor.name: factor.names[number] for factor, number in zip(screen.hard, batch.levels, strict=True)}


def runs(screen: Screen, planned: tuple[Treatment, ...]) -> list[PlannedRun]:
    """All iterations in chronological order; each runs all tests of its batch once, in a separately drawn order."""
    workloads = len(screen.workloads)
    planned_runs = []
    for batch in batches(screen, planned):
        every = replace(batch, treatments=tuple(t * workloads + w for t in batch.treatments for w in range(workloads)))
        kind = f"{BATCH}{batch.number}"
        planned_runs += [
            PlannedRun(kind, batching.order(every, number, screen.seed)) for number in range(screen.iterations)
        ]
    return planned_runs
