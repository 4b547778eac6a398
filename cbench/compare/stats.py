"""Is the second of two sets of measurements faster, slower, or the same? Numbers in, a frozen answer out.

Trials of one process share its memory layout and are not independent (T. Kalibera, R. Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013: repeat at the highest level that varies). With two processes a side or more, each process
is therefore one number, its headline; with fewer, the trials are compared, and that is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import NormalDist, fmean, median

from cbench.compare.rank import Number, RankSum, RatioInterval, rank_sum, ratio_interval

POWER = 0.8
"""How probably the smallest difference that data could have shown would have been shown."""

LEAST = 4
"""So many values a side must be one and the same for their difference to be called exact: 4 against 4 is also the
fewest of which a rank-sum test can say anything at 95 %."""

EQUAL, STEP, SAME = "equal", "equal to one step", "same within the margin"
LOWER, HIGHER = "lower", "higher"
NOTHING, TOO_FEW, UNTESTED = "no difference shown", "too few to tell", "not tested"

Processes = Sequence[Sequence[Number]]


class NoHeadline(ValueError):
    """A process in which no value repeats has no floor."""


def _lowest_repeated(values: Sequence[Number]) -> Number | None:
    return min((value for value, count in Counter(values).items() if count > 1), default=None)


def _floor(values: Sequence[Number]) -> Number:
    lowest = _lowest_repeated(values)
    if lowest is None:
        raise NoHeadline("no value repeats")
    return lowest


HEADLINES: Mapping[str, Callable[[Sequence[Number]], Number]] = {
    "median": median,
    "floor": _floor,
    "min": min,
    "mean": fmean,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second set against the first. `a`, `b`: the headlines over all processes, in the values' own unit.

    `by_process`: each process was one number. `spread_a`, `spread_b`: highest less lowest headline of the processes,
    None with one process. `difference` is b - a where both are constant and that is no chance (LEAST), or where it is
    none; None else. `interval` is None where there is no valid one. `detectable`: the smallest relative difference that
    would have shown with probability POWER.
    """

    headline: str
    by_process: bool
    a: Number
    b: Number
    spread_a: Number | None
    spread_b: Number | None
    difference: Number | None
    ratio: float
    interval: RatioInterval | None
    test: RankSum | None
    detectable: float | None
    outcome: str


def cycle_exact(clean: Processes, quantum: Number) -> bool:
    """Whether in each process all undisturbed trials are on its floor, as far as the counter can tell."""
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
    margin: float | None = None,
    quantum: Number = 1,
    exact: bool = False,
) -> Comparison:
    """Compare the processes' values, all above 0 or all 0, by a headline of HEADLINES; `quantum` is the counter's step.

    `exact`: both are cycle_exact() with LEAST undisturbed trials, so that the floors of few processes tell too.

    Raises NoHeadline when a floor is wanted and a process has none.
    """
    of = HEADLINES[headline]
    heads_a, heads_b = [of(values) for values in a], [of(values) for values in b]
    by_process = min(len(a), len(b)) >= 2
    if by_process:
        sample_a, sample_b = heads_a, heads_b
        at_a, at_b = _middle(heads_a), _middle(heads_b)
    else:
        sample_a, sample_b = ([value for values in side for value in values] for side in (a, b))
        at_a, at_b = of(sample_a), of(sample_b)
    ratio = at_b / at_a if at_a else 1.0
    interval, test = None, None
    trials = [[value for values in side for value in values] for side in (a, b)]
    alone = (_same(*trials) and min(map(len, trials)) >= LEAST) or (exact and headline == "floor")
    firm = _same(heads_a, heads_b) and (alone or min(len(a), len(b)) >= LEAST)
    step = quantum if quantum > 1 else 0
    nearly = _same(sample_a, sample_b) and min(len(sample_a), len(sample_b)) > 1 and abs(at_b - at_a) <= step
    zero = not any(value for side in trials for value in side)
    difference = at_b - at_a if firm or nearly or zero else None
    if difference is None and (by_process or headline == "median"):
        interval, test = ratio_interval(sample_a, sample_b, alpha), rank_sum(sample_a, sample_b)
        ratio = interval.ratio
    elif difference is not None and by_process:
        test = rank_sum(sample_a, sample_b)
    return Comparison(
        headline=headline,
        by_process=by_process,
        a=at_a,
        b=at_b,
        spread_a=_range(heads_a),
        spread_b=_range(heads_b),
        difference=difference,
        ratio=ratio,
        interval=interval,
        test=test,
        detectable=_detectable(interval, alpha),
        outcome=_outcome(difference, ratio, interval, margin, quantum),
    )


def _middle(values: Sequence[Number]) -> Number:
    """The median; a whole number where all are the same, however large."""
    return values[0] if min(values) == max(values) else median(values)


def _same(a: Sequence[Number], b: Sequence[Number]) -> bool:
    """Whether each side has but one value."""
    return min(a) == max(a) and min(b) == max(b)


def _range(values: Sequence[Number]) -> Number | None:
    return max(values) - min(values) if len(values) > 1 else None


def _detectable(interval: RatioInterval | None, alpha: float) -> float | None:
    """From the interval's width (H. S. Bloom, "Minimum detectable effects", Evaluation Review 19 (1995) 547-556)."""
    if interval is None or not interval.attained:
        return None
    normal = NormalDist()
    wanted = normal.inv_cdf(1 - alpha / 2)
    error = log(sqrt(interval.high / interval.low)) / wanted
    return exp((wanted + normal.inv_cdf(POWER)) * error) - 1


def _outcome(
    difference: Number | None, ratio: float, interval: RatioInterval | None, margin: float | None, quantum: Number
) -> str:
    if difference == 0:
        return EQUAL
    if difference is not None and quantum > 1 and abs(difference) <= quantum:
        return STEP
    low, high = (interval.low, interval.high) if interval else (ratio, ratio)
    if difference is None and interval is None:
        return UNTESTED
    if interval and not interval.attained:
        return TOO_FEW
    if margin is not None and 1 / (1 + margin) <= low and high <= 1 + margin:
        return SAME
    if difference is not None:  # also where it is too small for a ratio in floating point
        return LOWER if difference < 0 else HIGHER
    return LOWER if high < 1 else HIGHER if low > 1 else NOTHING
