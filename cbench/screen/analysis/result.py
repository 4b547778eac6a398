"""Define the analysis of a screening experiment for tables, pages, figures and `--json`.

Each field has the name of its JSON key; docs/screen-analysis.md explains each of them. Unknown numbers are None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cbench.results import KEY, LEFT_OUT
from cbench.screen.analysis.host_results import Ends, ResponseHosts, ScreenHosts
from cbench.screen.design.factorial import Factor
from cbench.screen.stats.anova_table import AnovaRow
from cbench.screen.stats.batch_effects import BootCheck
from cbench.screen.stats.block_tests import EffectTest
from cbench.screen.stats.blockplot import BlockPlot
from cbench.screen.stats.practical_significance import Materiality, StudiedSize
from cbench.screen.stats.resolution import CoarseClock
from cbench.screen.stats.splitplot import SplitPlot


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The choice of treatments that was analyzed, and the number of treatments that it keeps."""

    name: str
    words: str
    treatments: int


@dataclass(frozen=True, slots=True)
class TreatmentResult:
    """A treatment and its levels. `questionable`: the reason why the treatment is questionable ("" if
    unknown), None if it is not.
    """

    number: int
    name: str
    levels: Mapping[str, str]
    questionable: str | None
    kept: bool


@dataclass(frozen=True, slots=True)
class AliasedEffect:
    effect: str
    aliases: tuple[str, ...] = field(metadata={KEY: "with"})


@dataclass(frozen=True, slots=True)
class UntestableEffect:
    effect: str
    why: str


@dataclass(frozen=True, slots=True)
class EmptyCells:
    """The pairs of levels of two factors that no treatment has."""

    factors: tuple[str, str]
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TreatmentSet:
    """A choice of treatments with its balance and aliasing. If no treatment remains, `balanced` and `orthogonal` are
    None, and the last four keys are omitted. `seen_with`: the testable main effects that are aliased with
    interactions, each with these interactions.
    """

    name: str
    words: str
    treatments: int
    counts: Mapping[str, Mapping[str, int]]
    balanced: bool | None
    orthogonal: bool | None
    aliased: tuple[AliasedEffect, ...]
    says: tuple[str, ...]
    unbalanced: tuple[str, ...] | None = field(default=None, metadata={LEFT_OUT: None})
    untestable: tuple[UntestableEffect, ...] | None = field(default=None, metadata={LEFT_OUT: None})
    empty_cells: tuple[EmptyCells, ...] | None = field(default=None, metadata={LEFT_OUT: None})
    seen_with: tuple[AliasedEffect, ...] | None = field(default=None, metadata={LEFT_OUT: None})


@dataclass(frozen=True, slots=True)
class DesignResult:
    name: str
    factors: tuple[Factor, ...]
    treatments: tuple[TreatmentResult, ...]
    excluded: int
    batches: tuple[str, ...]
    iterations: int
    sets: tuple[TreatmentSet, ...]
    warnings: tuple[str, ...]
    randomised: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    iterations_left: int = field(default=0, metadata={LEFT_OUT: 0})
    """The number of iterations of an unfinished experiment that are left."""


@dataclass(frozen=True, slots=True)
class FirstRunResult:
    """A treatment's first value compared with the others; see cbench/stats/etalon.py."""

    sd: float
    sd_without: float | None
    ratio: float | None
    threshold: float | None
    p: float | None
    flagged: bool


@dataclass(frozen=True, slots=True)
class SampleResult:
    """The statistics of one treatment's values. `failed`: the number of failed trials; `alike`: whether all values are
    equal; `replicates`: the number of bootstrap replicates; `why`: the reason for missing intervals.
    """

    treatment: int
    name: str
    questionable: str | None
    n: int
    failed: int
    mean: float | None
    sd: float | None
    median: float | None
    min: float | None
    max: float | None
    alike: bool
    bca_mid: Ends | None
    bca_strict: Ends | None
    t: Ends | None
    replicates: int
    why: str | None
    first_run: FirstRunResult | None


