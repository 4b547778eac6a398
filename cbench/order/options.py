"""The options of `cbench order analyze` and `report`, from what was typed to what the analysis takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quiet import UsageError

if TYPE_CHECKING:
    from cbench.order.stats.analysis import AnalysisRules

BONFERRONI = "bonferroni"  # in place of a level: 1 - alpha/number of tests


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """As typed; None: not given. `values`: columns of a table; `delta`: the shift in % for which runs are counted."""

    data: str
    alpha: float | None = None
    correction: str | None = None
    intervals: str | None = None
    level: str | None = None
    case: str | None = None
    failures: str | None = None
    null: str | None = None
    as_published: bool = False
    delta: float | None = None
    values: Sequence[str] = ()

    @property
    def shift(self) -> float:
        """`delta`, or its default. Raises UsageError."""
        if self.delta is None:
            return 1.0
        if not 0 < self.delta <= 1000:
            raise UsageError(f"--delta {self.delta:g}: a shift in %, above 0 and at most 1000")
        return self.delta

    def rules(self, alpha: float | None = None, failures: str | None = None) -> AnalysisRules:
        """What was typed; else what the study's file says (`alpha`, `failures`); else the defaults.

        With `as_published` the defaults are those of OrderSage's own tool, which the paper's tables show: p-values are
        not corrected, intervals are. Raises UsageError, which says what may be written.
        """
        from cbench.order.stats import ci_overlap, median_ci
        from cbench.order.stats.analysis import FAILURES, NULLS, PUBLISHED_RULES, AnalysisRules
        from cbench.stats import multiple_testing

        default = PUBLISHED_RULES if self.as_published else AnalysisRules()
        if self.alpha is not None:
            alpha = self.alpha
        if self.failures is not None or self.as_published:
            failures = self.failures
        if alpha is not None and not 0 < alpha < 1:
            raise UsageError(f"--alpha {alpha:g}: between 0 and 1, such as 0.05")
        return AnalysisRules(
            default.alpha if alpha is None else alpha,
            _chosen("--correction", self.correction, multiple_testing.RULES, default.correction),
            _chosen("--intervals", self.intervals, median_ci.RULES, default.interval),
            default.level if self.level is None else _level(self.level),
            _chosen("--case", self.case, ci_overlap.RULES, default.case),
            _chosen("--failures", failures, FAILURES, default.failures),
            _chosen("--null", self.null, NULLS, default.null),
        )


def _chosen(name: str, value: str | None, allowed: Sequence[str], default: str) -> str:
    if value is not None and value not in allowed:
        raise UsageError(f"{name} {value}: one of {', '.join(allowed)}")
    return default if value is None else value


def _level(text: str) -> float | None:
    if text == BONFERRONI:
        return None
    try:
        value = float(text.removesuffix("%")) / (100 if float(text.removesuffix("%")) >= 1 else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UsageError(f"--ci-level {text}: a level such as 95 or 0.95, or {BONFERRONI}")
    return value
