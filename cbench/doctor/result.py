"""Define the result of `cbench doctor` as frozen values for `--json` and the text."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cbench.doctor.measure import Examination, Examined
from cbench.doctor.remedies import RemedyGain, remedies, shared_trials
from cbench.machine.describe import HostFacts, describe
from cbench.measure.result import workload_result
from cbench.model import CausesSource, Counter
from cbench.stats import settling
from cbench.stats.chains import kept, unmarked
from cbench.stats.detectable import ALPHA, Detectable, detectable, one_after_the_other
from cbench.stats.headline import headline as headline_of
from cbench.stats.headline import resolution_of

FEW = 16
"""With fewer processes, the sample may lack a rare outlier."""
FINE = 0.001
"""The difference, as a share, for which the required number of processes is reported."""


@dataclass(frozen=True, slots=True)
class SpreadFigures:
    """Ranges as shares of the median. `within`: the interquartile range of a process's kept trials (median over the
    processes); `between`: the interquartile range of the processes' numbers; `range`: the full range of these numbers.
    `trials`: the number of trials per process.
    """

    within: float
    between: float
    trials: int
    processes: int
    range: float


@dataclass(frozen=True, slots=True)
class CoreFacts:
    """Facts about the measured core. `others_busy`, `sibling_busy`: shares of the time in which the other CPUs, and
    this core's other threads, were busy; None if there are none.

    `shared_trials`: the share of trials during which another thread ran on the core; None if trials have no chains.
    """

    cpu: int
    isolated: bool
    siblings: tuple[int, ...]
    sibling_busy: float | None
    others_busy: float | None
    shared_trials: float | None


@dataclass(frozen=True, slots=True)
class FrequencyRange:
    """The core's frequency according to the calibrations: the median and the range over the kept trials."""

    hz: float
    low_hz: float
    high_hz: float


@dataclass(frozen=True, slots=True)
class OneAfterTheOther:
    """Comparisons of equal code in which all of A ran before B: their number (`of`), and how many of them reported a
    difference (`called`).
    """

    called: int
    of: int

    @property
    def drifts(self) -> bool:
        """Whether at least two comparisons, and more than twice the share that chance explains, report a difference."""
        return self.called >= 2 and self.called > 2 * ALPHA * self.of


@dataclass(frozen=True, slots=True)
class DoctorResult:
    """The result of `cbench doctor`.

    `step_share`: the resolution of a process's number as a share of it, None if unknown. `detectable_time`: the same as
    `detectable`, for the median times of the same processes; None unless their numbers are calibrated cycles.
    `processes_for_0_1_percent`: None if too many are needed. `states`: "" if the processes do not fall into two groups.
    `not_told`: the reason for using the medians of all trials, "" if the headlines are used. `frequency`: None if
    unknown. `kept_trials`: the share of trials that were not discarded, 1 unless the numbers are calibrated cycles;
    `disturbed_trials`: the share with a known interruption. `causes`: the number of trials with each cause.
    `stolen_share`: None if the kernel does not report it.
    """

    verdict: str
    counter: Counter
    step_share: float | None
    host: HostFacts
    detectable: Detectable
    detectable_time: Detectable | None
    processes_for_0_1_percent: int | None
    one_after_the_other: OneAfterTheOther
    spread: SpreadFigures
    states: str
    disturbed_trials: float
    kept_trials: float
    causes: Mapping[str, int]
    causes_from: CausesSource
    stolen_share: float | None
    core: CoreFacts
    frequency: FrequencyRange | None
    not_told: str
    remedies: tuple[RemedyGain, ...]
    headlines: tuple[float, ...]
    seconds: float


