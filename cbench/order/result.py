"""Define the result of an order analysis as frozen objects whose fields have the names of the JSON keys.

A field is None if its value is unknown or cannot be computed from these trials. "The paper" is D. Duplyakin et al.,
"Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023; its tool is OrderSage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cbench.machine.passport import UnlikeFact
from cbench.order.claims import Claim, Family
from cbench.order.stats.hosts import HostComparison
from cbench.order.stats.pair_changes import PairChanges
from cbench.order.stats.pairwise import OrderComparison
from cbench.order.stats.within_run_effects import LabelEffect
from cbench.results import KEY, LEFT_OUT

Order = Literal["fixed", "random"]
ORDERS: tuple[Order, Order] = ("fixed", "random")
Within = Literal["position", "predecessor", "drift"]
WITHIN: tuple[Within, Within, Within] = ("position", "predecessor", "drift")


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """The rule and the level of the intervals of medians, and the rule for cases. Intervals use "exact" or "published"
    ranks; `case` is "algorithm" for the paper's Algorithm 2, or "tool" for OrderSage.
    """

    rule: str
    level: float
    case: str


@dataclass(frozen=True, slots=True)
class OrderDesign:
    """The arrangement of the runs in time; if it is unknown, `interleaved` is None and the numbers are omitted.
    `stretches`: the number of stretches of runs in one order; `p_so_few_stretches`: the probability of at most that
    many by chance. `pairs`: the number of pairs of neighboring runs, one of each order, that are compared; omitted if
    the orders are compared as two samples. `runs_left`: the number of runs of an unfinished study that are left.
    """

    interleaved: bool | None
    warnings: tuple[str, ...]
    runs_fixed: int | None = field(default=None, metadata={LEFT_OUT: None})
    runs_random: int | None = field(default=None, metadata={LEFT_OUT: None})
    stretches: int | None = field(default=None, metadata={LEFT_OUT: None})
    p_so_few_stretches: float | None = field(default=None, metadata={LEFT_OUT: None})
    pairs: int | None = field(default=None, metadata={LEFT_OUT: None})
    runs_left: int = field(default=0, metadata={LEFT_OUT: 0})

    @property
    def blocked(self) -> bool:
        """Whether the orders do not overlap in time, so that effects of order and time cannot be distinguished."""
        return self.interleaved is False and bool(self.runs_fixed) and bool(self.runs_random)


@dataclass(frozen=True, slots=True)
class LabelMedian:
    """The median of `n` trials at one position, or after one predecessor (None: the beginning of a run)."""

    label: int | str | None
    n: int
    median: float


@dataclass(frozen=True, slots=True)
class LabelTest:
    """The Kruskal-Wallis H over all labels. `labels`: the number of labels; `doubtful`: whether a label has fewer
    than five trials; `groups`: the medians of the labels that the report names.
    """

    h: float = field(metadata={KEY: "H"})
    doubtful: bool
    labels: int
    groups: tuple[LabelMedian, ...]


@dataclass(frozen=True, slots=True)
class OrderTest:
    """The results of one metric of one test: the comparison of fixed with random order, and effects of the order within
    the random runs.

    `n_fixed`, `n_random`: the number of compared values, on which means, medians and intervals are based. If runs are
    compared in pairs, `without_partner` other values are left out, because their pair has a value in only one order.
    `p`: from the chi-squared distribution; `p_permutation`: by permutation, exact or approximate; `p_brunner_munzel`:
    from the studentized rank sum; `p_paired`: from the signed ranks of `pairs` pairs of runs; `p_decides`: the p-value
    that determines `significant`; `p_adjusted`: `p_decides` corrected for the number of tests. `delta_pct_mean`,
    `delta_pct_median`: (fixed - random)/fixed of the means and medians, in %; `delta_pct_hl`: the Hodges-Lehmann
    estimate of this difference, with `delta_pct_interval`. `p_spread`: the p-value of the test for equal spread;
    `spread_ratio`: random over fixed. `first_trial`: the comparison of the first trial of each run with all other
    trials. `cov`: standard deviation / mean. `ci_needs`: the number of results that an interval requires, if there are
    too few. `gap`: the distance between the intervals, in widths of the wider one. `alike`: whether all values are
    equal. `drift_rho`: Spearman's correlation of the values with time. `runs_needed`: see PowerRule; `detectable_pct`:
    the smallest shift, in % of the median, that these runs detect with PowerRule's probability. `unit`, `better`: from
    the study's file. `hosts`: only with several hosts; medians, means and intervals then use values aligned to a common
    level. `pair_changes`: only if no pair of runs differs by about `delta_pct_hl`.
    """

    n_fixed: int
    n_random: int
    failed_fixed: int
    failed_random: int
    h: float | None = field(metadata={KEY: "H"})
    p: float | None
    p_permutation: float | None
    p_adjusted: float | None
    significant: bool
    eta2: float | None
    epsilon2: float | None
    delta_pct_mean: float | None
    delta_pct_median: float | None
    mean_fixed: float | None
    mean_random: float | None
    median_fixed: float | None
    median_random: float | None
    cov_fixed: float | None
    cov_random: float | None
    ci_fixed: tuple[float, float] | None
    ci_random: tuple[float, float] | None
    ci_needs: int | None
    case: int | None
    gap: float | None
    position_p: float | None
    position: LabelTest | None
    predecessor_p: float | None
    predecessor: LabelTest | None
    first_trial: LabelEffect | None
    drift_p: float | None
    drift_rho: float | None
    alike: bool
    runs_needed: int | None
    detectable_pct: float | None
    position_significant: bool
    predecessor_significant: bool
    drift_significant: bool
    p_brunner_munzel: float | None = None
    p_paired: float | None = None
    pairs: int | None = None
    p_decides: float | None = None
    delta_pct_hl: float | None = None
    delta_pct_interval: tuple[float, float] | None = None
    p_spread: float | None = None
    spread_ratio: float | None = None
    spread_significant: bool = False
    unit: str | None = field(default=None, metadata={LEFT_OUT: None})
    better: str | None = field(default=None, metadata={LEFT_OUT: None})
    hosts: HostComparison | None = field(default=None, metadata={LEFT_OUT: None})
    without_partner: int = field(default=0, metadata={LEFT_OUT: 0})
    pair_changes: PairChanges | None = field(default=None, metadata={LEFT_OUT: None})

    @property
    def failed(self) -> int:
        """The number of omitted values, over both orders."""
        return self.failed_fixed + self.failed_random

    def median(self, order: Order) -> tuple[float | None, tuple[float, float] | None]:
        """The median in one order, and its interval; each None if unknown."""
        if order == "fixed":
            return self.median_fixed, self.ci_fixed
        return self.median_random, self.ci_random

    def within(self, effect: Within) -> tuple[float | None, bool]:
        """The p-value of an effect within the runs or over the study (None: not tested), and whether the effect is
        significant.
        """
        if effect == "position":
            return self.position_p, self.position_significant
        if effect == "predecessor":
            return self.predecessor_p, self.predecessor_significant
        return self.drift_p, self.drift_significant

    def doubtful(self, effect: Within) -> bool:
        """Whether groups are too small for the effect's p-value to be trusted."""
        test = {"position": self.position, "predecessor": self.predecessor}.get(effect)
        return test is not None and test.doubtful


