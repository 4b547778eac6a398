"""Compute, before anything runs, the effect size that an experiment detects, and the iterations that smaller effects
require.

The model is a main effect of two levels, with normal noise of standard deviation 1 and P values in each of n
iterations. Its estimate has the variance 4/(P n). Student's t distribution replaces the noncentral one, which is
accurate to 2 %: J. Cohen, Statistical Power Analysis (1988). Signed ranks have 3/pi of the efficiency of means there,
and more with long tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

from cbench.screen.design.testability import iterations_needed
from cbench.stats.distributions import t_quantile

POWER = 0.8
SIZES = (1.0, 0.5, 0.2)
"""The effect sizes, in standard deviations of one value, for which the required iterations are reported."""
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class DetectableEffect:
    """The effect that an experiment can detect. `sd`: the main effect that is detected with probability `power`, in
    standard deviations of one treatment's values; `effect`: the same in the response's unit, if an earlier run measured
    the standard deviation; `iterations`: the iterations required for each effect size in SIZES.
    """

    power: float
    sd: float | None
    effect: float | None
    iterations: dict[str, int]


def detectable(
    treatments: int, iterations: int, tests: int, alpha: float, spread: float | None = None
) -> DetectableEffect:
    """The detectable effect. `tests`: the number of tests that share alpha; `spread`: the standard deviation of one
    treatment's values.
    """
    sd = smallest(treatments, iterations, tests, alpha)
    needed = {f"{size:g}": _needed(size, treatments, tests, alpha) for size in SIZES}
    return DetectableEffect(POWER, sd, None if sd is None or spread is None else sd * spread, needed)


def smallest(treatments: int, iterations: int, tests: int, alpha: float) -> float | None:
    """The detectable effect in standard deviations; None if no degrees of freedom are left for the error."""
    ranks = iterations >= iterations_needed(tests, alpha)
    df = iterations - 1 if ranks else (iterations - 1) * (treatments - 1)
    if df < 1:
        return None
    share = t_quantile(1 - alpha / (2 * tests), df) + t_quantile(POWER, df)
    return share * 2 / sqrt(treatments * iterations * (3 / pi if ranks else 1))


def _needed(size: float, treatments: int, tests: int, alpha: float) -> int:
    """The fewest iterations that detect this effect size, determined by doubling and bisection; at most about MOST."""

    def enough(n: int) -> bool:
        found = smallest(treatments, n, tests, alpha)
        return found is not None and found <= size

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
        few = "one iteration: what can be found depends on how many effects are inert"
        return f"{name}: {few}; iterations needed: {needed}"
    units = "" if found.effect is None else f", {found.effect:.3g} {unit}".rstrip()
    return (
        f"{name}: finds a main effect of {found.sd:.2g} sd of one treatment's values{units} with a chance of "
        f"{100 * found.power:g} %; iterations needed: {needed}"
    )
