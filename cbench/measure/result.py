"""Define the result of a measurement as frozen values for `--json`, the tables and the notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

from cbench.machine.describe import HostFacts
from cbench.measure import layout
from cbench.measure.cause_counts import CauseCount, PollutedTrial, cause_counts, polluted_trials
from cbench.model import INTERRUPT, CausesSource, Counter, Params, Result, Session, Trial
from cbench.results import LEFT_OUT
from cbench.stats import settling
from cbench.stats.chains import kept
from cbench.stats.clean import CAUSES, CHAINS, WORDS, clean, rule_for
from cbench.stats.headline import CalibrationFigures, Headline, calibrated_verdict, figures, headline, interrupted_share
from cbench.stats.summary import Spread, by_level, floor, spread, summarise
from cbench.stats.verdict import verdict
from quiet import table_html

SHOWN = 5
MOSTLY = 0.5
INTERRUPTED = (
    "most of these trials were interrupted: these cycles include the kernel's work; shorter trials include less of it"
)
OWN_CACHES = 256 * 1024
"""The number of bytes that fit into the private first-level and second-level caches of every supported core, which
follow the core's clock.
"""
BEYOND = (
    "memory beyond the core's own caches does not follow its clock: these cycles depend on the frequency; use the time"
)


@dataclass(frozen=True, slots=True)
class SettlingResult:
    """The values of the trials that the first process discarded, minus the overhead if requested, and whether each
    process settled by the rule (None: too few trials were discarded to judge).
    """

    rule: str
    values: tuple[int, ...]
    mispredictions: tuple[int, ...]
    settled: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class CleanTrials:
    """The clean trials of all processes by the rule for this host. `low`, `range`: None if no trial is clean. `each`:
    the number of clean trials in each process. `wanted`, `reached`: None if no number of clean trials was requested.
    """

    rule: str
    means: str
    count: int
    share: float
    low: int | None
    range: int | None
    each: tuple[int, ...]
    wanted: int | None
    reached: bool | None


@dataclass(frozen=True, slots=True)
class CountedEvent:
    """An additionally counted event: the minimum, median and maximum of its counts in the trials, and its count in an
    empty region (`empty`).
    """

    min: int
    median: float
    max: int
    empty: int


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The figures of one process, and the levels of its layout's factors.

    `floor`: None if no value repeats. `clean_range`: None if no trial is clean. `headline`: None if there is none.
    `offset`, `pages`: the levels of its buffer, None if the workload lacks the parameter.
    """

    process: int
    trials: int
    floor: int | None
    median: float
    clean: int
    clean_range: int | None
    headline: float | None
    aslr: int
    environment: int
    stack: int
    offset: int | None = field(default=None, metadata={LEFT_OUT: None})
    pages: int | None = field(default=None, metadata={LEFT_OUT: None})

    @property
    def levels(self) -> dict[str, int]:
        every = {name: getattr(self, name) for name in layout.FACTORS}
        return {name: level for name, level in every.items() if level is not None}


@dataclass(frozen=True, slots=True)
class ProcessesResult:
    """The floor and the median of each process, and the spread of clean trials within and between processes.

    `floor_range`, `floor_range_pct`: the range of the floors, and this range in % of the lowest floor; None if a
    process has no value that repeats. `lowest_range`: the range of the lowest values. `spread`: None if fewer than two
    processes have two clean trials. `by_level`: for each layout factor, the median of the lowest values at each level;
    {} if the levels cannot be compared.
    """

    each: tuple[ProcessResult, ...]
    floor_range: int | None
    floor_range_pct: float | None
    lowest_range: int
    spread: Spread | None
    by_level: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The result of one workload on one CPU, in the counter's unit. `p90`, `p99`, `max`: differences from the mode.

    `output`: the value that every trial returned, None if `outputs`, the number of different values, exceeds 1.
    `floor`: the lowest value that repeats, None if none does. `overhead_subtracted`: the amount subtracted from every
    trial's value. `settled`: whether the first process settled, None if it discarded too few trials to judge.
    `stolen_ms`: None if unknown.
    """

    workload: str
    params: Params
    cpu: int
    isolated: bool
    trials: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    output: int | None
    outputs: int
    floor: int | None
    mode: int
    mode_count: int
    at_floor: int
    near_floor: int
    min: int
    range: int
    p90: int
    p99: int
    max: int
    overhead_subtracted: int
    warmup: int
    settled: bool | None
    settling: SettlingResult
    polluted: tuple[PollutedTrial, ...]
    causes: tuple[CauseCount, ...]
    causes_from: CausesSource
    clean: int
    clean_trials: CleanTrials
    with_context_switch: int
    with_interrupt: int
    with_page_fault: int
    with_migration: int
    counts: Mapping[str, CountedEvent]
    counter: Counter
    processes: ProcessesResult
    memory_locked: str
    addresses: str
    pages: str
    stolen_ms: int | None
    verdict: str
    headline: Headline
    calibration: CalibrationFigures | None = field(metadata={LEFT_OUT: None})

    @property
    def kept_values(self) -> list[int]:
        """The values that count: for calibrated cycles, the values of the kept trials; otherwise of all trials."""
        left_out = {each.trial for each in self.polluted if each.left_out}
        return [value for number, value in enumerate(self.trials) if number not in left_out]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The whole result of `cbench run`, with its counter and host."""

    counter: Counter
    host: HostFacts
    results: tuple[WorkloadResult, ...]

    def _repr_html_(self) -> str:
        head = ("workload", "CPU", "trials", "floor", "mode", "90th percentile", "range", "clean", "polluted")
        rows = [
            (r.workload, f"{r.cpu}", len(r.trials), r.floor, r.mode, f"{r.p90:+,}", r.range, r.clean, len(r.polluted))
            for r in self.results
        ]
        return table_html(self.counter.unit, head, rows, [f"CPU {r.cpu}: {r.verdict}" for r in self.results])


