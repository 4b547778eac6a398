"""The whole analysis of a study's trials: OrderSage's plain test for each series, and what the order does within runs.

D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isnan, sqrt

import numpy as np

from cbench.order.stats import blocks, ci_overlap, median_ci, permutation, within_run_effects
from cbench.order.stats.ci_overlap import MedianInterval
from cbench.stats import multiple_testing
from cbench.stats.kruskal import Kruskal, of_sorted
from cbench.stats.trials import Codes, Flags, Trials, Values

TRIAL, RUN, PUBLISHED = "trial", "run", "published"
FAILURES = (TRIAL, RUN, PUBLISHED)
PERMUTATION, CHI2 = "permutation", "chi2"
NULLS = (PERMUTATION, CHI2)


@dataclass(frozen=True, slots=True)
class AnalysisRules:
    """By which definitions an analysis is made. `level`: of the intervals; None: 1 - alpha/number of series, as
    OrderSage's tool has it.

    failures: what a failed trial takes with it: itself only; its whole run; or as OrderSage's tool does, a fixed run
    whole and of a random one the trial alone. null: what H is compared with for the decision, its distribution under
    permutation (permutation.py), or as the paper does, chi-squared.
    """

    alpha: float = 0.05
    correction: str = multiple_testing.BONFERRONI
    interval: str = median_ci.EXACT
    level: float | None = 0.95
    case: str = ci_overlap.ALGORITHM
    failures: str = TRIAL
    null: str = PERMUTATION


PUBLISHED_RULES = AnalysisRules(
    correction=multiple_testing.NONE,
    interval=median_ci.PUBLISHED,
    level=None,
    case=ci_overlap.TOOL,
    failures=PUBLISHED,
    null=CHI2,
)
"""What OrderSage's own tool computes, and the paper's tables show: p-values are not corrected, intervals are."""


@dataclass(frozen=True, slots=True)
class OrderSample:
    """One series in one order. `values`: those of the trials that count, sorted."""

    values: Values = field(repr=False)
    failed: int
    mean: float
    median: float
    deviation: float  # population standard deviation


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """One series. None: it cannot be computed from these trials. p_adjusted, significant: known when all series are."""

    name: str
    fixed: OrderSample
    random: OrderSample
    test: Kruskal | None
    delta_mean: float | None
    delta_median: float | None
    position: within_run_effects.Grouped | None
    predecessor: within_run_effects.Grouped | None
    after: within_run_effects.Matrix | None
    first: within_run_effects.LabelEffect | None
    drift: within_run_effects.Drift | None
    p_permutation: float | None
    p_adjusted: float | None = None
    significant: bool = False

    def interval(self, random: bool, rule: str, level: float) -> MedianInterval | None:
        """The median's interval in one order; None where n is too small for it."""
        part = self.random if random else self.fixed
        found = median_ci.ranks(part.values.size, level, rule) if part.values.size else None
        if found is None:
            return None
        return MedianInterval(float(part.values[found[0] - 1]), part.median, float(part.values[found[1] - 1]))

    def case(self, rule: str, interval: str, level: float) -> int | None:
        """The case by a rule, for intervals of a rule and level; None where one of them is missing."""
        fixed, random = self.interval(False, interval, level), self.interval(True, interval, level)
        return ci_overlap.case(fixed, random, rule) if fixed is not None and random is not None else None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All series, in the data's order. `sequence`: of the runs in time, None where runs are not known."""

    rules: AnalysisRules
    level: float
    results: tuple[SeriesResult, ...]
    sequence: blocks.Sequence | None

    @property
    def order_matters(self) -> bool:
        """The verdict on the family: whether any series differs between the orders."""
        return any(result.significant for result in self.results)


@np.errstate(over="ignore", invalid="ignore")  # of values near the largest number only ranks and medians are known
def analyze(trials: Trials, rules: AnalysisRules) -> Analysis:
    """Everything."""
    trials, slices = trials.grouped()
    every = _Columns(trials, slices, trials.predecessors(), dropped(trials, rules.failures))
    found = [_series(name, every, number) for number, name in enumerate(trials.names)]
    p = np.array([_deciding(each, rules.null) for each in found])
    adjusted = multiple_testing.adjusted(p, rules.correction).tolist()
    results = tuple(
        replace(each, p_adjusted=None if isnan(value) else value, significant=value < rules.alpha)
        for each, value in zip(found, adjusted, strict=True)
    )
    tested = int((~np.isnan(p)).sum())
    level = rules.level if rules.level is not None else 1 - rules.alpha / max(tested, 1)
    return Analysis(rules, level, results, _sequence(trials))


