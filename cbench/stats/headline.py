"""Compute the number that represents all trials of a workload, and its interval; or report why there is none.

Each process contributes its floor if the floors of all processes repeat, otherwise the robust center of its trials.
Calibrated cycles are reported only from trials in which no other task ran and whose chains agree on a core that is not
shared, and only if there are enough of these: on a machine that is busy with other work, the few trials that seem
undisturbed are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from cbench.model import DISAGREE, SHARED, SWITCH, TASK, Calibration, ChainTimes, Counter, Trial
from cbench.stats import chains
from cbench.stats.center import Center, across, center
from cbench.stats.summary import by_chance, floor

ON_FLOOR = 0.05
"""A floor repeats if at least this share of the undisturbed trials is on it."""
SLOWER = 1.01
KEPT_SHARE, KEPT_LEAST = 0.05, 30
"""With fewer kept trials than this share or number, cycles are unknown. Of fewer than 60 trials, half are enough."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The number that represents all trials, its interval, and its derivation `how`. If there is no headline, `value`
    and `interval` are None, and `how` gives the reason.
    """

    value: float | None
    unit: str
    interval: tuple[float, float] | None
    how: str


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """The figures of the calibration over all processes.

    `uncertainty`: half the headline's interval as a share of its value, None if there is no interval. `resolution`: the
    relative reading resolution of chains and trial. `disagree`, `shared`, `switched`: the shares of trials whose chains
    disagree, of trials on a shared core, and of other trials in which another task ran. `ticks_per_cycle`: median of
    the kept trials; the frequencies and `value_ns`, the headline as a time, are None if unknown. `shared_times`: the
    factor by which the wide chains took longer while the core was shared, None if it never was. `below`: the share of
    kept trials at a frequency more than 1 % below `high_hz`. `why`: the reason why too few trials are kept, "" if there
    is a headline.
    """

    length: int
    step: int
    trials: int
    kept: int
    disagree: float
    shared: float
    switched: float
    shared_times: float | None
    resolution: float
    uncertainty: float | None
    ticks_per_cycle: float | None
    hz: float | None
    low_hz: float | None
    high_hz: float | None
    below: float | None
    value_ns: float | None
    why: str


def headline(processes: Sequence[Sequence[Trial]], base: Sequence[Sequence[Trial]], counter: Counter) -> Headline:
    """The headline over all processes. `processes`: the trials of each process; `base`: the trials of each process from
    which its floor is derived.
    """
    if counter.calibration:
        return _calibrated(processes, counter, counter.calibration)
    step = counter.quantum or 1
    floors = [_floor([trial.value for trial in trials], step) for trials in base]
    known = [each for each in floors if each is not None]
    if len(known) == len(floors) and known:
        ends = min(known), max(known)
        where = "the floor" if len(known) == 1 else f"the median of {len(known)} processes' floors"
        return Headline(median(known), counter.unit, (float(ends[0]), float(ends[1])), where)
    values = [[trial.value for trial in trials] for trials in base if trials]
    if not values:
        return Headline(
            None,
            counter.unit,
            None,
            "cannot tell: the counter did not run all the time in any trial; use another --counter",
        )
    return _centers(values, step, counter.unit, "trials")


def _floor(values: Sequence[int], step: int) -> int | None:
    lowest = floor(values)
    if lowest is None or by_chance(values, lowest, step):
        return None
    return lowest if sum(abs(value - lowest) <= step for value in values) >= ON_FLOOR * len(values) else None


def _centers(values: Sequence[Sequence[float]], resolution: float, unit: str, which: str) -> Headline:
    each = [center(process, resolution) for process in values]
    found: Center = each[0] if len(each) == 1 else across(each)
    total = sum(map(len, values))
    how = f"where {total:,} {which} lie densest"
    if len(each) > 1:
        how = f"the median of {len(each)} processes, each where its {which} lie densest ({total:,})"
    return Headline(found.value, unit, (found.low, found.high), how)


def needed(count: int) -> int:
    """The minimum number of kept trials among `count` trials."""
    return max(ceil(KEPT_SHARE * count), min(KEPT_LEAST, ceil(count / 2)))


def _calibrated(processes: Sequence[Sequence[Trial]], counter: Counter, calibration: Calibration) -> Headline:
    if calibration.obstacle:
        return Headline(None, counter.unit, None, f"cannot tell: {calibration.obstacle}")
    usable = [[trial for trial in trials if chains.kept(trial)] for trials in processes]
    enough = [kept for kept, trials in zip(usable, processes, strict=True) if len(kept) >= needed(len(trials))]
    if 2 * len(enough) <= len(processes) and len(enough) < len(processes):
        return Headline(None, counter.unit, None, f"cannot tell: {why_not(processes, calibration)}")
    times = [[trial.chains for trial in _undisturbed(kept) if trial.chains] for kept in enough]
    values = [[chains.cycles(each, calibration) for each in process] for process in times]
    resolution = max(
        median(row) * resolution_of(process, calibration) for row, process in zip(values, times, strict=True)
    )
    return _centers(values, resolution, counter.unit, "trials with agreeing chains")


def _undisturbed(kept: list[Trial]) -> list[Trial]:
    """The kept trials without a known interruption if there are enough of these, otherwise all kept trials.

    A small number is enough: nearly all trials that last about as long as the kernel's tick are interrupted, and a
    required share would be reached by one process and missed by the next.
    """
    clean = [trial for trial in kept if not trial.causes]
    return clean if len(clean) >= min(KEPT_LEAST, ceil(len(kept) / 2)) else kept


def interrupted_share(processes: Sequence[Sequence[Trial]]) -> float:
    """The share of trials with a known interruption among the trials from which the calibrated headline is computed; 0
    if no process keeps enough trials.
    """
    usable = [[trial for trial in trials if chains.kept(trial)] for trials in processes]
    enough = [kept for kept, trials in zip(usable, processes, strict=True) if len(kept) >= needed(len(trials))]
    used = [trial for kept in enough for trial in _undisturbed(kept)]
    return sum(bool(trial.causes) for trial in used) / len(used) if used else 0.0


def resolution_of(times: Sequence[ChainTimes], calibration: Calibration) -> float:
    """The relative change in a trial's cycles if both readings of the clock move by half a step; 1 if there are no
    trials.
    """
    if not times:
        return 1.0
    ticks, both = median(each.ticks for each in times), median(each.before + each.after for each in times)
    return calibration.step / 2 * (1 / ticks + 1 / both) if ticks and both else 1.0


def figures(
    processes: Sequence[Sequence[Trial]], calibration: Calibration, found: Headline, rates: Sequence[float | None]
) -> CalibrationFigures:
    """The figures of the calibration. `rates`: the clock's ticks per second in each process, None if unknown."""
    usable = [trial.chains for trials in processes for trial in trials if trial.chains and chains.kept(trial)]
    shared, disagree, switched = shares(processes)
    ticks = sorted((each.before + each.after - 2 * calibration.edge) / (2 * each.length) for each in usable)
    known = [rate for rate in rates if rate]
    rate = median(known) if known and ticks else None
    last = len(ticks) - 1
    low, middle, high = (ticks[round(share * last)] for share in (0.05, 0.5, 0.95)) if ticks else (0.0, 0.0, 0.0)
    width = None if found.interval is None else found.interval[1] - found.interval[0]
    return CalibrationFigures(
        length=calibration.length,
        step=calibration.step,
        trials=sum(map(len, processes)),
        kept=len(usable),
        disagree=disagree,
        shared=shared,
        switched=switched,
        shared_times=_shared_times(processes, usable),
        resolution=resolution_of(usable, calibration),
        uncertainty=None if width is None or not found.value else width / 2 / found.value,
        ticks_per_cycle=middle if ticks else None,
        hz=rate / middle if rate else None,
        low_hz=rate / high if rate else None,
        high_hz=rate / low if rate else None,
        below=sum(each > low * SLOWER for each in ticks) / len(ticks) if ticks else None,
        value_ns=found.value * middle * 1e9 / rate if rate and found.value is not None else None,
        why=why_not(processes, calibration) if found.value is None else "",
    )


