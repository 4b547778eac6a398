"""The answer of `cbench compare` in words."""

from __future__ import annotations

from cbench.compare import stats as outcomes
from cbench.compare.readers.reader import TestSample
from cbench.compare.stats import LEAST, POWER, Comparison

WORDS = {outcomes.LOWER: "faster", outcomes.HIGHER: "slower"}
SIZES = {outcomes.LOWER: "smaller", outcomes.HIGHER: "larger"}
TIMES = ("cycles", "TSC ticks", "cntvct ticks", "ns", "second")
"""The units of which fewer are faster; of others there are just more or less."""
DIGITS = 4


def percent(ratio: float) -> str:
    """A ratio as a change: "+1.25 %", with as many digits as it takes to show that it is none of 0."""
    return f"{_short(100 * (ratio - 1), '+')} %"


def _short(value: float, sign: str = "") -> str:
    if value == 0:
        return "0"
    return f"{value:{sign}.{DIGITS - 1}g}" if abs(value) < 1000 else f"{value:{sign},.0f}"


def amount(value: float, sign: str = "") -> str:
    """A headline: a whole number in full, a large one to a tenth, a small one to six digits."""
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 1):
        return f"{int(value):{sign},}"
    return f"{value:{sign},.1f}" if abs(value) >= 1000 else f"{value:{sign}.6g}"


def verdict(a: TestSample, b: TestSample, comparison: Comparison, margin: float | None) -> str:
    """One line: B against A."""
    if comparison.difference is not None:
        return _exact(a, b, comparison, margin)
    if comparison.interval is None:
        return (
            f"not tested: B's {comparison.headline} differs from A's by {percent(comparison.ratio)}, but one process a "
            f"side gives no interval for a {comparison.headline}: compare at least 4 processes a side"
        )
    interval = comparison.interval
    span = f"{percent(interval.low)} to {percent(interval.high)} at {_level(interval.level)}"
    many = f"{_counted(a, comparison)} and {_counted(b, comparison)}"
    if comparison.outcome == outcomes.TOO_FEW:
        return (
            f"cannot tell: B differs from A by {percent(comparison.ratio)} ({span}); {many} allow no higher level; "
            "take at least 4 and 4"
        )
    margins = None if margin is None else f"{_short(100 * margin)} %"
    if comparison.outcome == outcomes.SAME:
        apart = "" if interval.low <= 1 <= interval.high else "; a difference is shown, but lies within that"
        return f"same within {margins}: B differs from A by {percent(comparison.ratio)} ({span}){apart}"
    if comparison.outcome == outcomes.NOTHING:
        least = (
            f"one of {_short(100 * (comparison.detectable or 0))} % would have shown in {POWER:.0%} of such comparisons"
        )
        not_same = f"; not shown to be the same within {margins}" if margins else ""
        return f"no difference shown: {percent(comparison.ratio)} ({span}), {least}{not_same}"
    within = "" if comparison.by_process else ", as far as trials of one process tell"
    return f"B is {_words(a)[comparison.outcome]}: {percent(comparison.ratio)} ({span}){within}"


def _exact(a: TestSample, b: TestSample, comparison: Comparison, margin: float | None) -> str:
    difference = comparison.difference or 0
    few = min(len(a.processes), len(b.processes)) < LEAST
    where = f"{_constant(a, b, comparison, few)} is {amount(comparison.a)} in A"
    if comparison.outcome == outcomes.EQUAL:
        return f"equal: {where} and in B"
    line = f"{where} and {amount(comparison.b)} in B: {amount(difference, '+')} {a.unit} ({percent(comparison.ratio)})"
    if few:
        line += f"; {_tried(a)} in A, {_tried(b)} in B"
    if comparison.outcome == outcomes.STEP:
        return f"equal to one step of the counter ({max(a.quantum, b.quantum)}): {line}"
    if comparison.outcome == outcomes.SAME:
        return f"same within {_short(100 * (margin or 0))} %: {line}"
    return f"B is {_words(a)[comparison.outcome]}, exactly: {line}"


def _constant(a: TestSample, b: TestSample, comparison: Comparison, few: bool) -> str:
    """What it is that has one value on each side: with few processes their headlines alone say little."""
    if few and all(len({value for values in side.processes for value in values}) == 1 for side in (a, b)):
        return "every trial"
    if (
        few
        and comparison.headline == "floor"
        and all(outcomes.cycle_exact(side.clean, side.quantum) for side in (a, b))
    ):
        return "the floor, on which all undisturbed trials are,"
    return f"the {comparison.headline} of every process"


def _words(sample: TestSample) -> dict[str, str]:
    return WORDS if sample.unit in TIMES else SIZES


def _counted(sample: TestSample, comparison: Comparison) -> str:
    if comparison.by_process:
        return f"{len(sample.processes):,} process{'' if len(sample.processes) == 1 else 'es'}"
    return f"{sample.trials:,} trial{'' if sample.trials == 1 else 's'}"


def _tried(sample: TestSample) -> str:
    """ "15 trials of 3 processes"."""
    trials, processes = sample.trials, len(sample.processes)
    return f"{trials:,} trial{'' if trials == 1 else 's'} of {processes:,} process{'' if processes == 1 else 'es'}"


def _level(level: float) -> str:
    return f"{100 * level:.4g} %"


def notes(a: TestSample, b: TestSample, comparison: Comparison) -> list[str]:
    """What a reader must know of it."""
    lines = []
    if not comparison.by_process:
        which = [name for name, side in (("A", a), ("B", b)) if len(side.processes) == 1]
        lines.append(
            f"one process in {' and '.join(which)}: the spread between processes is unknown, and trials of one process "
            "are not independent: measure with several processes"
        )
    if a.host and b.host and a.host != b.host:
        rates = "; their ticks may be of different length" if "ticks" in a.unit else ""
        lines.append(f"different CPUs: {a.host} and {b.host}{rates}")
    if a.method and b.method and a.method != b.method:
        lines.append(f"read differently, {a.method} in A, {b.method} in B: what a read costs is in each value")
    if a.test != b.test:
        lines.append("two different tests")
    elif a.cpu is not None and b.cpu is not None and a.cpu != b.cpu:
        lines.append(f"on CPU {a.cpu} and on CPU {b.cpu}")
    for name, side in (("A", a), ("B", b)):
        if side.cut_short:
            lines.append(f"{name}: {side.cut_short} of {len(side.processes)} processes cut short")
    return lines
