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


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs between two counter reads.

    `function` is the name in the C registry, or of the C function in the user's `library`; `expected` computes its
    return value independently in Python, and `check_limit` says up to which parameter `n` that is cheap. User code
    has no `expected`.
    Before each trial the function is called once more, untimed, with n // `rewarm_share`.
    """

    name: str
    function: str
    stresses: str
    parameters: tuple[Parameter, ...]
    expected: Callable[[Params], int] | None = None
    check_limit: int = 0
    library: str = ""
    rewarm_share: int = 1

    @property
    def builtin(self) -> bool:
        return not self.library


@dataclass(frozen=True, slots=True)
class Counter:
    """Where a trial's number comes from; an unavailable counter says why in `why` and has no number at all.

    `quantum` is the step in which the counter moves and `overhead` the lowest value of an empty timed
    region, both in `unit`; they are None until measured.
    """

    name: str
    unit: str
    available: bool
    why: str
    method: str = ""
    quantum: int | None = None
    overhead: int | None = None


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
    the counters' alone.
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
    traced: tuple[Named, ...] | None = None

    @property
    def polluted(self) -> bool:
        return bool(self.causes)


@dataclass(frozen=True, slots=True)
class Session:
    """What one measuring process said of itself and of all of its trials.

    `causes`: where the trials' causes come from: "source", "note", "from_counters" (trials).
    """

    counter: Counter
    trials: tuple[Trial, ...]
    warmup: int
    settled: bool
    locked: str
    addresses: str
    pages: str
    interrupts_from: str
    stolen_ms: int | None
    causes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """One workload on one CPU."""

    workload: Workload
    params: Params
    cpu: int
    isolated: bool
    session: Session
