"""Compare one test on both sides: select the trials that count, compute one number per process, and give the
verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from cbench.compare.stats import CENTER, TOO_FEW, Comparison, NoHeadline, compare_samples, cycle_exact
from cbench.compare.verdict import more_processes, notes, verdict
from cbench.formats.reader import Number, TestSample
from cbench.model import CALIBRATED_UNIT
from cbench.results import LEFT_OUT
from cbench.stats.stretches import mixed, stretches
from quiet import UsageError

AUTO = "auto"
STEADIER = 10
"""Floors are recommended if the medians of processes differ at least this many times as much as their floors."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of a comparison. `alpha`: 1 minus the interval's level; `threshold`: a share, None if there is no
    threshold.
    """

    headline: str = AUTO
    alpha: float = 0.05
    threshold: float | None = None
    clean_only: bool = False


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side of a test. `headline`: the headline over all processes; `between_processes`: highest minus lowest
    headline of the processes, None if there is only one; `interruptions`: see TestSample.
    """

    processes: int
    trials: int
    polluted: int
    headline: Number
    between_processes: Number | None
    interruptions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparedTest:
    """A test on both sides. `by`: the unit that yields one number, always "process". `ratio`: None if only A is 0.
    `p_holm`: p corrected for all comparisons, which determines the outcome. `p_same_holm`: the corrected p for a
    difference beyond the threshold. `measured_first`: the side that was measured before the other, None if they were
    interleaved or the order is unknown. `new`: the file of B. `more_processes`: how to get enough processes, if there
    are too few.
    """

    test: str
    unit: str
    headline: str
    by: str
    a: ComparedSide
    b: ComparedSide
    ratio: float | None
    interval: tuple[float, float] | None
    interval_level: float | None
    difference: Number | None
    p: float | None
    u: float | None
    p_from: str | None
    detectable: float | None
    outcome: str
    verdict: str
    notes: tuple[str, ...]
    p_holm: float | None = None
    p_same_holm: float | None = None
    measured_first: str | None = None
    new: str = ""
    more_processes: str = field(default="", metadata={LEFT_OUT: ""})


def pair_name(a: TestSample, b: TestSample) -> str:
    """The test's name, or both names if they differ."""
    return a.name if a.name == b.name else f"{a.name} / {b.name}"


def unlike(a: TestSample, b: TestSample) -> str:
    """The reason why the values of two samples are not compared: their units or counters."""
    counters = a.unit == b.unit
    first, second = (
        (f"{side.unit} by counter {side.counter}" if counters else side.unit or "an unknown unit") for side in (a, b)
    )
    return f"{a.name}: A is in {first}, B in {second}"


def compared(a: TestSample, b: TestSample, options: CompareOptions) -> tuple[TestSample, TestSample, Comparison]:
    """Both sides, reduced to the trials that count, and their uncorrected comparison. Raises UsageError if the values
    cannot be compared.
    """
    if options.clean_only:
        a, b = (_clean(side, which) for side, which in ((a, "A"), (b, "B")))
    for each in (a, b):
        values = {value for of in each.processes for value in of}
        if min(values) <= 0 and values != {0}:
            raise UsageError(f"{a.name}: a value of {min(values):g} among other values; ratios need values above 0")
    quantum = max(a.quantum, b.quantum)
    if options.headline == "min" and (side := next((each for each in (a, b) if each.summary), None)):
        raise UsageError(f"{side.name}: --headline min: {side.summary}")
    exact = all(cycle_exact(side.clean, side.quantum) for side in (a, b))
    headline = ("floor" if exact else "median") if options.headline == AUTO else options.headline
    comparable = not (a.cannot_tell or b.cannot_tell)
    if (
        options.headline == AUTO
        and comparable
        and a.unit == CALIBRATED_UNIT
        and min(len(a.processes), len(b.processes)) > 1
    ):
        headline = CENTER
    try:
        by_itself = compare_samples(a.processes, b.processes, headline, options.alpha, options.threshold, quantum)
    except NoHeadline:
        raise UsageError(f"{a.name}: a process in which no value repeats has no floor; use --headline median") from None
    if not comparable:  # a test without claims does not weaken the correction of the others
        nothing = replace(by_itself.test, p=1.0)
        same = None if options.threshold is None else 1.0
        by_itself = replace(by_itself, interval=None, test=nothing, p_same=same, difference=None, detectable=None)
    return a, b, by_itself


