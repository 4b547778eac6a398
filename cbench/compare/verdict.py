"""Format the verdict of `cbench compare` as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import floor, isfinite, log10

from cbench.compare import stats as outcomes
from cbench.compare.family import needed
from cbench.compare.stats import POWER, Comparison
from cbench.compare.suite import FASTER, FASTER_UNITS, LARGER, SLOWER, SMALLER
from cbench.formats.reader import STOLEN_MS, WAITED_NS, TestSample

WORDS = {outcomes.LOWER: FASTER, outcomes.HIGHER: SLOWER}
SIZES = {outcomes.LOWER: SMALLER, outcomes.HIGHER: LARGER}
DIGITS = 4
MOST_CAUSES = 4


FROM_ZERO = "from 0"
"""The text for a change from 0, which has no ratio."""


def percent(ratio: float | None) -> str:
    """A ratio as a change: "+1.25 %", with enough digits to show that it is not 0; FROM_ZERO for None and infinity."""
    if ratio is None or not isfinite(ratio):
        return FROM_ZERO
    return f"{_short(100 * (ratio - 1), '+')} %"


def change(percents: float | None, interval: tuple[float, float] | None, unit: str = "") -> str:
    """A change in percent, such as "+1.25", with as many digits as its interval justifies; FROM_ZERO for None."""
    if percents is None:
        return FROM_ZERO
    return f"{_to_width(percents, interval or (percents, percents))}{unit}"


def limits(interval: tuple[float, float] | None, unit: str = "") -> str:
    """The limits of an interval, such as "+0.84 to +1.71"; "" if there is no interval."""
    if interval is None:
        return ""
    low, high = (_to_width(each, interval) for each in interval)
    return f"{low} to {high}{unit}"


def _to_width(value: float, interval: tuple[float, float]) -> str:
    width = interval[1] - interval[0]
    if not value or not width:
        return _short(value, "+")
    return f"{value:+,.{min(max(1 - floor(log10(width)), 0), 9)}f}"


def _short(value: float, sign: str = "") -> str:
    if value == 0:
        return "0"
    return f"{value:{sign}.{DIGITS - 1}g}" if abs(value) < 1000 else f"{value:{sign},.0f}"


def amount(value: float, sign: str = "") -> str:
    """A headline as text: a whole number in full, a number of at least 1,000 with one decimal, any other with six
    significant digits.
    """
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 1):
        return f"{int(value):{sign},}"
    return f"{value:{sign},.1f}" if abs(value) >= 1000 else f"{value:{sign}.6g}"


def interrupted(counts: Mapping[str, int]) -> str:
    """The interruptions as text, the most frequent first; "" if there are none."""
    found = Counter(counts)
    waited, stolen = found.pop(WAITED_NS, 0), found.pop(STOLEN_MS, 0)
    parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in found.most_common(MOST_CAUSES)]
    parts += [f"{len(found) - MOST_CAUSES:,} more"] if len(found) > MOST_CAUSES else []
    parts += [f"waited for a CPU for {_span(waited)}"] if waited else []
    return ", ".join(parts + ([f"{stolen:,} ms stolen by the host"] if stolen else []))


def _span(ns: int) -> str:
    value, unit = (ns / 1e9, "s") if ns >= 999_500_000 else (ns / 1e6, "ms")
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"


def verdict(
    a: TestSample,
    b: TestSample,
    comparison: Comparison,
    threshold: float | None,
    alpha: float,
    first: str | None = None,
) -> str:
    """The verdict on B against A, in one line. `first`: the side that was measured before the other."""
    if comparison.outcome == outcomes.TOO_FEW:
        return _too_few(comparison, alpha, more_processes(a, b, comparison, alpha))
    shown = comparison.outcome in (outcomes.LOWER, outcomes.HIGHER)
    unless = f", if the host stayed the same: {first} was measured first" if shown and first else ""
    if comparison.difference is not None:
        return _exact(a, b, comparison, threshold) + unless
    interval = comparison.interval
    assert interval is not None
    span = f"{percent(interval.low)} to {percent(interval.high)} at {_level(interval.level)}"
    limit = None if threshold is None else f"{_short(100 * threshold)} %"
    if comparison.outcome == outcomes.SAME:
        apart = "" if interval.low <= 1 <= interval.high else f"; a difference is shown, but it is within {limit}"
        return f"same within {limit}: B differs from A by {percent(comparison.ratio)} ({span}){apart}"
    if comparison.outcome == outcomes.BELOW:
        return f"cannot tell: {_below(a, comparison)} ({span}), not shown to be the same within {limit}"
    if comparison.outcome == outcomes.NOTHING:
        not_same = f"; not shown to be the same within {limit}" if limit else ""
        if not interval.low <= 1 <= interval.high:
            return (
                f"no difference shown among {comparison.family:,} comparisons: {percent(comparison.ratio)} ({span} for "
                f"this test alone), p = {comparison.test.p:.2g}, adjusted p = {comparison.p_holm:.2g} (Holm){not_same}"
            )
        detectable = _short(100 * (comparison.detectable or 0))
        least = f"a difference of {detectable} % would be detected in {POWER:.0%} of such comparisons"
        return f"no difference shown: {percent(comparison.ratio)} ({span}); {least}{not_same}"
    return f"B is {_words(a)[comparison.outcome]}: {percent(comparison.ratio)} ({span}){unless}"


def _too_few(comparison: Comparison, alpha: float, more: str) -> str:
    """The observed difference, why it proves nothing about the programs, and how to collect enough data."""
    wanted = needed(alpha, comparison.family)
    many = " and ".join(counted_processes(number) for number in comparison.processes)
    where = "" if comparison.family == 1 else f" for {comparison.family:,} comparisons"
    interval = comparison.interval
    span = ""
    if interval is not None and interval.level:
        span = f" ({percent(interval.low)} to {percent(interval.high)} at {_level(interval.level)})"
    return (
        f"cannot tell: B differs from A by {percent(comparison.ratio)}{span}, but processes of one program differ too, "
        f"and {many} are too few{where}: measure at least {wanted} per side ({more})"
    )


def more_processes(a: TestSample, b: TestSample, comparison: Comparison, alpha: float) -> str:
    """Advice on how to get enough processes for the side that has fewer."""
    fewer = min(a, b, key=lambda side: len(side.processes))
    return fewer.more_processes.replace("{n}", str(needed(alpha, comparison.family)))


def counted_processes(number: int) -> str:
    """The number with its noun: "1 process", "4 processes"."""
    return f"{number:,} process{'' if number == 1 else 'es'}"


def _exact(a: TestSample, b: TestSample, comparison: Comparison, threshold: float | None) -> str:
    difference = comparison.difference or 0
    which = "the processes" if comparison.spread_a or comparison.spread_b else "every process"
    where = f"the {comparison.headline} of {which} is {amount(comparison.a)} in A"
    if comparison.outcome == outcomes.EQUAL:
        return f"equal: {where} and in B"
    line = f"{where} and {amount(comparison.b)} in B: {amount(difference, '+')} {a.unit} ({percent(comparison.ratio)})"
    if comparison.outcome == outcomes.STEP:
        return f"equal to within one step of the counter ({max(a.quantum, b.quantum)}): {line}"
    if comparison.outcome == outcomes.SAME:
        return f"same within {_short(100 * (threshold or 0))} %: {line}"
    if comparison.outcome == outcomes.BELOW:
        return f"cannot tell: {_below(a, comparison)}, not shown to be the same: {line}"
    if comparison.outcome == outcomes.NOTHING:
        return f"no difference shown among {comparison.family:,} comparisons: {line}"
    return f"B is {_words(a)[comparison.outcome]}, exactly: {line}"


def _below(a: TestSample, comparison: Comparison) -> str:
    """A sentence about a significant difference that is below the threshold."""
    word = _words(a)[outcomes.LOWER if comparison.ratio < 1 else outcomes.HIGHER]
    return f"B is {word}, but the measured difference is below the threshold: {percent(comparison.ratio)}"


def _words(sample: TestSample) -> dict[str, str]:
    return WORDS if sample.unit in FASTER_UNITS else SIZES


def _level(level: float) -> str:
    return f"{100 * level:.4g} %"


def notes(a: TestSample, b: TestSample, comparison: Comparison, first: str | None = None) -> list[str]:
    """The notes on a comparison. `first`: the side that was measured before the other."""
    lines = []
    if not a.like(b):
        lines.append(f"forced: {a.counter or a.unit} in A and {b.counter or b.unit} in B measure different quantities")
    if 1 in comparison.processes:
        which = [name for name, side in (("A", a), ("B", b)) if len(side.processes) == 1]
        lines.append(
            f"one process in {' and '.join(which)}: the spread between processes is unknown, and trials of one process "
            "are not independent: measure with several processes"
        )
    if a.host and b.host and a.host != b.host:
        rates = "; their ticks may differ in length" if "ticks" in a.unit else ""
        lines.append(f"different CPUs: {a.host} and {b.host}{rates}")
    if a.method and b.method and a.method != b.method:
        lines.append(f"the counter is read {a.method} in A and {b.method} in B: each value includes the cost of a read")
    if a.test != b.test:
        lines.append("two different tests")
    elif a.cpu is not None and b.cpu is not None and a.cpu != b.cpu:
        lines.append(f"measured on CPU {a.cpu} in A and on CPU {b.cpu} in B")
    for name, side in (("A", a), ("B", b)):
        if side.summary:
            lines.append(f"{name}: {side.summary}")
        if side.cut_short:
            lines.append(f"{name}: {side.cut_short} of {len(side.processes)} processes were cut short")
    if first:
        other = "B" if first == "A" else "A"
        lines.append(
            f"{first} was measured before {other}: a change on the host in between looks like a difference; "
            "alternate between them, one process at a time (`cbench run --output` and `pytest --cbench-store=FILE` add "
            "to their file)"
        )
    return lines
