"""`cbench compare`: which tests belong to each other, what is compared of them, and the answer."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.compare.readers import registry
from cbench.compare.readers.reader import Number, TestSample
from cbench.compare.stats import HEADLINES, LEAST, Comparison, NoHeadline, compare_samples, cycle_exact
from cbench.compare.verdict import notes, verdict
from quiet import UsageError, table_html

AUTO = "auto"
STEADIER = 10
"""How many times less the floors of the processes must differ than their medians to be recommended."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """`alpha`: 1 less the interval's level; `margin`: as a share, None without one."""

    headline: str = AUTO
    alpha: float = 0.05
    margin: float | None = None
    clean_only: bool = False


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side of a test. `headline`: over all processes; `between_processes`: highest less lowest, None with one."""

    processes: int
    trials: int
    polluted: int
    headline: Number
    between_processes: Number | None


@dataclass(frozen=True, slots=True)
class ComparedTest:
    """A test on both sides. `by`: what one number stands for, a "process" or a "trial"."""

    test: str
    unit: str
    headline: str
    by: str
    a: ComparedSide
    b: ComparedSide
    ratio: float
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


@dataclass(frozen=True, slots=True)
class CompareResult:
    """All tests of two files. `skipped`, `other_units`: why a test is not compared."""

    a: str
    b: str
    level: float
    margin: float | None
    comparisons: tuple[ComparedTest, ...]
    skipped: tuple[str, ...]
    other_units: tuple[str, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]

    def _repr_html_(self) -> str:
        rows = [(each.test, each.unit, f"{each.ratio:.4g}", each.outcome, each.verdict) for each in self.comparisons]
        return table_html(f"{self.a} and {self.b}", ("test", "unit", "ratio", "outcome", "verdict"), rows)


def share(text: str) -> float:
    """ "1%" or "0.01"; UsageError for what is no share between 0 and 1."""
    try:
        value = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise UsageError(f"--margin {text!r}: a share such as 1% or 0.01")
    return value


def load(text: str) -> tuple[tuple[TestSample, ...], bool]:
    """The tests of FILE or of FILE:TEST, and whether some were selected so. UsageError for what cannot be read."""
    path, selection = _split(text)
    samples = registry.read(path)
    if selection is None:
        return samples, False
    chosen = tuple(each for each in samples if selection in (each.name, each.test, each.workload))
    if not chosen:
        raise UsageError(f"{path}: no {selection!r} in it; it has {_some([repr(each.name) for each in samples], 8)}")
    return chosen, True


def _some(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _split(text: str) -> tuple[Path, str | None]:
    """At the first colon that ends a file's name: a file may have colons in it, and so may a test."""
    if os.path.exists(text):
        return Path(text), None
    parts = text.split(":")
    for length in range(1, len(parts)):
        path = ":".join(parts[:length])
        if path and os.path.isfile(path):
            return Path(path), ":".join(parts[length:])
    raise UsageError(f"{text}: no such file")


def compare(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *,
    headline: str = AUTO,
    level: float = 95,
    margin: str | None = None,
    clean_only: bool = False,
) -> CompareResult:
    """Whether B is faster than A, slower, or the same, as `cbench compare` reports it.

    UsageError for what cannot be read or not be compared.
    """
    if headline not in (AUTO, *HEADLINES):
        raise UsageError(f"--headline {headline}: use {', '.join((AUTO, *HEADLINES))}")
    if not 50 <= level < 100:  # also for what is not a number
        raise UsageError(f"--level {level:g}: from 50 to below 100, in percent")
    options = CompareOptions(headline, 1 - level / 100, None if margin is None else share(margin), clean_only)
    a, b = os.fspath(a), os.fspath(b)
    (first, one), (second, other) = load(a), load(b)
    named = one and other and len(first) == len(second) == 1
    pairs = [(first[0], second[0])] if named else pair(first, second)
    if not pairs:
        has = [_some([each.name for each in side], 4) for side in (first, second)]
        raise UsageError(f"no test is in both: {a} has {has[0]}; {b} has {has[1]}")
    fit = [(x, y) for x, y in pairs if x.like(y)]
    if not fit:
        raise UsageError(_unlike(*pairs[0]))
    tests, skipped = _tests(fit, options)
    used = {id(sample) for each in fit for sample in each}
    return CompareResult(
        a=a,
        b=b,
        level=1 - options.alpha,
        margin=options.margin,
        comparisons=tests,
        skipped=skipped,
        other_units=tuple(_unlike(x, y) for x, y in pairs if not x.like(y)),
        only_in_a=tuple(sample.name for sample in first if id(sample) not in used),
        only_in_b=tuple(sample.name for sample in second if id(sample) not in used),
    )


