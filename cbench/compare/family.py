"""Correct many comparisons to one error rate: determine the claims that remain when all are considered together.

If 30 benchmarks do not differ and each is tested at 95 %, at least one of them seems to differ in about four of five
runs of such a suite. S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979)
65-70: for any number of comparisons, the chance of any false claim is at most alpha. J. P. Shaffer, "Modified
sequentially rejective multiple test procedures", J. Amer. Statist. Assoc. 81 (1986) 826-831: with a threshold, each
test has two hypotheses (no difference, and a difference beyond the threshold). At most one of the two is true, so each
test counts once. R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990) 515-522: tests
that cannot become significant do not count; here, these are tests in which all processes of both sides, at least two on
each side, have one and the same value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbench.compare.stats import BELOW, NOTHING, TOO_FEW, Comparison, fewest, least_p, outcome_of

CORRECTION = "holm"
UNDECIDED = (NOTHING, BELOW)


@dataclass(frozen=True, slots=True)
class ComparedFamily:
    """The number of comparisons by outcome. A claim requires a p-value of at most `alpha` after `correction` for
    `counting` comparisons.
    """

    comparisons: int
    counting: int
    outcomes: dict[str, int]
    alpha: float
    correction: str = CORRECTION


def holm(tests: Sequence[Sequence[float]]) -> list[list[float]]:
    """The adjusted p-values, for comparison with alpha. `tests`: the p-values of each test's hypotheses, at most one of
    them true.
    """
    adjusted = [[1.0] * len(values) for values in tests]
    left, most = {at: len(values) for at, values in enumerate(tests) if values}, 0.0
    for p, test, which in sorted((p, at, which) for at, values in enumerate(tests) for which, p in enumerate(values)):
        most = max(most, min(1.0, p * len(left)))
        adjusted[test][which] = most
        left[test] -= 1
        if not left[test]:
            del left[test]
    return adjusted


def decided(comparisons: Sequence[Comparison], alpha: float, threshold: float | None = None) -> list[Comparison]:
    """The comparisons with p-values adjusted for the whole family, and with the outcomes that these p-values
    support.
    """
    constant = [one.a == one.b and one.spread_a == one.spread_b == 0 for one in comparisons]
    size = max(constant.count(False), 1)
    each_p = [[one.test.p] if one.p_same is None else [one.test.p, one.p_same] for one in comparisons]
    adjusted = holm([[] if same else values for same, values in zip(constant, each_p, strict=True)])
    made = []
    for one, values in zip(comparisons, adjusted, strict=True):
        p, p_same = values[0] if values else 1.0, values[-1] if len(values) > 1 else None
        outcome = outcome_of(one, p, p_same, alpha, threshold)
        if outcome in UNDECIDED and least_p(*one.processes) * size > alpha:
            outcome = TOO_FEW
        made.append(replace(one, p_holm=p, p_same_holm=p_same, family=size, outcome=outcome))
    return made


def needed(alpha: float, comparisons: int) -> int:
    """The fewest processes per side with which each of these comparisons can show a difference."""
    return fewest(alpha / comparisons)


def summary(comparisons: Sequence[Comparison], alpha: float) -> ComparedFamily:
    """The number of comparisons by outcome."""
    by_outcome = dict(Counter(each.outcome for each in comparisons))
    return ComparedFamily(len(comparisons), comparisons[0].family, by_outcome, alpha)