@dataclass(frozen=True, slots=True)
class PowerRule:
    """The rule behind `runs_needed`: the number of runs that detect a shift of `delta_pct` % of the median with
    probability `power`.
    """

    delta_pct: float
    power: float


@dataclass(frozen=True, slots=True)
class AfterMedians:
    """The median of the `n` trials of `test` in random runs in which the test `after` ran earlier, and the median of
    its other trials in random runs: a description, not a test.
    """

    test: str
    after: str | None
    n: int
    median: float
    median_others: float
    delta_pct: float | None


@dataclass(frozen=True, slots=True)
class PredecessorEffect(AfterMedians):
    """The comparison of the trials of `test` right after the test `after` (None: at the beginning of a run) with all
    its other trials. In SuiteResult.earlier, `after` ran anywhere earlier in the run.
    """

    p: float
    p_holm: float
    significant: bool


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Medians of a test in a separate process and in a process shared with other tests; `times`: in_process / isolated,
    if both are positive. `after`: the test whose earlier run changes this test most, None if none is significant.
    """

    test: str
    isolated: float | None
    in_process: float | None
    times: float | None
    p_adjusted: float | None
    significant: bool
    after: str | None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """Further results of a suite. `isolated`: "no", "yes", or "both"; with "both", isolated runs replace the fixed
    ones, so all fields with `fixed` in their names refer to isolated runs. `earlier`: for each test, the test that
    changes it most by running anywhere earlier in a run. `carry_over`: only with "both".
    """

    harness: str
    isolated: str
    earlier: tuple[PredecessorEffect, ...] = ()
    carry_over: tuple[CarryOver, ...] = ()


@dataclass(frozen=True, slots=True)
class UnlikeHost:
    """The comparison of one host with the others: of its level, or of the order's effect on it. `away_pct`: the
    distance of its level above the other hosts' levels, in % (negative: below); None for the effect.
    """

    host: str
    test: str
    what: Literal["level", "effect"]
    away_pct: float | None
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class OrderHosts:
    """The hosts of a study. `pooled_significant`: the number of tests that would be significant if hosts were pooled,
    for comparison only. `unlike`: the comparisons of each host with the others, smallest p first, corrected by Holm's
    method over hosts, tests, and both kinds of difference. `passports`: the facts in which the hosts' passports differ.
    """

    names: tuple[str, ...]
    pooled_significant: int
    unlike: tuple[UnlikeHost, ...]
    passports: tuple[UnlikeFact, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderResult:
    """The whole analysis. `verdict`: lines of text, the most important first. `order_matters`: None if effects of order
    and time cannot be distinguished. `claims`: the verdict's claims, which share one error rate, `alpha`. `described`:
    for affected tests without a significant direct predecessor, the earlier test with the largest difference, which is
    not a claim.
    """

    order_matters: bool | None
    alpha: float
    alpha_bonferroni: float
    correction: str
    intervals: IntervalRule
    null: str
    failures: str
    design: OrderDesign
    tests: Mapping[str, OrderTest]
    power: PowerRule
    predecessors: tuple[PredecessorEffect, ...]
    across: OrderComparison
    claims: tuple[Claim, ...] = ()
    verdict: tuple[str, ...] = ()
    suite: SuiteResult | None = field(default=None, metadata={LEFT_OUT: None})
    hosts: OrderHosts | None = field(default=None, metadata={LEFT_OUT: None})
    described: tuple[AfterMedians, ...] = field(default=(), metadata={LEFT_OUT: ()})

    @property
    def arms(self) -> tuple[str, str]:
        """The names of the two arms for headings: fixed and random order, or isolated tests and one process for all."""
        return ("isolated", "in-process") if self.suite and self.suite.isolated == "both" else ORDERS

    @property
    def counted_runs(self) -> str:
        """The unit of a required number of runs, in the plural."""
        return "runs of each order" if self.arms == ORDERS else "pairs of an isolated and an in-process run"

    @property
    def compares(self) -> bool:
        """Whether any test was compared between the two arms."""
        return any(test.p is not None for test in self.tests.values())

    @property
    def arm_labels(self) -> tuple[str, str]:
        """The names of the two arms for use in a sentence or a figure."""
        fixed, random = self.arms
        return (f"{fixed} order", f"{random} order") if self.arms == ORDERS else (fixed, random)

    def claim(self, family: Family) -> Claim | None:
        """The claim about a family; None if the data do not test the family."""
        return next((each for each in self.claims if each.family == family), None)

    def by_p(self, effect: Within | None = None) -> list[tuple[str, OrderTest]]:
        """The tests by increasing p, tests without a p last. `effect`: sort by the p of this effect; None: by the
        deciding p.
        """

        def place(item: tuple[str, OrderTest]) -> float:
            p = item[1].within(effect)[0] if effect else item[1].p_decides
            return 2.0 if p is None else p

        return sorted(self.tests.items(), key=place)

    @property
    def pairs(self) -> int:
        """The number of pairs of a test and its direct predecessor, including pairs that are not named."""
        return sum(test.predecessor.labels for test in self.tests.values() if test.predecessor)

    @property
    def significant_pairs(self) -> str:
        """The number of significant pairs, such as "3 of 20"."""
        yes = sum(each.significant for each in self.predecessors)
        return f"{'at least ' if yes == len(self.predecessors) < self.pairs else ''}{yes:,} of {self.pairs:,}"

    @property
    def published(self) -> bool:
        """Whether the analysis uses the definitions of OrderSage, such as p by chi-squared."""
        return self.null == "chi2"
