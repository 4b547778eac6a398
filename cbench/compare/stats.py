"""Decide whether the second of two sets of measurements is faster, slower, or the same, from numbers alone.

Trials of one process share its memory layout and are not independent (T. Kalibera, R. Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013: repeat at the highest level that varies). Each process is therefore one number, its
headline. If there are so few processes that no rank-sum test can reach the level, nothing can be said about the
programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import comb, exp, inf, log, sqrt
from statistics import NormalDist, fmean, median

from cbench.stats.center import center
from cbench.stats.rank import Number, RankSum, RatioInterval, rank_sum, ratio_interval

POWER = 0.8
"""The power that defines the smallest detectable difference."""

CENTER = "center"
"""The headline that is the robust center: the point where the values are densest."""
EQUAL, STEP, SAME = "equal", "equal to one step", "same within the margin"
LOWER, HIGHER = "lower", "higher"
BELOW = "a difference below the threshold"
NOTHING, TOO_FEW = "no difference shown", "too few to tell"

Processes = Sequence[Sequence[Number]]


class NoHeadline(ValueError):
    """Raised if a process has no floor because none of its values repeats."""


def _lowest_repeated(values: Sequence[Number]) -> Number | None:
    return min((value for value, often in Counter(values).items() if often > 1), default=None)


def _floor(values: Sequence[Number]) -> Number:
    lowest = _lowest_repeated(values)
    if lowest is None:
        raise NoHeadline("no value repeats")
    return lowest


def _center(values: Sequence[Number], quantum: Number = 1) -> Number:
    return center(values, quantum).value


HEADLINES: Mapping[str, Callable[[Sequence[Number]], Number]] = {
    "median": median,
    "floor": _floor,
    "min": min,
    "mean": fmean,
    CENTER: _center,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the second set with the first.

    `a`, `b`: the headlines over all processes, in the values' own unit. `spread_a`, `spread_b`: highest minus lowest
    headline of the processes, None if there is only one. `difference`: b - a if both are constant, or only one of them
    is 0, and there are enough processes to rule out chance; None otherwise. `ratio`: with an `interval`, the median
    ratio of all pairs, otherwise b / a; infinite if only a is 0. `interval`: None if there is no valid interval.
    `detectable`: the smallest relative difference that would have been detected with probability POWER, if this were
    the only comparison. `p_same`: the result of equivalence(), None if there is no threshold. `p_holm`, `p_same_holm`:
    both p-values corrected for all comparisons of the family, which determine the outcome. `family`: the number of
    comparisons in the family.
    """

    headline: str
    a: Number
    b: Number
    processes: tuple[int, int]
    spread_a: Number | None
    spread_b: Number | None
    difference: Number | None
    ratio: float
    interval: RatioInterval | None
    test: RankSum
    detectable: float | None
    p_same: float | None = None
    quantum: Number = 1
    outcome: str = NOTHING
    p_holm: float | None = None
    p_same_holm: float | None = None
    family: int = 1


def fewest(alpha: float) -> int:
    """The fewest processes per side with which a rank-sum test can be significant."""
    return next(n for n in count(1) if least_p(n, n) <= alpha)


def least_p(m: int, n: int) -> float:
    """The smallest possible p-value of a two-sided rank-sum test of `m` against `n` different values. If values are
    equal and `m` is not `n`, p can be half as large; claims are conservative in this case.
    """
    return min(1.0, 2 / comb(m + n, n))


def cycle_exact(clean: Processes, quantum: Number) -> bool:
    """Whether all undisturbed trials of each process equal the process's floor, within the counter's resolution."""
    step = quantum if quantum > 1 else 0
    for values in clean:
        lowest = _lowest_repeated(values)
        if lowest is None or any(abs(value - lowest) > step for value in values):
            return False
    return bool(clean)


