"""Define the terms of cbench as frozen values: workload, counter, trial, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cbench.results import LEFT_OUT

Params = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a workload: a whole number from `minimum` to `maximum`; `quick`: the default with --quick."""

    name: str
    default: int
    quick: int
    meaning: str
    minimum: int = 1
    maximum: int = 2**40
    multiple: int = 1
    """The value must be a multiple of this number."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The work between two counter reads.

    `function` is the name in the C registry, or of the C function in the user's `library`; `expected`: a Python
    function that independently computes the return value, None for user code or if that would take too long;
    `check_limit`: the largest `n` for which `expected` is cheap. Before each trial the function is called once more,
    untimed, with n // `rewarm_share`. `cost`: the expected cost of a trial. `check` returns the error in a combination
    of parameters that are individually within bounds, "" if there is none. `own_faults`: the number of page faults per
    trial that are the workload's own work and do not count as interruptions. `buffers`: the number of buffers of the
    parameter `size`. `enters_kernel`: whether the function itself calls the kernel; None if unknown. `trials`: the
    default number of trials, without warm-up, for workloads that take seconds.
    """

    name: str
    function: str
    stresses: str
    parameters: tuple[Parameter, ...]
    expected: Callable[[Params], int | None] | None = None
    check_limit: int = 0
    library: str = ""
    rewarm_share: int = 1
    enters_kernel: bool | None = False
    cost: str = ""
    check: Callable[[Params], str] | None = None
    own_faults: Callable[[Params], int] | None = None
    buffers: int = 1
    trials: int | None = None

    @property
    def builtin(self) -> bool:
        return not self.library


CALIBRATED_UNIT = "cycles (calibrated)"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The conversion of clock ticks to cycles. The clock moves in steps of `step` ticks.

    `edge`: the part of a chain's time that is not additions, in ticks. `length`: the number of additions, and so of
    cycles, of each chain around a trial. `machine`: the architecture. `ticks_per_cycle`: the lowest ratio measured
    before the first trial. `obstacle`: the reason why chains cannot measure cycles here, "" if they can.
    """

    step: int
    edge: float
    length: int
    machine: str
    ticks_per_cycle: float
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Counter:
    """The source of a trial's number; an unavailable counter has the reason in `why` and no numbers.

    `quantum`: the step in which the counter moves; `overhead`, `overhead_median`: the lowest value and the median of an
    empty timed region. These are in `unit`, and None until measured. `others`: additionally counted events; `baseline`:
    the count of each in an empty region; `left_out`: unavailable counts, with the reason. `calibration`: set if the
    values are cycles by calibration.
    """

    name: str
    unit: str
    available: bool = field(metadata={LEFT_OUT: True})
    why: str
    method: str = ""
    quantum: int | None = None
    overhead: int | None = None
    overhead_median: int | None = None
    others: tuple[str, ...] = ()
    baseline: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    calibration: Calibration | None = field(default=None, metadata={LEFT_OUT: None})


TASK, FAULT, INTERRUPT = "task", "page fault", "interrupt"
DISAGREE, SHARED = "chains disagree", "core shared"
SWITCH, MIGRATION, LINES, MULTIPLEXED, KERNEL = (
    "context switch",
    "migration",
    "interrupt lines changed",
    "counter multiplexed",
    "the kernel",
)


@dataclass(frozen=True, slots=True)
class TrialCause:
    """A known interruption of a trial: its kind, its name, and the number of times it occurred.

    `ns`: the interruption's net time in ns, None if only counters detected it. If the kernel's trace contains the
    interruption, the trace provides both time and name.
    """

    kind: str
    name: str = ""
    count: int = 1
    ns: int | None = None

    @property
    def text(self) -> str:
        """The cause as text, such as "interrupt LOC (Local timer interrupts)" or "context switch (1 voluntary, 0
        involuntary)".
        """
        if self.ns is not None:
            return self.name
        if self.kind == INTERRUPT:
            return f"{INTERRUPT} {self.name}"
        if self.kind == KERNEL:
            return f"{KERNEL} ({self.count:,} instructions)"
        return f"{self.kind} ({self.name})" if self.name else self.kind


TRACING, COUNTERS = "kernel tracing", "counters"


@dataclass(frozen=True, slots=True)
class CausesSource:
    """The source of the causes of a process's trials; `from_counters`: the number of trials whose causes come from the
    counters alone.
    """

    source: str = ""
    note: str = ""
    from_counters: int = 0


@dataclass(frozen=True, slots=True)
class ChainTimes:
    """The times of a trial and of the chains of additions right before and right after it, in ticks of the clock.

    The narrow chains (`before`, `after`) take one cycle per addition; the wide ones take longer on a shared core.
    """

    ticks: int
    length: int
    before: int
    after: int
    wide_before: int
    wide_after: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of the work: one number, and the known interruptions.

    `begin` and `end` enclose the timed region, in ticks of quiet.noise.clock. `traced`: None if the causes come from
    the counters alone. `counts`: events counted in addition to the value. `kernel`: number of instructions that the
    kernel ran within the timed region, None if it cannot be counted, or if the workload itself enters the kernel.
    `chains`: set if cycles come from calibration.
    """

    value: int
    output: int
    causes: tuple[TrialCause, ...] = ()
    context_switches: int = 0
    page_faults: int = 0
    interrupts: Mapping[str, int] = field(default_factory=dict)
    migrated: bool = False
    valid: bool = True
    begin: int = 0
    end: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    kernel: int | None = None
    traced: tuple[TrialCause, ...] | None = None
    chains: ChainTimes | None = None

    @property
    def polluted(self) -> bool:
        return bool(self.causes)


