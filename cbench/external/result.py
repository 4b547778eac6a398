"""Define the result of measured commands as frozen values for `--json` and the table."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from cbench.external.measure import CommandSeries, Measured
from cbench.machine.describe import HostFacts, describe
from cbench.measure.cause_counts import CauseCount, PollutedTrial, cause_counts, polluted_trials
from cbench.measure.result import SettlingResult
from cbench.model import Counter, Trial
from cbench.results import LEFT_OUT
from cbench.stats import settling
from cbench.stats.median_ranks import ranks
from cbench.stats.rank import ratio_interval
from quiet import format_cpus

LEVEL = 0.95
RULE = (
    f"the lowest of {settling.WINDOW} trials and the lowest of the {settling.WINDOW} before agree within the "
    f"interquartile range of one of them or {settling.TOLERANCE:.1%}"
)


@dataclass(frozen=True, slots=True)
class MedianEstimate:
    """A median with its 95 % interval, which is None for fewer than 6 values; `how`: the values that it summarizes."""

    value: float
    unit: str
    interval: tuple[float, float] | None
    how: str


@dataclass(frozen=True, slots=True)
class CountRange:
    """Minimum, median and maximum of an additional count."""

    min: int
    median: float
    max: int


@dataclass(frozen=True, slots=True)
class CommandRatio:
    """A command's time divided by that of the first command: median over all pairs, with an interval at `level`."""

    value: float
    interval: tuple[float, float]
    level: float


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of one command, with times in ns.

    Keys shared with `cbench run WORKLOAD --json` have the same meaning. `counts`: a summary of each count over all
    trials. `interrupts`: the total interrupts of the command's CPUs over all trials. `settled`: None if too few trials
    were discarded to decide; `undisturbed`: None if every trial was disturbed; `ratio`: None for the first command.
    """

    workload: str
    command: tuple[str, ...]
    prepare: str
    cpus: str
    pinned: bool
    isolated: bool
    headline: MedianEstimate
    trials: tuple[int, ...]
    min: int
    range: int
    mean: float
    standard_deviation: float | None
    ratio: CommandRatio | None = field(metadata={LEFT_OUT: None})
    undisturbed: MedianEstimate | None
    counts: Mapping[str, CountRange]
    cycles_missing: str
    exit_codes: Mapping[str, int]
    warmup: int
    settled: bool | None
    settling: SettlingResult
    polluted: tuple[PollutedTrial, ...]
    causes: tuple[CauseCount, ...]
    clean: int
    interrupts: Mapping[str, int]
    interrupts_missing: str
    stolen_ms: int | None
    counter: Counter


@dataclass(frozen=True, slots=True)
class CommandsResult:
    """The whole result of `cbench run -- CMD`. `spawn`: the time of an empty program in ns, which every time includes;
    None if unknown.
    """

    counter: Counter
    host: HostFacts
    spawn: MedianEstimate | None
    results: tuple[CommandResult, ...]


def commands_result(measured: Measured) -> CommandsResult:
    """The result with the figures of all commands."""
    first = measured.series[0].trials
    return CommandsResult(
        counter=measured.counter,
        host=describe(measured.cpus, measured.isolated),
        spawn=estimate(measured.empty, "starts of an empty program") if measured.empty else None,
        results=tuple(_command(series, measured, first) for series in measured.series),
    )


def estimate(values: Sequence[int], what: str) -> MedianEstimate:
    """The median of the values, with a rank-based interval."""
    ordered, places = sorted(values), ranks(len(values), LEVEL)
    interval = None if places is None else (float(ordered[places[0] - 1]), float(ordered[places[1] - 1]))
    return MedianEstimate(float(median(values)), "ns", interval, f"median of {len(values):,} {what}")


def _command(series: CommandSeries, measured: Measured, first: Sequence[Trial]) -> CommandResult:
    trials, command = series.trials, series.command
    values = [trial.value for trial in trials]
    clean = [trial.value for trial in trials if not trial.polluted]
    discarded = series.settling.values
    settled = series.settling.settled if len(discarded) >= 2 * settling.WINDOW else None
    stolen = [trial.counts["stolen_ms"] for trial in trials if "stolen_ms" in trial.counts]
    return CommandResult(
        workload=command.text,
        command=command.argv,
        prepare=command.prepare,
        cpus=format_cpus(measured.cpus),
        pinned=measured.pinned,
        isolated=measured.cpus <= measured.isolated,
        headline=estimate(values, "trials"),
        trials=tuple(values),
        min=min(values),
        range=max(values) - min(values),
        mean=fmean(values),
        standard_deviation=stdev(values) if len(values) > 1 else None,
        ratio=None if trials is first else _ratio([trial.value for trial in first], values),
        undisturbed=estimate(clean, "undisturbed trials") if clean else None,
        counts=_ranges(trials),
        cycles_missing=series.cycles_missing,
        exit_codes={str(code): count for code, count in sorted(Tally(trial.output for trial in trials).items())},
        warmup=len(discarded),
        settled=settled,
        settling=SettlingResult(RULE, discarded, (), (settled,)),
        polluted=polluted_trials(trials),
        causes=cause_counts(trials),
        clean=len(clean),
        interrupts=dict(sum((Tally(trial.interrupts) for trial in trials), Tally[str]()).most_common()),
        interrupts_missing=measured.interrupts,
        stolen_ms=sum(stolen) if stolen else None,
        counter=measured.counter,
    )


def _ratio(first: Sequence[int], values: Sequence[int]) -> CommandRatio:
    found = ratio_interval(first, values, 1 - LEVEL)
    return CommandRatio(found.ratio, (found.low, found.high), found.level)


def _ranges(trials: Sequence[Trial]) -> dict[str, CountRange]:
    names = dict.fromkeys(name for trial in trials for name in trial.counts)
    columns = {name: [trial.counts[name] for trial in trials if name in trial.counts] for name in names}
    return {name: CountRange(min(row), median(row), max(row)) for name, row in columns.items()}
