"""What a study is made of, as its file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cbench.study.instruments.perf_record import Sampling

HIGHER, LOWER = "higher", "lower"
LAST, REGEX, JSON, FILE, WALL, USER, SYS = "last-float", "regex", "json", "file", "wall", "user", "sys"
VALUE = "value"  # a workload's own number, in its counter's unit
PERF_ELAPSED = "perf-elapsed"  # from the command's execution on, as `perf stat` has it
TIMES = (WALL, USER, SYS, PERF_ELAPSED)
CYCLES, CYCLES_USER = "cycles", "cycles:u"  # of a command and all that it starts, by the PMU
TASK_CLOCK, CPU_CLOCK = "task-clock", "cpu-clock"  # of the same, by the kernel's software events; in seconds
CLOCKS = (TASK_CLOCK, CPU_CLOCK)
COUNTS = (CYCLES, CYCLES_USER, *CLOCKS)
SAMPLES = "samples"  # of the command, run under `perf record`
PERF_DATA = "perf-data"  # samples in a file of `perf record` that the command leaves
NONE, COMMAND, SERVICE, CACHES, COOL, PROCESSES, REBOOT = (
    *("none", "command", "service", "drop-caches", "cool-down", "processes", "reboot"),
)
RESETS = (NONE, COMMAND, SERVICE, CACHES, COOL, PROCESSES, REBOOT)

CALLED = {"order": "study", "screen": "experiment"}
"""What a message says of a store, by its kind."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a test. `source`: how it is read; `detail`: the expression, path or file that this needs."""

    name: str  # empty where the test has this one only
    source: str
    detail: str = ""
    unit: str = ""
    better: str = LOWER


@dataclass(frozen=True, slots=True)
class Test:
    """A command of the shell, or a workload of `cbench list`; one of both."""

    name: str
    command: str = ""
    workload: str = ""
    params: Mapping[str, int] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    timeout_s: float = 600.0
    directory: str = ""
    sampling: Sampling | None = None  # where its command runs under `perf record`

    @property
    def counts(self) -> tuple[str, ...]:
        """What perf_event has to count for it."""
        return tuple(sorted({metric.source for metric in self.metrics} & set(COUNTS)))


@dataclass(frozen=True, slots=True)
class Reset:
    """What happens to the host before each run, and how long to wait after it."""

    kind: str = NONE
    command: str = ""
    check: str = ""  # a command that has to succeed afterwards
    unit: str = ""
    celsius: float | None = None
    khz: int | None = None
    timeout_s: float = 600.0
    settle_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Study:
    """The whole of it. `folder`: where its file is; commands run there."""

    name: str
    tests: tuple[Test, ...]
    repetitions: int
    design: str
    seed: int
    alpha: float
    reset: Reset
    failures: str
    counter: str  # of workloads
    profile: str
    cpus: str
    setup: tuple[str, ...]
    teardown: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