def pair(first: Sequence[TestSample], second: Sequence[TestSample]) -> list[tuple[TestSample, TestSample]]:
    """The same test on both sides: on the same CPU where each side has several, else one against each."""
    pairs = []
    for test in dict.fromkeys(sample.test for sample in first):
        mine = [sample for sample in first if sample.test == test]
        theirs = [sample for sample in second if test in (sample.test, sample.name)]
        if min(len(mine), len(theirs)) == 1:
            pairs += [(x, y) for x in mine for y in theirs]
        else:
            pairs += [(x, y) for x in mine for y in theirs if x.cpu == y.cpu and x.like(y)]
    matched = {sample.name for sample, _ in pairs}
    by_name = {sample.name: sample for sample in second}
    pairs += [(x, by_name[x.name]) for x in first if x.name not in matched and x.name in by_name]
    return pairs


def _unlike(a: TestSample, b: TestSample) -> str:
    counters = a.unit == b.unit
    first, second = (
        (f"{side.unit} by counter {side.counter}" if counters else side.unit or "an unknown unit") for side in (a, b)
    )
    return f"{a.name}: A is in {first}, B in {second}"


def _tests(
    pairs: Sequence[tuple[TestSample, TestSample]], options: CompareOptions
) -> tuple[tuple[ComparedTest, ...], tuple[str, ...]]:
    """The comparisons, and why others could not be made; UsageError where none could."""
    tests, skipped = [], []
    for a, b in pairs:
        try:
            tests.append(_test(a, b, options))
        except UsageError as error:
            skipped.append(str(error))
    if not tests:
        raise UsageError(skipped[0])
    return tuple(tests), tuple(skipped)


def _test(a: TestSample, b: TestSample, options: CompareOptions) -> ComparedTest:
    if options.clean_only:
        a, b = (_clean(side, which) for side, which in ((a, "A"), (b, "B")))
    values = {value for side in (a, b) for values in side.processes for value in values}
    if min(values) <= 0 and values != {0}:
        raise UsageError(f"{a.name}: a value of {min(values):g}; ratios need values above 0")
    quantum = max(a.quantum, b.quantum)
    exact = all(cycle_exact(side.clean, side.quantum) for side in (a, b))
    many = all(side.trials - side.polluted >= LEAST for side in (a, b))
    headline = ("floor" if exact else "median") if options.headline == AUTO else options.headline
    try:
        comparison = compare_samples(
            a.processes, b.processes, headline, options.alpha, options.margin, quantum, exact and many
        )
    except NoHeadline:
        raise UsageError(f"{a.name}: a process in which no value repeats has no floor; use --headline median") from None
    remarks = notes(a, b, comparison)
    if options.headline == AUTO and headline == "median" and comparison.by_process:
        remarks += _steadier(a, b, comparison, options)
    interval, test = comparison.interval, comparison.test
    return ComparedTest(
        test=a.name if a.name == b.name else f"{a.name} / {b.name}",
        unit=a.unit,
        headline=comparison.headline,
        by="process" if comparison.by_process else "trial",
        a=_side(a, comparison.a, comparison.spread_a),
        b=_side(b, comparison.b, comparison.spread_b),
        ratio=comparison.ratio,
        interval=None if interval is None else (interval.low, interval.high),
        interval_level=None if interval is None else interval.level,
        difference=comparison.difference,
        p=None if test is None else test.p,
        u=None if test is None else test.u,
        p_from=None if test is None else "permutations" if test.exact else "normal approximation",
        detectable=comparison.detectable,
        outcome=comparison.outcome,
        verdict=verdict(a, b, comparison, options.margin),
        notes=tuple(remarks),
    )


def _steadier(a: TestSample, b: TestSample, comparison: Comparison, options: CompareOptions) -> list[str]:
    """Whether the processes' floors agree so much better than their medians that they would tell more."""
    if comparison.difference is not None:
        return []
    try:
        floors = compare_samples(a.processes, b.processes, "floor", options.alpha)
    except NoHeadline:
        return []
    medians, lowest = ((one.spread_a or 0) / one.a + (one.spread_b or 0) / one.b for one in (comparison, floors))
    if not medians or lowest * STEADIER > medians:
        return []
    much = f"{medians / lowest:,.0f} times less than the medians" if lowest else "not at all, unlike the medians"
    return [f"between processes the floors differ {much}: --headline floor shows smaller differences"]


def _clean(sample: TestSample, which: str) -> TestSample:
    kept = tuple(values for values in sample.clean if values)
    if not kept:
        raise UsageError(f"{sample.name}: no undisturbed trial in {which}: leave --clean-only away")
    return replace(sample, processes=kept, clean=kept)


def _side(sample: TestSample, headline: Number, spread: Number | None) -> ComparedSide:
    return ComparedSide(len(sample.processes), sample.trials, sample.polluted, headline, spread)
