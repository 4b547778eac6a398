"""The whole analysis of a study's trials: OrderSage's plain test for each series, and what the order does within runs.

D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb, isnan, sqrt

import numpy as np

from cbench.order.stats import median_ci, permutation, within_run_effects
from cbench.order.stats.median_ci import MedianInterval
from cbench.stats import multiple_testing
from cbench.stats.kruskal import Kruskal, of_sorted
from cbench.stats.trials import Codes, Flags, Trials, Values

TRIAL, RUN = "trial", "run"
LEVEL = 0.95
FEW = 0.001
"""A sequence of runs with so few stretches that chance makes it more rarely than this is called blocked."""


@dataclass(frozen=True, slots=True)
class AnalysisRules:
    """By which definitions an analysis is made. `failures`: what a failed trial takes with it, itself or its RUN.

    `published`: by those of OrderSage's own tool, which the paper's tables show. p-values are by chi-squared and not
    corrected, but intervals are, for the number of series; a failed trial takes its run with it in fixed order only.
    """

    alpha: float = 0.05
    failures: str = TRIAL
    published: bool = False

    @property
    def correction(self) -> str:
        """For the number of series, one of multiple_testing's."""
        return multiple_testing.NONE if self.published else multiple_testing.BONFERRONI


@dataclass(frozen=True, slots=True)
class OrderSample:
    """One series in one order. `values`: those of the trials that count, sorted."""

    values: Values = field(repr=False)
    failed: int
    mean: float
    median: float
    deviation: float  # population standard deviation

    def interval(self, level: float, published: bool = False) -> MedianInterval | None:
        """The median's interval; None where there are too few values for it."""
        ranks = median_ci.ranks(self.values.size, level, published)
        if ranks is None:
            return None
        return MedianInterval(float(self.values[ranks[0] - 1]), self.median, float(self.values[ranks[1] - 1]))


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
    predecessor: within_run_effects.AgainstOthers | None
    first: within_run_effects.LabelEffect | None
    drift: within_run_effects.Drift | None
    p_permutation: float | None
    p_adjusted: float | None = None
    significant: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """Runs of both orders in time: how many stretches of equal orders, and P(that few or fewer) by chance.

    A. Wald, J. Wolfowitz, "On a test whether two samples are from the same population", Ann. Math. Statist. 11 (1940)
    147-162. Where the orders were not mixed in time, order and time are confounded.
    """

    fixed: int
    random: int
    stretches: int
    p_few: float

    @property
    def interleaved(self) -> bool:
        """Whether both orders were spread over the same time."""
        if not self.fixed or not self.random:
            return False
        if self.stretches == 2 and self.fixed + self.random > 2:
            return False
        return self.p_few >= FEW


@dataclass(frozen=True, slots=True)
class Analysis:
    """All series, in the data's order. `sequence`: of the runs in time, None where runs are not known."""

    rules: AnalysisRules
    level: float
    results: tuple[SeriesResult, ...]
    sequence: Sequence | None

    @property
    def order_matters(self) -> bool:
        """The verdict on the family: whether any series differs between the orders."""
        return any(result.significant for result in self.results)


@np.errstate(over="ignore", invalid="ignore")  # of values near the largest number only ranks and medians are known
def analyze(trials: Trials, rules: AnalysisRules) -> Analysis:
    """Everything."""
    trials, slices = trials.grouped()
    before, gone = trials.predecessors(), dropped(trials, rules)
    series = [_series(trials, number, rows, before, gone) for number, rows in enumerate(slices)]
    p = np.array([_deciding(each, rules.published) for each in series])
    adjusted = multiple_testing.adjusted(p, rules.correction).tolist()
    results = tuple(
        replace(each, p_adjusted=None if isnan(value) else value, significant=value < rules.alpha)
        for each, value in zip(series, adjusted, strict=True)
    )
    tested = int((~np.isnan(p)).sum())
    level = 1 - rules.alpha / max(tested, 1) if rules.published else LEVEL
    return Analysis(rules, level, results, _sequence(trials))


def dropped(trials: Trials, rules: AnalysisRules) -> Flags | None:
    """The rows that do not count: failed ones, and what these take with them. None where all count."""
    failed = np.isnan(trials.value)
    if not failed.any():
        return None
    if trials.run is None or (rules.failures == TRIAL and not rules.published):
        return failed
    taking = failed & ~trials.random if rules.published else failed
    return np.asarray(failed | np.isin(trials.run, np.unique(trials.run[taking])))


def _series(trials: Trials, number: int, rows: slice, before: Codes | None, gone: Flags | None) -> SeriesResult:
    random, value = trials.random[rows], trials.value[rows]
    fixed = ~random
    run, position, before = (None if each is None else each[rows] for each in (trials.run, trials.position, before))
    failed_fixed = failed_random = 0
    if gone is not None and gone[rows].any():
        counts = ~gone[rows]
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
    places = against = first = drift = None
    if position is not None and inside.size:
        ordered = within_run_effects.Ordered.of(inside)
        places = within_run_effects.grouped(ordered, position[random])
        first = within_run_effects.first_trial(ordered, position[random])
        if before is not None:
            against = within_run_effects.against_others(ordered, before[random])
    if run is not None and trials.timed and value.size:
        away = value - np.where(random, random_part.median, fixed_part.median)
        drift = within_run_effects.drift(away, run) if np.isfinite(away).all() else None
    return SeriesResult(
        trials.names[number],
        fixed_part,
        random_part,
        test,
        _delta(fixed_part.mean, random_part.mean),
        _delta(fixed_part.median, random_part.median),
        places,
        against,
        first,
        drift,
        p_permutation,
    )


def _deciding(result: SeriesResult, published: bool) -> float:
    if result.test is None or result.p_permutation is None:
        return np.nan
    return result.test.p if published else result.p_permutation


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


def _sequence(trials: Trials) -> Sequence | None:
    if trials.run is None or not trials.timed or not trials.run.size:
        return None
    kinds = np.zeros(int(trials.run.max()) + 1, dtype=bool)  # all rows of a run have one order
    kinds[trials.run] = trials.random
    return sequence(kinds)


def sequence(random: Flags) -> Sequence:
    """From the order of each run, in time."""
    ones = int(random.sum())
    stretches = int((random[1:] != random[:-1]).sum()) + 1 if random.size else 0
    return Sequence(random.size - ones, ones, stretches, few(random.size - ones, ones, stretches))


def few(a: int, b: int, stretches: int) -> float:
    """P(at most so many stretches) of a + b places, each sequence equally likely; 1 where there is one kind only."""
    if not a or not b:
        return 1.0
    total = 0
    for count in range(2, stretches + 1):
        half = count // 2
        if count % 2:
            total += comb(a - 1, half) * comb(b - 1, half - 1) + comb(a - 1, half - 1) * comb(b - 1, half)
        else:
            total += 2 * comb(a - 1, half - 1) * comb(b - 1, half - 1)
    return total / comb(a + b, a)