def compare_samples(
    a: Processes,
    b: Processes,
    headline: str,
    alpha: float,
    threshold: float | None = None,
    quantum: Number = 1,
) -> Comparison:
    """Compare the processes' values by a headline of HEADLINES; `quantum` is the counter's step. The values of each
    side are all 0 or all above 0.

    `threshold`: the largest ratio at which both sides count as the same, minus 1.

    Raises NoHeadline if floors are requested and a process has none.
    """
    of = partial(_center, quantum=quantum) if headline == CENTER else HEADLINES[headline]
    heads_a, heads_b = [of(values) for values in a], [of(values) for values in b]
    at_a, at_b = _middle(heads_a), _middle(heads_b)
    apart = _same(heads_a, heads_b) or not (at_a and at_b)
    difference = at_b - at_a if apart and least_p(len(a), len(b)) <= alpha else None
    interval = None
    ratio = at_b / at_a if at_a else inf if at_b else 1.0
    if difference is None and at_a and at_b:
        interval = ratio_interval(heads_a, heads_b, alpha)
        ratio = interval.ratio
    test = rank_sum(heads_a, heads_b)
    alone = Comparison(
        headline=headline,
        a=at_a,
        b=at_b,
        processes=(len(a), len(b)),
        spread_a=_range(heads_a),
        spread_b=_range(heads_b),
        difference=difference,
        ratio=ratio,
        interval=interval,
        test=test,
        detectable=_detectable(interval, alpha),
        p_same=None if threshold is None else equivalence(heads_a, heads_b, threshold),
        quantum=quantum,
    )
    return replace(alone, outcome=outcome_of(alone, alone.test.p, alone.p_same, alpha, threshold))


def equivalence(a: Sequence[Number], b: Sequence[Number], threshold: float) -> float:
    """The p-value of the hypothesis that the ratio of b to a is outside 1 / (1 + threshold) to 1 + threshold.

    It is the larger p-value of two rank-sum tests, one against each limit (TOST: D. J. Schuirmann, J. Pharmacokinet.
    Biopharm. 15 (1987) 657-680). Both tests are two-sided, so this p is at most alpha if the interval at 1 - alpha lies
    within the limits.
    """
    upper = rank_sum([value * (1 + threshold) for value in a], b)
    lower = rank_sum([value / (1 + threshold) for value in a], b)
    middle = len(a) * len(b) / 2
    return max(upper.p if upper.u < middle else 1.0, lower.p if lower.u > middle else 1.0)


def outcome_of(one: Comparison, p: float, p_same: float | None, alpha: float, threshold: float | None) -> str:
    """The outcome at `alpha`, by p-values that may be corrected for other comparisons.

    A claim also requires that its interval agrees with the p-value: no difference is shown if 1 lies inside the
    interval, or if the interval is 1 alone. With ties, an end of the interval may be 1 although p is at most alpha: the
    test then rejects 1, but no ratio next to it. A difference counts only if the estimate is beyond the threshold.
    """
    if one.difference == 0:
        return EQUAL
    if one.difference is None and (one.interval is None or not one.interval.attained):
        return TOO_FEW
    low, high = (one.interval.low, one.interval.high) if one.interval else (one.ratio, one.ratio)
    most = 1 + (threshold or 0)
    if p_same is not None and p_same <= alpha and 1 / most <= low and high <= most:
        return SAME
    if one.difference is not None and one.quantum > 1 and abs(one.difference) <= one.quantum:
        return STEP
    if p > alpha or (one.difference is None and (low < 1 < high or low == 1 == high)):
        return NOTHING
    if threshold is not None and 1 / most <= one.ratio <= most:
        return BELOW
    # a difference may be too small to change a floating-point ratio, and the estimate may be 1 where an end is
    return LOWER if (low < 1 if one.difference is None else one.difference < 0) else HIGHER


def _middle(values: Sequence[Number]) -> Number:
    """The median; if all values are equal, exactly this value, however large it is."""
    return values[0] if min(values) == max(values) else median(values)


def _same(a: Sequence[Number], b: Sequence[Number]) -> bool:
    """Whether the values of each side are all equal."""
    return min(a) == max(a) and min(b) == max(b)


def _range(values: Sequence[Number]) -> Number | None:
    return max(values) - min(values) if len(values) > 1 else None


def _detectable(interval: RatioInterval | None, alpha: float) -> float | None:
    """The smallest detectable effect, computed from the interval's width (H. S. Bloom, "Minimum detectable effects",
    Evaluation Review 19 (1995) 547-556).
    """
    if interval is None or not interval.attained:
        return None
    normal = NormalDist()
    wanted = normal.inv_cdf(1 - alpha / 2)
    error = log(sqrt(interval.high / interval.low)) / wanted
    return exp((wanted + normal.inv_cdf(POWER)) * error) - 1