def compared_test(
    a: TestSample, b: TestSample, comparison: Comparison, options: CompareOptions, new: str
) -> ComparedTest:
    """A decided comparison as numbers and text. `new`: the file of B."""
    first = one_after_the_other(a.begun, b.begun)
    remarks = notes(a, b, comparison, first)
    if options.headline == AUTO and comparison.headline == "median" and min(comparison.processes) > 1:
        remarks += _steadier(a, b, comparison, options)
    doubt = [f"in {which} {side.cannot_tell}" for which, side in (("A", a), ("B", b)) if side.cannot_tell]
    more = "" if doubt or comparison.outcome != TOO_FEW else more_processes(a, b, comparison, options.alpha)
    said = verdict(a, b, comparison, options.threshold, options.alpha, first)
    interval, test = comparison.interval, None if doubt else comparison.test
    return ComparedTest(
        test=pair_name(a, b),
        unit=a.unit,
        headline=comparison.headline,
        by="process",
        a=_side(a, comparison.a, comparison.spread_a),
        b=_side(b, comparison.b, comparison.spread_b),
        ratio=comparison.ratio if isfinite(comparison.ratio) else None,
        interval=None if interval is None or not interval.level else (interval.low, interval.high),
        interval_level=None if interval is None or not interval.level else interval.level,
        difference=comparison.difference,
        p=None if test is None else test.p,
        u=None if test is None else test.u,
        p_from=None if test is None else "permutations" if test.exact else "normal approximation",
        detectable=comparison.detectable,
        outcome=comparison.outcome,
        verdict=f"cannot tell: {'; '.join(doubt)}" if doubt else said,
        notes=tuple(remarks),
        p_holm=None if doubt else comparison.p_holm,
        p_same_holm=None if doubt else comparison.p_same_holm,
        measured_first=first,
        new=new,
        more_processes=more,
    )


def _steadier(a: TestSample, b: TestSample, comparison: Comparison, options: CompareOptions) -> list[str]:
    """A hint to compare floors, if the floors of processes agree much better than their medians, so that comparing
    floors would reveal smaller differences.
    """
    if comparison.difference is not None or not (comparison.a and comparison.b):
        return []
    try:
        floors = compare_samples(a.processes, b.processes, "floor", options.alpha)
    except NoHeadline:
        return []
    medians, lowest = ((one.spread_a or 0) / one.a + (one.spread_b or 0) / one.b for one in (comparison, floors))
    if not medians or lowest * STEADIER > medians:
        return []
    much = f"vary {medians / lowest:,.0f} times less than" if lowest else "do not vary, unlike"
    return [f"the floors of the processes {much} their medians: --headline floor detects smaller differences"]


def _clean(sample: TestSample, which: str) -> TestSample:
    kept = sample.undisturbed()
    if not kept.processes:
        raise UsageError(f"{sample.name}: no undisturbed trial in {which}: omit --clean-only")
    # if nothing was removed, interruptions that are counted only for the whole test still apply
    return kept if kept.processes == sample.processes else replace(kept, interruptions={})


def _side(sample: TestSample, headline: Number, spread: Number | None) -> ComparedSide:
    known = dict(sample.interruptions)
    return ComparedSide(len(sample.processes), sample.trials, sample.polluted, headline, spread, known)


def one_after_the_other(a: Sequence[int], b: Sequence[int]) -> str | None:
    """The side that was measured first, "A" or "B", by the start times of the processes; None if the sides were
    interleaved or times are unknown. A change on the host between A and B would look like a difference.
    """
    if not a or not b or set(a) & set(b):
        return None
    order = [side for _, side in sorted([*((at, "A") for at in a), *((at, "B") for at in b)])]
    if mixed(len(a), len(b), stretches(order)):
        return None
    return order[0]
