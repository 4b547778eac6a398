"""Judge a validation: summarize each metric of each workload, check the rules, and name the instruments at fault.

D. Flater, NIST TN 1855 (2014), sections 3.5 to 3.8, judges by eye. The rules and limits here are cbench's own, from
face_validity.py, agreement.py, cbench/stats/etalon.py and this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from statistics import fmean, median, stdev

from cbench.results import extended
from cbench.stats.etalon import etalon, first_run
from cbench.stats.interval import Interval
from cbench.study.instruments import perf_record
from cbench.study.instruments.instrument import (
    CPU_CLOCK,
    CYCLES,
    CYCLES_USER,
    PERF_ELAPSED,
    SAMPLES,
    SYS,
    TASK_CLOCK,
    USER,
    WALL,
)
from cbench.study.records import TestFailure
from cbench.validate import verdict
from cbench.validate.agreement import agreement
from cbench.validate.face_validity import (
    TOLERANCE,
    Finding,
    cpu_drop,
    cpu_drop_alone,
    cpu_within_elapsed,
    elapsed_alike,
    pegged,
    user_system_is_clock,
)
from cbench.validate.plan import ETALON, metric_name
from cbench.validate.result import (
    AgreementResult,
    ClockResult,
    FindingResult,
    MetricSummary,
    ValidatedWorkload,
    ValidationResult,
)
from cbench.validate.series import ValidationData, ValidationSeries
from cbench.workloads.programs import CLOCKS

CLOCK_SHARE = 1e-3
"""If a clock and the etalon differ by more than this share, one of them is wrong, because crystals keep time to 1e-4.
Other load makes an etalon end late and never early, so the shortest trial is compared with the set duration.
"""
AGREE = 0.05
"""CPU times of the same trials disagree if their ratio differs from 1 by more than this; CPU times of different trials
disagree if the whole interval of the ratio lies further than this from 1.
"""
START_S = 0.01
"""The longest time, in seconds, that starting a command may take; `wall` includes the start, `perf-elapsed` does
not.
"""
BOTH = "user + sys"
CPU = (TASK_CLOCK, CPU_CLOCK)
COUNTS = tuple(metric_name(each) for each in (CYCLES, CYCLES_USER))
PARALLEL = ("perfect",)


def judged(measured: ValidationData, level: float = 0.95) -> ValidationResult:
    """Judge the measurements of a validation. `level`: the confidence level of the intervals."""
    result = ValidationResult(
        trials=measured.trials,
        trials_done=measured.done,
        trials_failed=measured.failed,
        failures=tuple(TestFailure(test, reason) for test, reason in measured.failures),
        clocksource=measured.about.clocksource,
        instruments=measured.about.instruments,
        workloads=tuple(_workload(each) for each in measured.series),
        findings=tuple(each for series in measured.series for each in _findings(series, measured)),
        agreement=tuple(each for series in measured.series for each in _agreements(series, measured, level)),
        etalon=tuple(_clocks(measured, level)),
    )
    broken = [each for each in result.checks if each.holds is False]
    result = replace(result, at_fault=tuple(sorted({name for each in broken for name in each.instruments})))
    return replace(result, verdict=tuple(verdict.verdict(result)))


def _workload(series: ValidationSeries) -> ValidatedWorkload:
    """A summary of each metric's values, with the check of its first value."""
    metrics = {}
    for name in series.values:
        row = series.row(name)
        mean, spread = fmean(row), stdev(row) if len(row) > 1 else None
        first = first_run(row)
        if first.ratio is not None and not math.isfinite(first.ratio):  # JSON has no infinity
            first = replace(first, ratio=None)
        metrics[name] = MetricSummary(
            n=len(row),
            mean=mean,
            median=median(row),
            sd=spread,
            cv_pct=None if spread is None or not mean else 100 * spread / mean,
            first=row[0],
            first_run=first,
        )
    return ValidatedWorkload(series.workload, series.kind, metrics, series.lost, series.throttled)


def _findings(series: ValidationSeries, measured: ValidationData) -> Iterator[FindingResult]:
    """The findings of all rules of face validity, each for the instruments to which the rule applies."""

    def of_series(instruments: Sequence[str], finding: Finding) -> FindingResult:
        return extended(
            FindingResult, finding, workload=series.workload, kind=series.kind, instruments=tuple(instruments)
        )

    parallel = series.workload in PARALLEL
    step = _resolution(measured, USER)
    for name, cpu, elapsed in _cpu_times(series):
        if series.workload == ETALON:
            yield of_series([name], cpu_drop_alone(*_beside(series, name)))
        else:
            yield of_series([name], cpu_drop(cpu, elapsed))
        yield of_series([name], cpu_within_elapsed(cpu, elapsed, parallel, step))
    for name in COUNTS:
        if series.workload != ETALON and name in series.values and WALL in series.values:
            yield of_series([name], cpu_drop(*series.rows(name, WALL)))
    if series.kind:
        return
    both = {name: series.row(name) for name in (WALL, PERF_ELAPSED) if name in series.values}
    if len(both) == 2:
        yield of_series(list(both), elapsed_alike(both, TOLERANCE + START_S / median(both[WALL])))
    if {USER, SYS, CPU_CLOCK} <= set(series.values):
        user, system, clock = series.rows(USER, SYS, CPU_CLOCK)
        yield of_series([BOTH, CPU_CLOCK], user_system_is_clock(user, system, clock, step))
    if series.workload == ETALON:
        for name in (WALL, PERF_ELAPSED):
            if name in series.values:
                yield of_series([name], pegged(series.row(name), measured.about.etalon_s, _resolution(measured, name)))


