"""The result of an order analysis: frozen objects whose fields are named as the keys of its JSON.

None: not known, or it cannot be computed from these trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cbench.machine.passport import UnlikeFact
from cbench.order.claims import Claim, Family
from cbench.order.stats.hosts import HostComparison
from cbench.order.stats.pairwise import OrderComparison
from cbench.order.stats.within_run_effects import LabelEffect
from cbench.results import KEY, LEFT_OUT

Order = Literal["fixed", "random"]
ORDERS: tuple[Order, Order] = ("fixed", "random")
Within = Literal["position", "predecessor", "drift"]
WITHIN: tuple[Within, Within, Within] = ("position", "predecessor", "drift")


@dataclass(frozen=True, slots=True)
class IntervalRule:
    """The rule and the level of the intervals of medians, and the rule for cases: "exact" ranks and the "algorithm" of
    the
    paper, or the "published" ones and the "tool" of OrderSage."""

    rule: str
    level: float
    case: str


@dataclass(frozen=True, slots=True)
class OrderDesign:
    """How the runs lay in time; `interleaved` is None, and the numbers are left out, where that is not known. `pairs`:
    so many runs are compared with a neighbor in the other order; left out where the orders are two samples."""

    interleaved: bool | None
    warnings: tuple[str, ...]
    runs_fixed: int | None = field(default=None, metadata={LEFT_OUT: None})
    runs_random: int | None = field(default=None, metadata={LEFT_OUT: None})
    stretches: int | None = field(default=None, metadata={LEFT_OUT: None})
    p_so_few_stretches: float | None = field(default=None, metadata={LEFT_OUT: None})
    pairs: int | None = field(default=None, metadata={LEFT_OUT: None})

    @property
    def blocked(self) -> bool:
        """Whether the orders lie apart in time, so that order and time cannot be told apart."""
        return self.interleaved is False and bool(self.runs_fixed) and bool(self.runs_random)


@dataclass(frozen=True, slots=True)
class LabelMedian:
    """`n` trials at one position, or after one predecessor (None: the beginning of a run)."""

    label: int | str | None
    n: int
    median: float


@dataclass(frozen=True, slots=True)
class LabelTest:
    """Kruskal and Wallis's H over all `labels`; `doubtful`: some have few trials. `groups`: those that are named."""

    h: float = field(metadata={KEY: "H"})
    doubtful: bool
    labels: int
    groups: tuple[LabelMedian, ...]


@dataclass(frozen=True, slots=True)
class OrderTest:
    """One metric of one test: fixed against random order, and what the order does within the random runs.

    p: by the chi-squared distribution; p_permutation: exact, or by moments; p_brunner_munzel: of the studentized rank
    sum; p_paired: of the signed ranks of `pairs` of runs; p_decides: the one on which `significant` rests, p_adjusted:
    the same for the number of tests. delta_pct: (fixed - random)/fixed, delta_pct_hl: Hodges and Lehmann's estimate of
    it, with an interval. p_spread: of equal spread, spread_ratio: random over fixed. first_trial: those that were the
    first of their run.
    cov: standard deviation / mean. ci_needs: how many results an interval takes where there are too few. gap: between
    the intervals, in widths of the wider one. alike: all values are one. unit, better: as the study's file has them.
    hosts: with several hosts only; then medians, means and intervals are of values with all hosts at one level.
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

    @property
    def failed(self) -> int:
        """Values left out in both orders."""
        return self.failed_fixed + self.failed_random

    def median(self, order: Order) -> tuple[float | None, tuple[float, float] | None]:
        """The median in one order, and its interval."""
        if order == "fixed":
            return self.median_fixed, self.ci_fixed
        return self.median_random, self.ci_random

    def within(self, effect: Within) -> tuple[float | None, bool]:
        """p and significance of an effect within the runs or over the study."""
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
    """`runs_needed` are for a shift of `delta_pct` % of the median, detected with probability `power`."""

    delta_pct: float
    power: float


@dataclass(frozen=True, slots=True)
class PredecessorEffect:
    """Trials of `test` right after `after` (None: the beginning of a run) against all others of the test."""

    test: str
    after: str | None
    n: int
    median: float
    median_others: float
    delta_pct: float | None
    p: float
    p_holm: float
    significant: bool


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Medians of a test in a process of its own and among others; `times`: in_process / isolated, of positive ones.
    `after`: the test that changes it most by running before it, None where none is significant."""

    test: str
    isolated: float | None
    in_process: float | None
    times: float | None
    p_adjusted: float | None
    significant: bool
    after: str | None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The results of a suite beside its orders.

    isolated: "no", "yes", or "both", where isolated runs take the place of fixed ones: what is called fixed is theirs.
    earlier: of each test the one that, by running anywhere before it, changes it most. carry_over: only with "both".
    """

    harness: str
    isolated: str
    earlier: tuple[PredecessorEffect, ...] = ()
    carry_over: tuple[CarryOver, ...] = ()


@dataclass(frozen=True, slots=True)
class UnlikeHost:
    """A host against the others: its level, or its effect of the order. `away_pct`: of the level above theirs."""

    host: str
    test: str
    what: Literal["level", "effect"]
    away_pct: float | None
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class OrderHosts:
    """The hosts of a study. pooled_significant: how many tests differ if hosts are pooled, which is not the decision.
    unlike: the smallest p first, Holm over hosts, tests and the two questions. passports: facts that differ."""

    names: tuple[str, ...]
    pooled_significant: int
    unlike: tuple[UnlikeHost, ...]
    passports: tuple[UnlikeFact, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderResult:
    """The whole analysis; `verdict`: in words, the most important line first. `order_matters`: None where order and
    time cannot be told apart. `claims`: what the verdict says at one error rate, `alpha`, for all of it."""

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

    @property
    def arms(self) -> tuple[str, str]:
        """The names of the two arms for headings: fixed and random order, or isolated tests and one process for all."""
        return ("isolated", "in-process") if self.suite and self.suite.isolated == "both" else ORDERS

    @property
    def arm_labels(self) -> tuple[str, str]:
        """The same in a sentence or a figure."""
        fixed, random = self.arms
        return (f"{fixed} order", f"{random} order") if self.arms == ORDERS else (fixed, random)

    def claim(self, family: Family) -> Claim | None:
        """The claim about a family; None if the data do not test it."""
        return next((each for each in self.claims if each.family == family), None)

    def deciding_p(self, test: OrderTest) -> float | None:
        """The p-value on which a test's significance rests, before the correction."""
        return test.p_decides

    def by_p(self, effect: Within | None = None) -> list[tuple[str, OrderTest]]:
        """The tests, the smallest p first, without one last. `effect`: the p to sort by; None: the p that decides."""

        def place(item: tuple[str, OrderTest]) -> float:
            p = item[1].within(effect)[0] if effect else self.deciding_p(item[1])
            return 2.0 if p is None else p

        return sorted(self.tests.items(), key=place)

    @property
    def pairs(self) -> int:
        """Pairs of a test and what ran right before it, also of those that are not named."""
        return sum(test.predecessor.labels for test in self.tests.values() if test.predecessor)

    @property
    def significant_pairs(self) -> str:
        """How many of these are significant: "3 of 20"."""
        yes = sum(each.significant for each in self.predecessors)
        return f"{'at least ' if yes == len(self.predecessors) < self.pairs else ''}{yes:,} of {self.pairs:,}"

    @property
    def published(self) -> bool:
        """Whether it is made by the definitions of OrderSage's own tool, such as p by chi-squared."""
        return self.null == "chi2"