def run_result(results: Sequence[Result], host: HostFacts, subtract: bool = False) -> RunResult:
    """The result of `cbench run`. `subtract`: whether to subtract the lowest value of an empty timed region from every
    trial's value.
    """
    workloads = tuple(workload_result(result, host.virtual, subtract) for result in results)
    return RunResult(results[0].session.counter, host, workloads)


def workload_result(result: Result, virtual: bool, subtract: bool = False) -> WorkloadResult:
    """The figures and the verdict of one workload on one CPU."""
    session = result.session
    counter = session.counter
    overhead = (counter.overhead or 0) if subtract else 0
    trials = [replace(trial, value=max(trial.value - overhead, 0)) for trial in result.trials]
    values = tuple(trial.value for trial in trials)
    quantum = counter.quantum or 1
    rule = rule_for(counter.unit, virtual)
    summary = summarise(values, quantum, [trial.value for trial in _floors_from(trials, rule)])
    processes = _divided(result, trials, rule)
    own = [process.trials for process in processes]
    best = headline(own, [_floors_from(process, rule) for process in own], counter)
    calibrated = None
    if counter.calibration:
        calibrated = figures(own, counter.calibration, best, [each.ticks_per_second for each in result.sessions])
    outputs = sorted({trial.output for trial in trials})
    verdict_words = (
        calibrated_verdict(best, calibrated) if calibrated else verdict(trials, summary, counter.unit, quantum, virtual)
    )
    words = [verdict_words, *_remarks(result, trials, len(outputs))]
    return WorkloadResult(
        workload=result.workload.name,
        params=dict(result.params),
        cpu=result.cpu,
        isolated=result.isolated,
        trials=values,
        first=values[:SHOWN],
        last=values[-SHOWN:],
        output=outputs[0] if len(outputs) == 1 else None,
        outputs=len(outputs),
        floor=summary.floor,
        mode=summary.mode,
        mode_count=summary.mode_count,
        at_floor=summary.at_floor,
        near_floor=summary.near_floor,
        min=summary.minimum,
        range=summary.range,
        p90=summary.p90,
        p99=summary.p99,
        max=summary.max,
        overhead_subtracted=overhead,
        warmup=len(session.settling.values),
        settled=settled(session),
        settling=SettlingResult(
            settling.RULE,
            tuple(max(value - overhead, 0) for value in session.settling.values),
            session.settling.mispredictions,
            tuple(settled(each) for each in result.sessions),
        ),
        polluted=polluted_trials(trials, calibrated is not None),
        causes=cause_counts(trials),
        causes_from=session.causes,
        clean=sum(not trial.polluted for trial in trials),
        clean_trials=_clean_trials(processes, rule, result.wanted_clean),
        with_context_switch=sum(trial.context_switches > 0 for trial in trials),
        with_interrupt=sum(
            bool(trial.interrupts) or any(part.kind == INTERRUPT for part in trial.traced or ()) for trial in trials
        ),
        with_page_fault=sum(trial.page_faults > 0 for trial in trials),
        with_migration=sum(trial.migrated for trial in trials),
        counts={
            name: CountedEvent(min(counts), median(counts), max(counts), empty)
            for name, empty in zip(counter.others, counter.baseline, strict=True)
            for counts in [[trial.counts[name] for trial in trials]]
        },
        counter=counter,
        processes=_processes(processes),
        memory_locked=session.locked,
        addresses=", ".join(sorted({each.addresses for each in result.sessions})),
        pages=", ".join(sorted({each.pages for each in result.sessions})),
        stolen_ms=_sum([each.stolen_ms for each in result.sessions]),
        verdict="\n".join(words),
        headline=best,
        calibration=calibrated,
    )