def dropped(trials: Trials, failures: str) -> Flags | None:
    """The rows that do not count: failed ones, and what the rule takes with them. None where all count."""
    failed = np.isnan(trials.value)
    if not failed.any():
        return None
    if failures == TRIAL or trials.run is None:
        return failed
    taking = failed if failures == RUN else failed & ~trials.random
    return np.asarray(failed | np.isin(trials.run, np.unique(trials.run[taking])))


@dataclass(frozen=True, slots=True)
class _Columns:
    trials: Trials
    slices: list[slice]
    before: Codes | None
    gone: Flags | None


def _series(name: str, every: _Columns, number: int) -> SeriesResult:
    trials, rows = every.trials, every.slices[number]
    random, value = trials.random[rows], trials.value[rows]
    fixed = ~random
    run, position, before = (
        None if each is None else each[rows] for each in (trials.run, trials.position, every.before)
    )
    failed_fixed = failed_random = 0
    if every.gone is not None and every.gone[rows].any():
        counts = ~every.gone[rows]
        failed_fixed, failed_random = (int(np.count_nonzero(each & ~counts)) for each in (fixed, random))
        random, fixed, value = random[counts], fixed[counts], value[counts]
        run, position, before = (None if each is None else each[counts] for each in (run, position, before))
    inside = value[random]
    fixed_part, random_part = _part(value[fixed], failed_fixed), _part(inside, failed_random)
    test = p_permutation = None
    if fixed_part.values.size and random_part.values.size:
        test = of_sorted([fixed_part.values, random_part.values])
    if test is not None:
        p_permutation = permutation.p_value(test.h, test.lengths, fixed_part.values.size, random_part.values.size)
    places = first = drift = None
    against: tuple[within_run_effects.Grouped | None, within_run_effects.Matrix | None] = None, None
    if position is not None and inside.size:
        ordered = within_run_effects.Ordered.of(inside)
        places = within_run_effects.grouped(ordered, position[random])
        first = within_run_effects.first_trial(ordered, position[random])
        if before is not None:
            against = within_run_effects.against_others(ordered, before[random]) or against
    if run is not None and trials.timed and value.size:
        away = value - np.where(random, random_part.median, fixed_part.median)
        drift = within_run_effects.drift(away, run) if np.isfinite(away).all() else None
    return SeriesResult(
        name,
        fixed_part,
        random_part,
        test,
        _delta(fixed_part.mean, random_part.mean),
        _delta(fixed_part.median, random_part.median),
        places,
        *against,
        first,
        drift,
        p_permutation,
    )


def _deciding(result: SeriesResult, null: str) -> float:
    if result.test is None or result.p_permutation is None:
        return np.nan
    return result.test.p if null == CHI2 else result.p_permutation


def _part(values: Values, failed: int) -> OrderSample:
    if not values.size:
        return OrderSample(values, failed, np.nan, np.nan, np.nan)
    ordered = np.sort(values)
    mean = float(values.sum()) / values.size
    away = ordered - mean
    return OrderSample(
        ordered, failed, mean, within_run_effects.median_of_sorted(ordered), sqrt(float(away @ away) / values.size)
    )


def _delta(fixed: float, random: float) -> float | None:
    """(fixed - random)/fixed in %, the paper's sign; None where the fixed one is 0 or missing."""
    if np.isnan(fixed) or np.isnan(random) or fixed == 0:
        return None
    return 100 * (fixed - random) / fixed


def _sequence(trials: Trials) -> blocks.Sequence | None:
    if trials.run is None or not trials.timed or not trials.run.size:
        return None
    kinds = np.zeros(int(trials.run.max()) + 1, dtype=bool)  # all rows of a run have one order
    kinds[trials.run] = trials.random
    return blocks.sequence(kinds)
