"""Define the result of a validation of instruments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cbench.stats.etalon import FirstRun
from cbench.study.instruments.instrument import HostInstrument
from cbench.study.records import TestFailure

Ends = tuple[float, float] | None
"""The ends of an interval, None if there is none."""


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """The summary of one metric of a workload, and the check of its first value. `sd`: None for a single value;
    `cv_pct`: None also if the mean is 0.
    """

    n: int
    mean: float
    median: float
    sd: float | None
    cv_pct: float | None
    first: float
    first_run: FirstRun


@dataclass(frozen=True, slots=True)
class OfWorkload:
    """The workload and the kind of trial of a result; the kind is "" for trials that are not sampled."""

    workload: str
    kind: str

    @property
    def place(self) -> str:
        return f"{self.workload} {self.kind}".rstrip()


@dataclass(frozen=True, slots=True)
class ValidatedWorkload(OfWorkload):
    """The metrics of a workload, and the kernel's statistics of its samples."""

    metrics: Mapping[str, MetricSummary]
    samples_lost: int
    samples_throttled: int


@dataclass(frozen=True, slots=True)
class FindingResult(OfWorkload):
    """The verdict of a rule of face validity on `instruments`; the other fields are as in face_validity.Finding."""

    instruments: tuple[str, ...]
    rule: str
    holds: bool | None
    wrong: int
    n: int
    words: str


@dataclass(frozen=True, slots=True)
class AgreementResult(OfWorkload):
    """The agreement of `second` with `first`; the other fields are as in agreement.Agreement. `holds`: whether the CPU
    times agree, None if undecided or not judged.
    """

    first: str
    second: str
    instruments: tuple[str, ...]
    n: tuple[int, int]
    paired: bool
    difference: float | None
    interval: Ends
    percent: float | None
    limits: tuple[float, float] | None
    limits_error: float | None
    trend: float | None
    ratio: float | None
    ratio_interval: Ends
    why: str | None
    holds: bool | None


@dataclass(frozen=True, slots=True)
class ClockResult:
    """The etalon measured with the clock in `instruments`. `said`: the shortest trial in seconds, by which the clock is
    judged; `holds`: whether it agrees with `wanted`. The other fields are as in etalon.Etalon, intervals as their ends.
    """

    instruments: tuple[str, ...]
    n: int
    wanted: float
    mean: float | None
    median: float | None
    sd: float | None
    sem: float | None
    cv: float | None
    t: float | None
    p: float | None
    t_mean: Ends
    bca_mean: Ends
    why: str | None
    said: float
    holds: bool | None


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The whole validation. `at_fault`: the names of the instruments whose checks failed."""

    trials: int
    trials_done: int
    trials_failed: int
    failures: tuple[TestFailure, ...]
    clocksource: str
    instruments: tuple[HostInstrument, ...]
    workloads: tuple[ValidatedWorkload, ...]
    findings: tuple[FindingResult, ...]
    agreement: tuple[AgreementResult, ...]
    etalon: tuple[ClockResult, ...]
    at_fault: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[FindingResult | AgreementResult | ClockResult, ...]:
        return (*self.findings, *self.agreement, *self.etalon)