def _cpu_times(series: ValidationSeries) -> Iterator[tuple[str, list[float], list[float]]]:
    """For each instrument of CPU time, its name, and the CPU times and elapsed times of the same trials, in seconds."""
    if WALL not in series.values:
        return
    if series.kind:
        if SAMPLES in series.values and (hz := _hz(series)):
            counted, elapsed = series.rows(SAMPLES, WALL)
            yield series.kind, [each / hz for each in counted], elapsed
        return
    for name in CPU:
        if name in series.values:
            cpu, elapsed = series.rows(name, WALL)
            yield name, cpu, elapsed
    if {USER, SYS} <= set(series.values):
        user, system, elapsed = series.rows(USER, SYS, WALL)
        yield BOTH, [a + b for a, b in zip(user, system, strict=True)], elapsed


def _beside(series: ValidationSeries, name: str) -> tuple[list[float], list[list[float]]]:
    """One instrument's CPU readings, and the readings of the other instruments in the same trials."""
    read: dict[str, tuple[str, ...]] = {each: (each,) for each in CPU}
    read |= {BOTH: (USER, SYS)} | ({series.kind: (SAMPLES,)} if series.kind else {})
    there = {each: metrics for each, metrics in read.items() if set(metrics) <= set(series.values)}
    rows = iter(series.rows(*(metric for metrics in there.values() for metric in metrics)))
    readings = {
        each: [sum(row) for row in zip(*islice(rows, len(metrics)), strict=True)] for each, metrics in there.items()
    }
    return readings.pop(name), list(readings.values())


def _agreements(series: ValidationSeries, measured: ValidationData, level: float) -> Iterator[AgreementResult]:
    """The agreement of instruments that should match, both in the same trials and between sampled and unsampled
    trials.
    """

    def compared(
        first: str, second: str, rows: tuple[list[float], list[float]], paired: bool, judge: bool
    ) -> AgreementResult:
        agreed = agreement(*rows, paired, level)
        return extended(
            AgreementResult,
            agreed,
            workload=series.workload,
            kind=series.kind,
            first=first,
            second=second,
            instruments=(second,),
            interval=agreed.interval and agreed.interval.ends,
            ratio_interval=agreed.ratio_interval and agreed.ratio_interval.ends,
            holds=None if agreed.ratio is None or not judge else _near(agreed.ratio, agreed.ratio_interval, paired),
        )

    times = {name: cpu for name, cpu, _ in _cpu_times(series)}
    if series.kind:
        plain = next(
            (each for each in measured.series if each.workload == series.workload and not each.kind),
            ValidationSeries("", "", {}),
        )
        other = {name: cpu for name, cpu, _ in _cpu_times(plain)}
        for name in (CPU_CLOCK, BOTH):
            if series.kind in times and name in other:
                steady = series.workload != ETALON  # the etalon's CPU time depends on other load
                yield compared(name, series.kind, (other[name], times[series.kind]), False, steady)
                return
        return
    for name in (CPU_CLOCK, BOTH):
        if name in times and TASK_CLOCK in times:
            yield compared(TASK_CLOCK, name, (times[TASK_CLOCK], times[name]), True, True)
    if {WALL, PERF_ELAPSED} <= set(series.values):
        one, two = series.rows(WALL, PERF_ELAPSED)
        yield compared(WALL, PERF_ELAPSED, (one, two), True, False)  # these differ by the time to start the command


def _near(ratio: float, ends: Interval | None, paired: bool) -> bool | None:
    """Whether a ratio is within AGREE of 1. None if it is not, but the trials differ and the interval overlaps that
    range or is unknown.
    """
    if abs(ratio - 1) <= AGREE:
        return True
    if paired:
        return False
    if ends is None or ends.low is None or ends.high is None:
        return None
    return False if ends.low > 1 + AGREE or ends.high < 1 - AGREE else None


def _clocks(measured: ValidationData, level: float) -> Iterator[ClockResult]:
    """The etalon measured with each of CLOCKS; the clocks of one host share one source."""
    wanted = measured.about.etalon_s
    series = [each for each in measured.series if each.workload == ETALON and not each.kind]
    for name, row in ((name, each.row(name)) for each in series for name in CLOCKS if name in each.values):
        estimate = etalon(row, wanted, level)
        yield extended(
            ClockResult,
            estimate,
            instruments=(name,),
            t_mean=estimate.t_mean and estimate.t_mean.ends,
            bca_mean=estimate.bca_mean and estimate.bca_mean.ends,
            said=min(row),
            holds=abs(min(row) / wanted - 1) <= CLOCK_SHARE,
        )


def _hz(series: ValidationSeries) -> int | None:
    return perf_record.parse(series.kind.partition(":")[2]).hz


def _resolution(measured: ValidationData, read: str) -> float:
    return next((each.resolution_s or 0.0 for each in measured.about.instruments if each.read == read), 0.0)