def doctor_result(found: Examination, processes: int, seed: int) -> DoctorResult:
    """The result of an examination: its figures, and the verdict in one line. `processes`: processes per side of a
    comparison.
    """
    each = found.processes
    headlines = tuple(value for one in each if (value := found.headline_of(one)) is not None)
    sessions = [one.result.session for one in each]
    counter = sessions[0].counter
    middle = median(headlines)
    step = _step(found, middle)
    # A calibrated headline is a mean of trials with readings anywhere between two steps, so it is finer than one step.
    finest = 0.0 if counter.calibration and found.has_headlines else step or 0.0
    visible = detectable(headlines, processes, seed, finest)
    by_time = counter.calibration is not None and not found.has_headlines
    times = [one.median for one in each] if counter.calibration and found.has_headlines else []
    trials = [trial for one in each for trial in one.result.trials]
    stolen = [session.stolen_ms for session in sessions if session.stolen_ms is not None]
    interruptions = [unmarked(trial) for trial in trials]
    causes = Tally(cause.text for row in interruptions for cause in row)
    needed = visible.processes_for(FINE)
    two = settling.states([round(value) for value in headlines], counter.quantum or 1)
    return DoctorResult(
        verdict=verdict(visible, needed, len(headlines), "time" if by_time else counter.unit),
        counter=counter,
        step_share=step,
        host=describe([found.cpu], found.isolated),
        detectable=visible,
        detectable_time=detectable(times, processes, seed, (counter.quantum or 1) / median(times)) if times else None,
        processes_for_0_1_percent=needed,
        one_after_the_other=OneAfterTheOther(*one_after_the_other(headlines, processes)),
        spread=SpreadFigures(
            within=median(quartile_range(_kept_values(one)) for one in each) / middle,
            between=quartile_range(headlines) / middle,
            trials=len(each[0].result.trials),
            processes=len(each),
            range=(max(headlines) - min(headlines)) / middle,
        ),
        states=two.text(counter.unit).replace("trial", "process") if two else "",
        disturbed_trials=sum(map(bool, interruptions)) / len(trials),
        kept_trials=sum(map(kept, trials)) / len(trials) if counter.calibration else 1.0,
        causes=dict(causes.most_common()),
        causes_from=sessions[0].causes,
        stolen_share=sum(stolen) / (1000 * found.seconds) if stolen else None,
        core=CoreFacts(
            cpu=found.cpu,
            isolated=found.cpu in found.isolated,
            siblings=tuple(sorted(found.siblings)),
            sibling_busy=_mean([one.sibling_busy for one in each]),
            others_busy=_mean([one.others_busy for one in each]),
            shared_trials=_mean([shared_trials(one) for one in each]),
        ),
        frequency=_frequency(found),
        not_told="" if found.has_headlines else headline_of([one.result.trials for one in each], [], counter).how,
        remedies=remedies(found, visible, seed, finest),
        headlines=headlines,
        seconds=found.seconds,
    )


def verdict(visible: Detectable, needed: int | None, measured: int, unit: str) -> str:
    """The verdict in one line; `measured`: the number of processes that support it; `unit`: their numbers' unit."""
    line = (
        f"differences below {percent(visible.difference)} in pure computation, measured in {unit}, are lost in the "
        f"noise here with {visible.processes} processes (A/A)"
    )
    if visible.difference > FINE:
        number = "too many" if needed is None else f"about {needed:,}"
        line += f"; {percent(FINE)} would need {number} processes"
    if measured < FEW:
        line += f"; not reliable: only {measured} of at least {FEW} processes have a number"
    return line


def percent(share: float) -> str:
    """The share as a percentage: with up to two significant digits below 10 %, such as "0.62 %", else as a whole
    number.
    """
    value = 100 * share
    return f"{value:.2g} %" if value < 10 else f"{value:,.0f} %"


def quartile_range(values: Sequence[float]) -> float:
    """The interquartile range of the values; quartiles are selected by rank."""
    ordered = sorted(values)
    return ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4]


def _kept_values(one: Examined) -> list[int]:
    """The values of the kept trials, or of all trials if none can be kept."""
    trials = one.result.trials
    return [trial.value for trial in trials if kept(trial)] or [trial.value for trial in trials]


def _step(found: Examination, middle: float) -> float | None:
    """The resolution of a process's number, as a share of it; None if unknown."""
    counter = found.processes[0].result.session.counter
    if counter.calibration:
        chains = [t.chains for one in found.processes for t in one.result.trials if t.chains and kept(t)]
        return resolution_of(chains, counter.calibration) if chains else None
    return None if counter.quantum is None else counter.quantum / middle


def _frequency(found: Examination) -> FrequencyRange | None:
    """The frequency of the CPU, from the calibrations of all processes; None if unknown."""
    figures = [workload_result(one.result, True).calibration for one in found.processes]
    known = [each for each in figures if each and each.hz and each.low_hz and each.high_hz]
    if not known:
        return None
    hz = median(each.hz or 0.0 for each in known)
    return FrequencyRange(hz, min(each.low_hz or hz for each in known), max(each.high_hz or hz for each in known))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
