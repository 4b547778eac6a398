"""The words of cbench as frozen values: workload, counter, trial, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Params = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a workload: a whole number between `minimum` and `maximum`."""

    name: str
    default: int
    quick: int
    meaning: str
    minimum: int = 1
    maximum: int = 2**40
    multiple: int = 1
    """Only whole multiples of it will do."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs between two counter reads.

    `function` is the name in the C registry, or of the C function in the user's `library`; `expected` computes its
    return value independently in Python, None where that would take too long, and `check_limit` says up to which
    parameter `n` it is cheap. User code has no `expected`.
    Before each trial the function is called once more, untimed, with n // `rewarm_share`. `cost` says what a trial
    should take. `check` says what is wrong with parameters that are each within bounds, "" when nothing is.
    `own_faults` says how many page faults of a trial are the workload's own work and pollute nothing. `buffers`: how
    many buffers of the parameter `size` there are. `enters_kernel`: whether the function itself calls the kernel; None
    where that is not known. `trials`: how many there are, and none before them, when nobody asks for a number; for
    workloads that take seconds.
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


@dataclass(frozen=True, slots=True)
class Counter:
    """Where a trial's number comes from; an unavailable counter says why in `why` and has no number at all.

    `quantum` is the step in which the counter moves and `overhead` the lowest value of an empty timed
    region, `overhead_median` its median, all in `unit`; they are None until measured. `others`: what is counted
    beside it, `baseline`: what of each an empty region has, `left_out`: what was not to be had, with the reason.
    """

    name: str
    unit: str
    available: bool
    why: str
    method: str = ""
    quantum: int | None = None
    overhead: int | None = None
    overhead_median: int | None = None
    others: tuple[str, ...] = ()
    baseline: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


TASK, FAULT, INTERRUPT = "task", "page fault", "interrupt"


@dataclass(frozen=True, slots=True)
class Named:
    """Something that the kernel's trace has within a trial: TASK, FAULT or INTERRUPT, its name, and its net time."""

    kind: str
    text: str
    ns: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution, one number, and what is known to have come between.

    `begin` and `end` enclose the timed region, in ticks of quiet.noise.clock. `traced` is None where the causes are
    the counters' alone. `counts`: what was counted beside the value. `kernel`: how many instructions the kernel ran
    within the timed region, None where that cannot be counted or is the workload's own doing.
    """

    value: int
    output: int
    causes: tuple[str, ...] = ()
    context_switches: int = 0
    page_faults: int = 0
    interrupts: Mapping[str, int] = field(default_factory=dict)
    migrated: bool = False
    valid: bool = True
    begin: int = 0
    end: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    kernel: int | None = None
    traced: tuple[Named, ...] | None = None

    @property
    def polluted(self) -> bool:
        return bool(self.causes)


@dataclass(frozen=True, slots=True)
class Settling:
    """The trials that were discarded first: their values, and their mispredicted branches where these were counted.

    `settled`: whether the rule of stats/settling.py held at their end.
    """

    values: tuple[int, ...] = ()
    mispredictions: tuple[int, ...] = ()
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How one measuring process lies in memory: what may move a program's speed without being a part of it.

    `environment` and `stack` in bytes. `aslr`: whether addresses are randomised.
    """

    aslr: bool = False
    environment: int = 0
    stack: int = 0


PLAIN = Layout()


@dataclass(frozen=True, slots=True)
class Session:
    """What one measuring process said of itself and of all of its trials.

    `causes`: where the trials' causes come from: "source", "note", "from_counters" (trials).
    """

    counter: Counter
    trials: tuple[Trial, ...]
    settling: Settling
    locked: str
    addresses: str
    pages: str
    interrupts_from: str
    stolen_ms: int | None
    causes: Mapping[str, object] = field(default_factory=dict)
    layout: Layout = PLAIN
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """One workload on one CPU, in one process or in several. `wanted_clean`: trials without a known interruption
    that were asked for, None where just a number of trials was."""

    workload: Workload
    params: Params
    cpu: int
    isolated: bool
    sessions: tuple[Session, ...]
    wanted_clean: int | None = None

    @property
    def session(self) -> Session:
        """The first process."""
        return self.sessions[0]

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those of all processes, in the order in which they ran."""
        return tuple(trial for session in self.sessions for trial in session.trials)