@dataclass(frozen=True, slots=True)
class Settling:
    """The trials that were discarded first: their values, and their mispredicted branches if these were counted.

    `settled`: whether the rule of stats/settling.py held at the end of these trials.
    """

    values: tuple[int, ...] = ()
    mispredictions: tuple[int, ...] = ()
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory layout of a measuring process, which may change a program's speed without being part of the program.

    `environment`: bytes added to the environment; `stack`: bytes by which the stack is shifted. `aslr`: whether
    addresses are randomized.
    """

    aslr: bool = False
    environment: int = 0
    stack: int = 0


PLAIN = Layout()


@dataclass(frozen=True, slots=True)
class Session:
    """The facts about one measuring process, as it reports them, and all of its trials.

    `stolen_ms`: the time in ms that the hypervisor took from the CPU, None if unknown. `ticks_per_second`: the rate of
    the clock, None if unknown.
    """

    counter: Counter
    trials: tuple[Trial, ...]
    settling: Settling
    locked: str
    addresses: str
    pages: str
    interrupts_from: str
    stolen_ms: int | None
    causes: CausesSource = CausesSource()
    layout: Layout = PLAIN
    params: Params = field(default_factory=dict)
    ticks_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The facts that a measuring process reports before its first trial."""

    counter: Counter
    locked: str = ""
    addresses: str = ""
    pages: str = ""
    interrupts_from: str = ""


class Keeper(Protocol):
    """Stores a process's trials while it is still measuring."""

    def begin(self, ready: Ready, settling: Settling) -> None:
        """Store the facts about the process, before the first trial that counts."""

    def add(self, trials: Sequence[Trial]) -> None:
        """Add a chunk of trials, with their causes."""

    def finish(self, session: Session) -> None:
        """Store the facts that are known only after the last trial."""


Enough = Callable[[Sequence[Trial], Counter], bool]
"""A function that returns whether the trials so far suffice."""


@dataclass(frozen=True, slots=True)
class Result:
    """The measurement of one workload on one CPU, in one or several processes. `wanted_clean`: the requested number of
    clean trials, None if only a number of trials was requested.
    """

    workload: Workload
    params: Params
    cpu: int
    isolated: bool
    sessions: tuple[Session, ...]
    wanted_clean: int | None = None

    @property
    def session(self) -> Session:
        """The session of the first process."""
        return self.sessions[0]

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of all processes, in the order in which they ran."""
        return tuple(trial for session in self.sessions for trial in session.trials)