def settled(session: Session) -> bool | None:
    """Whether the discarded trials had settled; None if they were too few to judge."""
    return session.settling.settled if len(session.settling.values) >= 2 * settling.WINDOW else None


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _remarks(result: Result, trials: Sequence[Trial], outputs: int) -> list[str]:
    """The caveats that apply to the numbers of a result; often none."""
    lines: list[str] = []
    counter = result.session.counter
    if counter.calibration and result.params.get("size", 0) * result.workload.buffers > OWN_CACHES:
        lines.append(BEYOND)
    if counter.calibration and interrupted_share([trials]) > MOSTLY:
        lines.append(INTERRUPTED)
    if outputs > 1:
        lines.append(f"non-deterministic: {outputs:,} different results, so the trials did different work")
    if unsettled := [each for each in result.sessions if settled(each) is False]:
        lines.append(f"not settled after {len(unsettled[0].settling.values):,} discarded trials")
    if len(result.sessions) == 1:
        numbers = [number for number, trial in enumerate(trials) if trial.valid and not trial.polluted]
        states = settling.states([trials[number].value for number in numbers], counter.quantum or 1)
        if states:
            lines.append(states.text(counter.unit, numbers[states.first_change]))
    return lines


@dataclass(frozen=True, slots=True)
class _Process:
    """The reported trials of one process, the values of its clean trials, its floor and its headline."""

    session: Session
    trials: Sequence[Trial]
    clean: Sequence[int]
    floor: int | None
    headline: Headline


def _divided(result: Result, trials: Sequence[Trial], rule: str) -> list[_Process]:
    """The processes of a result, each judged by its own floor."""
    processes: list[_Process] = []
    rest = iter(trials)
    for session in result.sessions:
        mine = list(islice(rest, len(session.trials)))
        lowest = floor([trial.value for trial in _floors_from(mine, rule)])
        values = [trial.value for trial in clean(mine, result.session.counter.quantum or 1, rule)]
        own = headline([mine], [_floors_from(mine, rule)], session.counter)
        processes.append(_Process(session, mine, values, lowest, own))
    return processes


def _floors_from(trials: Sequence[Trial], rule: str) -> list[Trial]:
    """The valid trials from which a floor is derived: with calibrated cycles, the kept trials if there are any; if
    causes are known, the trials without a cause, provided that two of them agree; otherwise all.
    """
    valid = [trial for trial in trials if trial.valid]
    if rule == CHAINS:
        return [trial for trial in valid if kept(trial)] or valid
    undisturbed = [trial for trial in valid if not trial.polluted]
    return undisturbed if rule == CAUSES and floor([trial.value for trial in undisturbed]) is not None else valid


def _width(values: Sequence[int]) -> int | None:
    return max(values) - min(values) if values else None


def _clean_trials(processes: Sequence[_Process], rule: str, wanted: int | None) -> CleanTrials:
    values = [value for process in processes for value in process.clean]
    each = tuple(len(process.clean) for process in processes)
    total = sum(len(process.trials) for process in processes)
    return CleanTrials(
        rule=rule,
        means=WORDS[rule],
        count=len(values),
        share=len(values) / total if total else 0.0,
        low=min(values, default=None),
        range=_width(values),
        each=each,
        wanted=wanted,
        reached=None if wanted is None else all(count >= wanted for count in each),
    )


def _processes(processes: Sequence[_Process]) -> ProcessesResult:
    levels = [layout.levels(each.session.layout, each.session.params) for each in processes]
    lowest = [min(trial.value for trial in process.trials) for process in processes]
    floors = [process.floor for process in processes if process.floor is not None]
    width = _width(floors) if len(floors) == len(processes) else None
    return ProcessesResult(
        each=tuple(
            ProcessResult(
                number,
                len(process.trials),
                process.floor,
                median(trial.value for trial in process.trials),
                len(process.clean),
                _width(process.clean),
                process.headline.value,
                **levels[number],
            )
            for number, process in enumerate(processes)
        ),
        floor_range=width,
        floor_range_pct=None if width is None else 100 * width / min(floors) if min(floors) else 0.0,
        lowest_range=max(lowest) - min(lowest),
        spread=spread([process.clean for process in processes]),
        by_level={name: by_level([each[name] for each in levels], lowest) for name in levels[0]},
    )