@dataclass(frozen=True, slots=True)
class LevelMean:
    """The mean at a level. `difference`: the difference from the first level, with its `interval`, if the factor has
    more than two levels.
    """

    level: str
    mean: float | None
    treatments: int
    difference: float | None = None
    interval: Ends | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSize:
    """The size of an effect. `effect`: the plain effect, not adjusted for a lack of balance; None if unknown. `signed`:
    whether the effect has a direction, which requires factors with two levels. `adjusted`: the estimate of the effect's
    test or, without a test, by least squares (see MainEffect); None if there is neither. `means_adjusted`: whether the
    means behind the effect are adjusted for iterations that lack a value.
    """

    effect: float | None
    signed: bool
    testable: bool
    adjusted: float | None = None
    means_adjusted: bool = field(default=False, metadata={LEFT_OUT: False})

    @property
    def fair(self) -> float:
        """The effect without bias from a lack of balance. The effect must be known."""
        assert self.effect is not None
        return self.effect if self.adjusted is None else self.adjusted

    @property
    def is_adjusted(self) -> bool:
        """Whether the fair effect differs from the plain effect of all values."""
        return self.means_adjusted or self.fair != self.effect


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedSize(EffectSize):
    """The size of a main effect under another choice of treatments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectResult(EffectSize):
    """An effect and its test. `magnitude`: of the adjusted effect, if there is one. `why`: the reason why the effect is
    untested or aliased. `interval`: only for signed effects; `percent`: the adjusted effect in % of the mean of all
    treatments.
    """

    magnitude: float | None
    why: str | None
    test: EffectTest | None = None
    p: float | None = None
    p_adjusted: float | None = None
    significant: bool = False
    interval: Ends | None = None
    percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastResult(EffectResult):
    """A sum of effects that cannot be separated (aliased interactions), or an effect of three or more factors in a
    design without replicates. `effects`: the names of the summed effects.
    """

    name: str
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LenthContrast:
    """One contrast. `p`: the p-value of this contrast alone; `p_family`: corrected for all contrasts of the design."""

    name: str
    estimate: float
    p: float
    p_family: float


@dataclass(frozen=True, slots=True)
class LenthResult:
    """R. V. Lenth's pseudo standard error of a design without replicates, and the margin of error of one contrast."""

    pse: float
    margin: float
    contrasts: tuple[LenthContrast, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MainEffectResult(EffectResult):
    levels: tuple[LevelMean, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionResult(EffectResult):
    """The interaction of two factors. `cells`, `residuals`: one value per combination of both factors' levels; None for
    combinations without treatments.
    """

    name: str
    factors: tuple[str, str]
    levels: tuple[tuple[str, ...], tuple[str, ...]]
    cells: Sequence[Sequence[float | None]]
    residuals: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The intervals from samples of different sizes, drawn from the values of one treatment. `population`: the number
    of these values.
    """

    treatment: int
    name: str
    population: int
    mean: float
    level: float
    replace: bool
    replicates: int
    why: str | None
    sizes: tuple[StudiedSize, ...]


@dataclass(frozen=True, slots=True)
class NoMateriality:
    """The reason effects cannot be compared with the widths of intervals."""

    why: str


@dataclass(frozen=True, slots=True)
class ResponseResult:
    """One response. `why`: the reason for missing effects. `sets`: main effects by choice of treatments and factor."""

    workload: str
    response: str
    unit: str
    better: str
    n: int
    failed: int
    unobtainable: tuple[str, ...]
    missing: tuple[str, ...]
    treatments: tuple[SampleResult, ...]
    sets: Mapping[str, Mapping[str, AdjustedSize]]
    why: str | None
    effects: Mapping[str, MainEffectResult] = field(default_factory=dict)
    interactions: tuple[InteractionResult, ...] = ()
    blocks: Mapping[str, BlockPlot | None] = field(default_factory=dict)
    split_plot: SplitPlot | None = None
    boots: tuple[BootCheck, ...] = ()
    blocks_used: int = 0
    blocks_dropped: int = 0
    blocks_partial: int = 0
    contrasts: tuple[ContrastResult, ...] = ()
    lenth: LenthResult | None = None
    anova: tuple[AnovaRow, ...] = ()
    anova_error: str = ""
    coarse: CoarseClock | None = None
    material: Materiality | NoMateriality | None = None
    studies: tuple[StudyResult, ...] = ()
    hosts: ResponseHosts | None = field(default=None, metadata={LEFT_OUT: None})

    @property
    def every_effect(self) -> list[tuple[str, EffectResult]]:
        """The names and results of main effects, interactions and other contrasts."""
        named: list[InteractionResult | ContrastResult] = [*self.interactions, *self.contrasts]
        return [*self.effects.items(), *((each.name, each) for each in named)]


@dataclass(frozen=True, slots=True)
class ScreenResult:
    """The whole analysis. `tests`: the number of tested effects; `verdict`: lines, the most important first."""

    factors_matter: bool
    alpha: float
    confidence: float
    seed: int
    filter: FilterResult
    correction: str
    design: DesignResult
    responses: Mapping[str, ResponseResult]
    tests: int
    verdict: tuple[str, ...] = ()
    hosts: ScreenHosts | None = field(default=None, metadata={LEFT_OUT: None})

    @property
    def every_effect(self) -> list[tuple[str, ResponseResult, str, EffectResult]]:
        """All effects, each as the response's name, the response, the effect's name, and the effect."""
        return [(name, row, effect, each) for name, row in self.responses.items() for effect, each in row.every_effect]
