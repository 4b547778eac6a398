"""Define the parts of a screening experiment, as its file describes them.

The terms are those of D. Flater, "Screening for factors affecting application performance in profiling measurements",
NIST Technical Note 1855 (2014), sections 2 and 4: a factor has levels, a treatment is one level of each factor, a
response is a measured quantity, and an iteration runs every treatment of a batch once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cbench.study.model import Metric
from cbench.study.resets.reset import Reset

SCREEN = "screen"
"""The kind of a screening experiment in a store (Header.kind)."""
CONSTRAINTS = EXCLUDED, QUESTIONABLE, UNOBTAINABLE = "excluded", "questionable", "unobtainable"
MIXED = "mixed"
DESIGNS = FULL, FRACTION, PLACKETT_BURMAN = "full", "fraction", "plackett-burman"
NO_PROFILER = "none"
"""The profiler of a level without `perf record`; perf_record.parse() reads any other text."""
BUILT = "$CBENCH_BUILD"
"""The placeholder in a workload's name for the directory of the treatment's artifacts."""

COLUMNS = (
    *("workload", "run", "batch", "iteration", "position", "treatment", "questionable", "failure", "begun_ns"),
    "ended_ns",
)
"""The columns of an exported experiment besides factors and responses, whose own names must differ from these."""
RESERVED = (*COLUMNS, "boot", "response", "value", "unit", "trial", "test", "order", "metric", "seed")
"""Names that factors and responses must not have, because readers of an exported table would interpret them
differently.
"""

Where = Mapping[str, tuple[str, ...]]
"""A set of treatments, as the allowed levels of each named factor; any other factor may have any level."""


def matches(where: Where, levels: Mapping[str, str]) -> bool:
    """Whether a treatment, given by its factors' levels, matches the filter."""
    return all(levels[factor] in wanted for factor, wanted in where.items())


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor, and how it is set: not at all (`found`), or by one or several of the other fields.

    Per process: `environment`, `cpus` (in the kernel's notation), `aslr`, `profiler`. Per artifact: `build` (a command,
    run once) and `flags` (for the experiment's own build command). On the host: `knobs` and `profile` (quiet's,
    applied through its journal), `governor` (through quiet's knob), `command` with `restore` and `check`, `kernel`
    (parameters on the kernel's command line, which change only at boot).
    """

    name: str
    found: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: str = ""
    aslr: bool | None = None
    profiler: str = ""  # NO_PROFILER, or the sampling: "dwarf", "fp,event=cpu-clock,hz=1000"
    build: str = ""
    flags: str | None = None
    knobs: Mapping[str, str] = field(default_factory=dict)  # knob -> its value in a profile, such as "quiet"
    profile: str = ""
    governor: str = ""
    command: str = ""
    restore: str | None = None  # None: not given; "": nothing to restore
    check: str = ""  # a command that must succeed while the level is set
    kernel: tuple[str, ...] | None = None  # (): none of the parameters of the factor's other levels

    @property
    def by_quiet(self) -> bool:
        """Whether quiet sets this level."""
        return bool(self.knobs or self.profile or self.governor)


@dataclass(frozen=True, slots=True)
class ScreenFactor:
    """A factor and its levels, numbered from 0. `hard`: whether the level changes only between batches (a whole-plot
    factor).
    """

    name: str
    levels: tuple[Level, ...]
    hard: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factor's levels."""
        return tuple(level.name for level in self.levels)


@dataclass(frozen=True, slots=True)
class ScreenWorkload:
    """A workload that every treatment runs: either a shell `command`, or a `workload` of cbench with `params`.

    `directory`: the directory in which the command runs, relative to that of the experiment's file.
    """

    name: str
    command: str = ""
    workload: str = ""
    params: Mapping[str, int] = field(default_factory=dict)
    timeout_s: float = 600.0
    directory: str = ""

    @property
    def built(self) -> bool:
        """Whether this is a workload of cbench from a file that the experiment builds."""
        return BUILT in self.workload


@dataclass(frozen=True, slots=True)
class Response:
    """A dependent variable and the instrument that reads it. `workloads`: the names of the workloads that have it."""

    name: str
    metric: Metric  # its name is also the response's name
    workloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A set of treatments that are excluded (never run), questionable (run and marked), or have no values of some
    `responses`.
    """

    kind: str  # EXCLUDED, QUESTIONABLE or UNOBTAINABLE
    where: Where
    reason: str
    responses: tuple[str, ...] = ()  # only for UNOBTAINABLE


@dataclass(frozen=True, slots=True)
class Abridgment:
    """A named filter for the analysis. `only`: keep treatments that match any of these (() keeps all); `minus`: remove
    treatments that match any of these.
    """

    name: str
    only: tuple[Where, ...] = ()
    minus: tuple[Where, ...] = ()

    def keeps(self, levels: Mapping[str, str]) -> bool:
        """Whether the abridgment keeps a treatment, given by its factors' levels."""
        chosen = not self.only or any(matches(where, levels) for where in self.only)
        return chosen and not any(matches(where, levels) for where in self.minus)


@dataclass(frozen=True, slots=True)
class Controlled:
    """A controlled variable: stated as text (`value`), or read by a `command` at the beginning of each batch."""

    name: str
    value: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Treatment:
    """One level of each factor. `numbers`: the index of each factor's level, in the order of the factors;
    `questionable`: the reason why the treatment is questionable, "" if it is not.
    """

    number: int
    numbers: tuple[int, ...]
    levels: Mapping[str, str]  # factor -> its level's name
    questionable: str = ""
    unobtainable: Mapping[str, str] = field(default_factory=dict)  # response -> reason

    @property
    def name(self) -> str:
        """The name from the levels, such as "os=0 fp=1 prf=2"."""
        return " ".join(f"{factor}={level}" for factor, level in self.levels.items())


@dataclass(frozen=True, slots=True)
class ScreenTest:
    """The combination of a treatment and a workload that a trial runs. Tests are numbered like those of a study."""

    number: int
    treatment: int
    workload: str
    name: str  # the treatment's name, preceded by the workload's if there are several


@dataclass(frozen=True, slots=True)
class Screen:
    """A complete screening experiment.

    `folder`: the directory of its file, in which commands run. `batches`: batches per combination of the hard factors'
    levels, or in total if no factor is hard; `iterations`: iterations per batch. `sequence`: the order of the batches,
    as levels of the single hard factor; (MIXED,) for a drawn sequence that is neither alternating nor blocked; () for
    rounds of all levels, each in random order.
    """

    name: str
    seed: int
    iterations: int
    batches: int
    sequence: tuple[str, ...]
    alpha: float
    confidence: float  # level of the intervals
    design: str  # FULL, FRACTION or PLACKETT_BURMAN
    runs: int | None  # number of treatments of FRACTION or PLACKETT_BURMAN; None selects it automatically
    generators: tuple[str, ...]  # for FRACTION, such as "D=ABC"; () selects them automatically
    factors: tuple[ScreenFactor, ...]
    workloads: tuple[ScreenWorkload, ...]
    responses: tuple[Response, ...]
    constraints: tuple[Constraint, ...]
    abridgments: tuple[Abridgment, ...]
    controlled: tuple[Controlled, ...]
    reset: Reset  # before each batch
    build: str
    counter: str  # the counter for cbench's workloads
    profile: str
    cpus: str
    setup: tuple[str, ...]
    teardown: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str

    @property
    def hard(self) -> tuple[ScreenFactor, ...]:
        """The factors whose levels change only between batches."""
        return tuple(factor for factor in self.factors if factor.hard)

    def factor(self, name: str) -> ScreenFactor:
        """The factor with this name. Raises KeyError if there is none."""
        return {factor.name: factor for factor in self.factors}[name]

    def level(self, factor: str, name: str) -> Level:
        """One level of a factor. Raises KeyError if it does not exist."""
        return {level.name: level for level in self.factor(factor).levels}[name]
