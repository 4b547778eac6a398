"""Define the parts of a study, as its file describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cbench.study.instruments.instrument import Sampling
from cbench.study.instruments.registry import BY_SOURCE
from cbench.study.process.run_command import Probe
from cbench.study.resets.reset import Reset
from cbench.study.suite.suite import Suite

HIGHER, LOWER = "higher", "lower"
VALUE = "value"  # the result of a workload's trial, in the counter's unit

CALLED = {"order": "study", "screen": "experiment"}
"""The word for a store in messages, by its kind."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a test. `source`: the instrument that reads it; `detail`: the text after the colon in `read`, such
    as a regular expression or a path, "" if there is none.
    """

    name: str  # empty if it is the test's only metric
    source: str
    detail: str = ""
    unit: str = ""
    better: str = LOWER


@dataclass(frozen=True, slots=True)
class Test:
    """A test: a shell command or a workload; for a test of a suite, both are ""."""

    name: str
    command: str = ""
    workload: str = ""
    params: Mapping[str, int] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    timeout_s: float = 600.0
    directory: str = ""
    sampling: Sampling | None = None  # set if the command runs under `perf record`

    def probes(self) -> list[Probe]:
        """New probes for one execution of the command: one for each name, even if several metrics read it."""
        instruments = (BY_SOURCE[metric.source] for metric in self.metrics if metric.source in BY_SOURCE)
        probes = (each.probe(self.sampling) for each in instruments)
        by_name = {each.name: each for each in probes if each is not None}
        return [by_name[name] for name in sorted(by_name)]


@dataclass(frozen=True, slots=True)
class StudyCounter:
    """The counter that all workloads of a study use. `why`: the reason for the choice."""

    name: str
    unit: str
    why: str


@dataclass(frozen=True, slots=True)
class Study:
    """A complete study. `folder`: the directory of its file, in which commands run. `suite`: the suite, if the study
    has one; `tests` is empty until the suite's tests are listed. `failures`: whether a failed trial excludes only
    itself ("trial") or its whole run ("run"). `profile`, `cpus`: "" if not given.
    """

    name: str
    tests: tuple[Test, ...]
    repetitions: int
    design: str
    seed: int
    alpha: float
    reset: Reset
    failures: str
    counter: str  # the counter for workloads
    profile: str
    cpus: str
    setup: tuple[str, ...]
    teardown: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    suite: Suite | None = None
