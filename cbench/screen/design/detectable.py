"""Compute, before anything runs, the effect size that an experiment detects, the iterations that smaller effects
require, and whether signed ranks or the analysis of variance decide.

The model is a main effect of two levels, with normal noise of standard deviation 1 and one value of each of P
treatments in each of n iterations. Its estimate has the variance 4/(P n). Student's t distribution replaces the
noncentral t distribution of a power analysis (J. Cohen, Statistical Power Analysis (1988)). This understates the
effect: by less than 2 % with 19 or more degrees of freedom and a level of at least 0.001 for each test, by up to 19 %
with two degrees of freedom. Signed ranks have 3/pi of the efficiency of means for normal noise, and more for noise with
long tails. Ranks have one observation for each iteration, and the analysis of variance has one for each value. Ranks
therefore need more iterations for effects of the same size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import inf, pi, sqrt

from cbench.report.text import counted, some
from cbench.stats.distributions import t_quantile

POWER = 0.8
SIZES = (1.0, 0.5, 0.2)
"""The effect sizes, in standard deviations of one value, for which the required iterations are reported."""
MOST = 1_000_000
LOSS = 1.15
"""Signed ranks decide if the effect that they detect is at most this multiple of the effect that the analysis of
variance detects.
"""
MOST_VALUES = 5_000
"""The maximum number of values in an analysis of variance with iterations, because each iteration is a column of its
model.
"""


@dataclass(frozen=True, slots=True)
class DetectableEffect:
    """The effect that an experiment can detect. `sd`: the main effect that is detected with probability `power`, in
    standard deviations of one treatment's values, None if no degrees of freedom are left for the error; `effect`: the
    same in the response's unit, None unless an earlier run measured the standard deviation; `iterations`: the
    iterations required, by effect size (the SIZES as text).
    """

    power: float
    sd: float | None
    effect: float | None
    iterations: dict[str, int]


def detectable(
    treatments: int, iterations: int, tests: int, alpha: float, spread: float | None = None
) -> DetectableEffect:
    """Compute the detectable effect. `tests`: the number of tests that share alpha; `spread`: the standard deviation of
    one treatment's values, None if unknown.
    """
    sd = smallest(treatments, iterations, tests, alpha)
    needed = {f"{size:g}": _needed(size, treatments, tests, alpha) for size in SIZES}
    return DetectableEffect(POWER, sd, None if sd is None or spread is None else sd * spread, needed)


def smallest(treatments: int, iterations: int, tests: int, alpha: float) -> float | None:
    """The detectable effect in standard deviations of one value; None without degrees of freedom for the error."""
    ranks = ranks_decide(treatments, iterations, tests, alpha)
    found = _share(treatments, iterations, tests, alpha, ranks) * 2 / sqrt(treatments * iterations)
    return None if found == inf else found


def _share(treatments: int, iterations: int, tests: int, alpha: float, ranks: bool) -> float:
    """The detectable effect in standard errors of a difference of means; inf without degrees of freedom."""
    df = iterations - 1 if ranks else (iterations - 1) * (treatments - 1)
    share = t_quantile(1 - alpha / (2 * tests), df) + t_quantile(POWER, df) if df > 0 else inf
    return share / sqrt(3 / pi) if ranks else share


def smallest_p(iterations: int) -> float:
    """The smallest possible p-value of signed ranks within iterations, which occurs if all signs are equal."""
    return 2.0 ** (1 - iterations)


def ranks_decide(treatments: int, iterations: int, tests: int, alpha: float) -> bool:
    """Whether signed ranks within iterations decide. They must be able to reject. They must also detect about as small
    an effect as the analysis of variance, unless there are too many values for an analysis of variance.
    """
    if not tests or tests * smallest_p(iterations) >= alpha:
        return False
    if treatments * iterations > MOST_VALUES:
        return True
    ranks, means = (_share(treatments, iterations, tests, alpha, each) for each in (True, False))
    return ranks <= LOSS * means


def fewest_for_ranks(treatments: int, tests: int, alpha: float) -> int:
    """The fewest iterations with which signed ranks decide."""
    return next(n for n in count(2) if ranks_decide(treatments, n, tests, alpha))


def too_few_words(tests: int, alpha: float, blocks: Sequence[tuple[int, int, str]]) -> list[str]:
    """Sentences about the responses with too few iterations for signed ranks, whose tests therefore assume normal
    noise: one sentence for each number of iterations required. `blocks`: for each response that is tested within
    iterations, its number of treatments, its number of iterations and its name.
    """
    few: dict[int, list[str]] = {}
    for treatments, n, name in blocks:
        if tests and not ranks_decide(treatments, n, tests, alpha):
            few.setdefault(fewest_for_ranks(treatments, tests, alpha), []).append(f"{name} has {n:,}")
    many = f"{counted(tests, 'effect')} that {'is' if tests == 1 else 'are'} tested"
    return [
        f"few iterations: signed ranks, which do not assume normality, need {fewest:,} iterations for {many}, but "
        f"{some(names)}; single values are therefore analyzed by the analysis of variance, or by Lenth's method if "
        "treatments have one value"
        for fewest, names in few.items()
    ]


def _needed(size: float, treatments: int, tests: int, alpha: float) -> int:
    """The smallest number of iterations such that this and every larger number detect the effect size, determined by
    doubling and bisection. The doubling ends at the first power of two that is at least MOST, even if this is not
    enough.
    """
    switch = fewest_for_ranks(treatments, tests, alpha)

    def enough(n: int) -> bool:
        return all((smallest(treatments, each, tests, alpha) or inf) <= size for each in {n, max(n, switch)})

    high = 2
    while not enough(high) and high < MOST:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable_words(name: str, found: DetectableEffect, unit: str) -> str:
    """The detectable effect as one sentence."""
    needed = ", ".join(f"{n:,} for {size} sd" for size, n in found.iterations.items())
    if found.sd is None:
        few = "with one iteration, the detectable effect depends on the number of inert effects"
        return f"{name}: {few}; iterations needed: {needed}"
    units = "" if found.effect is None else f", {found.effect:.3g} {unit}".rstrip()
    return (
        f"{name}: detects a main effect of {found.sd:.2g} sd of one treatment's values{units} with a probability of "
        f"{100 * found.power:g} %; iterations needed: {needed}"
    )
