"""The whole analysis of a study's trials: OrderSage's plain test for each series, and what the order does within runs.

D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cbench.stats.order import blocks, cases, families, median_ci, within
from cbench.stats.order.cases import Interval
from cbench.stats.order.data import Codes, Trials, Values
from cbench.stats.order.kruskal import Kruskal, of_sorted

TRIAL, RUN, PUBLISHED = "trial", "run", "published"
FAILURES = (TRIAL, RUN, PUBLISHED)


@dataclass(frozen=True, slots=True)
class Options:
    """`level`: of the intervals; None: 1 - alpha/number of series, as OrderSage's tool has it.

    failures: what a failed trial takes with it: itself only; its whole run; or as OrderSage's tool does, a fixed run
    whole and of a random one the trial alone.
    """

    alpha: float = 0.05
    correction: str = families.BONFERRONI
    interval: str = median_ci.EXACT
    level: float | None = 0.95
    case: str = cases.ALGORITHM
    failures: str = TRIAL


@dataclass(frozen=True, slots=True)
class Part:
    """One series in one order. `values`: those of the trials that count, sorted."""

    values: Values = field(repr=False)
    failed: int
    mean: float
    median: float
    deviation: float  # population standard deviation


@dataclass(slots=True)
class Result:
    """One series. None: it cannot be computed from these trials."""

    name: str
    fixed: Part
    random: Part
    test: Kruskal | None
    delta_mean: float | None
    delta_median: float | None
    position: within.Grouped | None = None
    predecessor: within.Grouped | None = None
    after: list[within.Against] = field(default_factory=list)
    first: within.Against | None = None
    drift: within.Drift | None = None
    p_adjusted: float | None = None
    significant: bool = False

    def interval(self, random: bool, rule: str, level: float) -> Interval | None:
        """The median's interval in one order; None where n is too small for it."""
        part = self.random if random else self.fixed
        found = median_ci.ranks(part.values.size, level, rule) if part.values.size else None
        if found is None:
            return None
        return Interval(float(part.values[found[0] - 1]), part.median, float(part.values[found[1] - 1]))

    def case(self, rule: str, interval: str, level: float) -> int | None:
        """The case by a rule, for intervals of a rule and level; None where one of them is missing."""
        fixed, random = self.interval(False, interval, level), self.interval(True, interval, level)
        return cases.case(fixed, random, rule) if fixed is not None and random is not None else None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All series, in the data's order. `sequence`: of the runs in time, None where runs are not known."""

    options: Options
    level: float
    results: list[Result]
    sequence: blocks.Sequence | None

    @property
    def order_matters(self) -> bool:
        """The verdict on the family: whether any series differs between the orders."""
        return any(result.significant for result in self.results)


def analyze(trials: Trials, options: Options, tick: Callable[[int], None] = lambda _done: None) -> Analysis:
    """Everything. `tick` is told how many series are done."""
    before = trials.predecessors()
    gone = dropped(trials, options.failures)
    found = []
    for number, rows in enumerate(trials.by_series()):
        found.append(_series(trials, number, rows, before, gone))
        tick(number + 1)
    p = np.array([np.nan if each.test is None else each.test.p for each in found])
    passed = families.significant(p, options.alpha, options.correction)
    for each, adjusted, yes in zip(found, families.adjusted(p, options.correction), passed, strict=True):
        each.p_adjusted = None if np.isnan(adjusted) else float(adjusted)
        each.significant = bool(yes)
    tested = int((~np.isnan(p)).sum())
    level = options.level if options.level is not None else 1 - options.alpha / max(tested, 1)
    return Analysis(options, level, found, _sequence(trials))


def dropped(trials: Trials, failures: str) -> NDArray[np.bool_]:
    """The rows that do not count: failed ones, and what the rule takes with them."""
    failed = np.isnan(trials.value)
    if failures == TRIAL or trials.run is None or not failed.any():
        return failed
    taking = failed if failures == RUN else failed & ~trials.random
    return np.asarray(failed | np.isin(trials.run, np.unique(trials.run[taking])))


def _series(
    trials: Trials, number: int, rows: NDArray[np.intp], before: Codes | None, gone: NDArray[np.bool_]
) -> Result:
    random, value = trials.random[rows], trials.value[rows]
    counts = ~gone[rows]
    fixed_part = _part(value[counts & ~random], int((~random).sum()))
    random_part = _part(value[counts & random], int(random.sum()))
    test = None
    if fixed_part.values.size and random_part.values.size:
        test = of_sorted([fixed_part.values, random_part.values])
    result = Result(
        trials.names[number],
        fixed_part,
        random_part,
        test,
        _delta(fixed_part.mean, random_part.mean),
        _delta(fixed_part.median, random_part.median),
    )
    inside = counts & random
    if trials.position is not None and inside.any():
        positions = trials.position[rows][inside]
        result.position = within.grouped(value[inside], positions)
        result.first = within.first_trial(value[inside], positions)
    if before is not None and inside.any():
        labels = before[rows][inside]
        result.predecessor = within.grouped(value[inside], labels)
        result.after = within.against_others(value[inside], labels)
    if trials.run is not None and trials.timed and counts.any():
        away = np.where(random, value - random_part.median, value - fixed_part.median)
        result.drift = within.drift(away[counts], trials.run[rows][counts].astype(np.float64))
    return result


def _part(values: Values, all_of_them: int) -> Part:
    if not values.size:
        return Part(values, all_of_them, np.nan, np.nan, np.nan)
    ordered = np.sort(values)
    median = within.median_of_sorted(ordered)
    return Part(ordered, all_of_them - values.size, float(values.mean()), median, float(values.std()))


def _delta(fixed: float, random: float) -> float | None:
    """(fixed - random)/fixed in %, the paper's sign; None where the fixed one is 0 or missing."""
    if np.isnan(fixed) or np.isnan(random) or fixed == 0:
        return None
    return 100 * (fixed - random) / fixed


def _sequence(trials: Trials) -> blocks.Sequence | None:
    if trials.run is None or not trials.timed or not trials.run.size:
        return None
    _, first = np.unique(trials.run, return_index=True)
    return blocks.sequence(trials.random[first])
