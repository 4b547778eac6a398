"""Judge whole suites: one outcome per test, the summary, and the exit code of `cbench compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from cbench.compare import stats as outcomes
from cbench.compare.stats import Comparison
from cbench.formats.units import TIMES, is_rate
from cbench.model import CALIBRATED_UNIT

SLOWER, FASTER, LARGER, SMALLER = "slower", "faster", "larger", "smaller"
SAME, NOT_SHOWN, CANNOT_TELL = "same", "no difference shown", "cannot tell"
ORDER = (SLOWER, LARGER, FASTER, SMALLER, SAME, NOT_SHOWN, CANNOT_TELL)
FASTER_UNITS = ("cycles", CALIBRATED_UNIT, "TSC ticks", "cntvct ticks", *TIMES)
"""The units in which a smaller value is faster. In all other units, a value is only larger or smaller."""
HIGHER, LOWER = "higher", "lower"
"""The values of `better`: the direction in which a metric improves."""

NO_REGRESSION, REGRESSION, NOTHING_JUDGED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A test of a suite: NEW against OLD.

    `delta_pct`: how much higher NEW's headline is, in %, None if only OLD's is 0; `interval_pct`: this test's
    uncorrected interval, None if the samples allow none. `p`: the p-value for no difference; `p_adjusted`: `p`
    corrected for all tests. `p_same_adjusted`: corrected p for a difference beyond the threshold, None if there is no
    threshold. `n`: processes in OLD and in NEW.
    """

    outcome: str
    delta_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None
    p_adjusted: float | None
    p_same_adjusted: float | None
    n: tuple[int, int]

    @property
    def claim_p(self) -> float | None:
        """The adjusted p-value of the claim or, without a claim, of no difference."""
        return self.p_same_adjusted if self.outcome == SAME and self.p_same_adjusted is not None else self.p_adjusted


def suite_test(one: Comparison, unit: str, threshold: float | None, known: bool) -> SuiteTest:
    """The suite's entry for a comparison. `known`: whether the values allow a comparison at all."""
    interval = one.interval if one.interval is not None and one.interval.level else None
    delta = _pct(one.ratio) if isfinite(one.ratio) else None
    exact = None if one.difference is None or delta is None else (delta, delta)
    return SuiteTest(
        outcome=outcome(one.outcome, unit, threshold),
        delta_pct=delta,
        interval_pct=exact if interval is None else (_pct(interval.low), _pct(interval.high)),
        p=one.test.p if known else None,
        p_adjusted=one.p_holm if known else None,
        p_same_adjusted=one.p_same_holm if known else None,
        n=one.processes,
    )


def outcome(compared: str, unit: str, threshold: float | None) -> str:
    """The outcome of a comparison as one of ORDER."""
    if compared in (outcomes.LOWER, outcomes.HIGHER):
        lower, higher = (FASTER, SLOWER) if unit in FASTER_UNITS else (SMALLER, LARGER)
        return lower if compared == outcomes.LOWER else higher
    if compared in (outcomes.EQUAL, outcomes.SAME):
        return SAME
    if compared in (outcomes.NOTHING, outcomes.STEP) and threshold is None:
        return NOT_SHOWN
    return CANNOT_TELL


def more_is_better(unit: str, better: str | None = None) -> bool:
    """Whether a larger value is better. `better`: HIGHER or LOWER for all units that are not times; None decides by the
    unit's name.
    """
    if unit in FASTER_UNITS:
        return False
    return is_rate(unit) if better is None else better == HIGHER


def worse(outcome: str, unit: str, better: str | None = None) -> bool | None:
    """True for a regression, False for an improvement, None for neither.

    `better`: HIGHER or LOWER for all units that are not times; None decides by the unit's name.
    """
    if outcome in (SLOWER, FASTER):
        return outcome == SLOWER
    if outcome in (LARGER, SMALLER):
        return (outcome == LARGER) != more_is_better(unit, better)
    return None


def counted(found: Sequence[str], alpha: float, threshold: float | None) -> str:
    """The summary in one line: "20 tests: 1 slower, 19 same within 1 %; alpha 5 % over all tests (Holm)"."""
    number = Counter(found)
    within = "" if threshold is None else f" within {100 * threshold:g} %"
    parts = [f"{number[each]:,} {each}{within if each == SAME else ''}" for each in ORDER if number[each]]
    tests = f"{len(found):,} test{'' if len(found) == 1 else 's'}"
    return f"{tests}: {', '.join(parts)}; alpha {100 * alpha:g} % over all tests (Holm)"


def exit_code(found: Mapping[str, Sequence[str]], regressions: int) -> int:
    """The exit code of a comparison: 0 without a regression, 1 with one, 2 if no test could be judged. `found`: the
    outcomes by unit; if there are times or cycles, at least one of these must be judged, because counts such as B/op
    are often constant.
    """
    if regressions:
        return REGRESSION
    times = [each for unit, of in found.items() if unit in FASTER_UNITS for each in of]
    judged = times or [each for of in found.values() for each in of]
    return NOTHING_JUDGED if all(each == CANNOT_TELL for each in judged) else NO_REGRESSION


def _pct(ratio: float) -> float:
    return 100 * (ratio - 1)