def _shared_times(processes: Sequence[Sequence[Trial]], usable: Sequence[ChainTimes]) -> float | None:
    beside = [
        chains.wide_ratio(trial.chains)
        for trials in processes
        for trial in trials
        if trial.chains and any(cause.kind == SHARED for cause in trial.causes)
    ]
    return median(beside) / median(map(chains.wide_ratio, usable)) if beside and usable else None


def why_not(processes: Sequence[Sequence[Trial]], calibration: Calibration) -> str:
    """The reason why too few trials are kept."""
    times = [[trial.chains for trial in trials if trial.chains] for trials in processes]
    reasons = [chains.marks(each, calibration.step, calibration.machine)[1] for each in times]
    total = sum(map(len, processes))
    shared, disagree, switched = shares(processes)
    kept = sum(chains.kept(trial) for trials in processes for trial in trials)
    line = f"only {kept:,} of {total:,} trials can be used (the chains of {disagree:.0%} disagree, {shared:.0%} ran "
    line += f"alongside another thread of the core, another task ran in {switched:.0%})"
    line += "; use another CPU, or shorter or more trials"
    known = [reason for reason in reasons if reason]
    return f"{known[0]}; {line}" if known else line


def shares(processes: Sequence[Sequence[Trial]]) -> tuple[float, float, float]:
    """The shares of all trials: those on a shared core, those whose chains disagree, and those of neither kind in which
    another task ran.
    """
    causes = [{cause.kind for cause in trial.causes} for trials in processes for trial in trials]
    shared, disagree = (sum(mark in kinds for kinds in causes) for mark in (SHARED, DISAGREE))
    switched = sum(bool(kinds & {SWITCH, TASK}) and not kinds & {SHARED, DISAGREE} for kinds in causes)
    return shared / len(causes), disagree / len(causes), switched / len(causes)


def calibrated_verdict(found: Headline, figures: CalibrationFigures) -> str:
    """Two lines of text: the resolution of the cycles, and the reason why some trials are omitted. One line if there is
    no headline: the reason.
    """
    if found.value is None:
        return found.how
    share = f"{100 * (figures.uncertainty or 0):.2g} %"
    first = f"repeats to ±{share}, half the width of its interval; the clock resolves {100 * figures.resolution:.2g} %"
    left_out = figures.trials - figures.kept
    if not left_out:
        return f"{first}\nthe chains of every trial agree"
    times = f" (wide chains took {figures.shared_times:.3g} times as long)" if figures.shared_times else ""
    reasons = [
        f"{round(share * figures.trials):,} {words}"
        for share, words in (
            (figures.disagree, "because their chains disagree (interrupted, or the frequency changed)"),
            (figures.shared, f"because the core was shared with another thread{times}"),
            (figures.switched, "because another task ran within them, or the work gave up the CPU"),
        )
        if share
    ]
    return f"{first}\n{left_out:,} left out: {', '.join(reasons)}"
