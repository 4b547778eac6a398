"""Find the tests that change others by running before them, with names and corrected p-values."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cbench.order.claims import Claim, Family
from cbench.order.result import AfterMedians, CarryOver, OrderTest, PredecessorEffect, SuiteResult
from cbench.order.stats import earlier
from cbench.order.stats.analysis import Analysis, dropped
from cbench.stats import multiple_testing
from cbench.stats.trials import START, Trials

AFFECTED: tuple[Family, ...] = ("orders", "spread", "position", "within")
"""The families whose claims name affected tests, but not the tests that affect them."""
NAMED_PAIRS = 1000
MOST_DESCRIBED = 100
"""With more series, all pairs of an earlier and a later test would take longer than the rest of the analysis."""
MOST_PAIRS = 20_000
"""If there are more pairs of tests, only the NAMED_PAIRS with the smallest p-values are named."""


def earlier_effects(
    trials: Trials, analysis: Analysis, only: Container[str] | None = None
) -> tuple[PredecessorEffect, ...]:
    """For each series, or each in `only`, the test that changes it most by running before it; p-values by Holm over all
    pairs.
    """
    tested = earlier.earlier(trials, dropped(trials, analysis.rules), only)
    by_p = sorted(tested.found, key=lambda each: each.effect.p)
    holm = multiple_testing.holm_of_smallest([each.effect.p for each in by_p], tested.pairs).tolist()
    return tuple(
        PredecessorEffect(
            test=trials.names[each.series],
            after=trials.test_names[each.before],
            n=each.effect.n,
            median=each.effect.median,
            median_others=each.effect.median_others,
            delta_pct=each.effect.delta_pct,
            p=each.effect.p,
            p_holm=p,
            significant=p < analysis.rules.alpha,
        )
        for each, p in zip(by_p, holm, strict=True)
    )


def described(
    trials: Trials, analysis: Analysis, claimed: Sequence[Claim], after: Sequence[PredecessorEffect]
) -> tuple[AfterMedians, ...]:
    """For each affected series that no direct predecessor explains, the medians with and without the test that changes
    it most by running anywhere before it. The verdict tests only direct predecessors, so this is a description; its
    p-value only excludes differences that are no larger than noise. () with the published definitions, or with more
    than MOST_DESCRIBED series.
    """
    explained = {each.test for each in after if each.significant}  # named, perhaps as significant only by itself
    affected = {name for each in claimed if each.family in AFFECTED for name in (*each.named, *each.alone)} - explained
    if analysis.rules.published or not affected or len(trials.names) > MOST_DESCRIBED:
        return ()
    return tuple(
        AfterMedians(each.test, each.after, each.n, each.median, each.median_others, each.delta_pct)
        for each in earlier_effects(trials, analysis, affected)
        if each.significant
    )


def carry_over(
    suite: SuiteResult, tests: Mapping[str, OrderTest], before: Sequence[PredecessorEffect]
) -> tuple[CarryOver, ...]:
    """The comparison of each test in a separate process with the same test in a process shared with other tests; ()
    unless the study measured both.
    """
    if suite.isolated != "both":
        return ()
    after = {each.test: each.after for each in before if each.significant}
    return tuple(
        CarryOver(
            *(name, test.median_fixed, test.median_random),
            _times(test.median_random, test.median_fixed),
            *(test.p_adjusted, test.significant, after.get(name)),
        )
        for name, test in tests.items()
    )


def _times(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of is not None and value > 0 and of > 0 else None


def predecessor_effects(trials: Trials, analysis: Analysis) -> tuple[PredecessorEffect, ...]:
    """Compare each test's trials after each predecessor with its other trials, in the random runs; p-values by Holm.

    If there are more than MOST_PAIRS pairs, only the NAMED_PAIRS with the smallest p-values are returned.
    """
    rows = [(result.name, result.predecessor) for result in analysis.results if result.predecessor is not None]
    if not rows:
        return ()
    h = np.concatenate([after.h for _, after in rows])
    starts = np.concatenate([[0], np.cumsum([after.h.size for _, after in rows])])
    named = np.arange(h.size) if h.size <= MOST_PAIRS else _largest(h, NAMED_PAIRS)
    row_of = (np.searchsorted(starts, named, side="right") - 1).tolist()
    found = [rows[row][1][number - int(starts[row])] for number, row in zip(named.tolist(), row_of, strict=True)]
    by_p = np.argsort([each.p for each in found], kind="stable")
    holm = np.empty(by_p.size)
    holm[by_p] = multiple_testing.holm_of_smallest([found[at].p for at in by_p.tolist()], h.size)
    effects = []
    for number, row, each, p in zip(named.tolist(), row_of, found, holm.tolist(), strict=True):
        name, after = rows[row]
        label = int(after.labels[number - int(starts[row])])
        numbers = (each.n, each.median, each.median_others, each.delta_pct, each.p)
        effects.append(PredecessorEffect(name, name_of(trials, label), *numbers, p, p < analysis.rules.alpha))
    return tuple(effects)


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The indices of the `count` largest values, ascending; among equal values, the first."""
    least = np.partition(values, (values.size - count, values.size - 1))[values.size - count]
    above = np.flatnonzero(values > least)
    return np.sort(np.concatenate([above, np.flatnonzero(values == least)[: count - above.size]]))


def name_of(trials: Trials, label: int) -> str | None:
    """A predecessor's name; None for the beginning of a run."""
    return None if label == START else trials.test_names[label]
