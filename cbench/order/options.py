"""The options of an analysis, from texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbench.order.stats import ci_overlap, median_ci
from cbench.order.stats.analysis import CHI2, FAILURES, NULLS, PUBLISHED, OrderOptions
from cbench.stats import multiple_testing
from quiet.errors import UsageError

BONFERRONI = "bonferroni"  # in place of a level: 1 - alpha/number of tests


@dataclass(frozen=True, slots=True)
class TypedOrderOptions:
    """As typed; None: not given."""

    alpha: float | None = None
    correction: str | None = None
    intervals: str | None = None
    level: str | None = None
    case: str | None = None
    failures: str | None = None
    as_published: bool = False
    null: str | None = None


AS_PUBLISHED = OrderOptions(
    correction=multiple_testing.NONE,
    interval=median_ci.PUBLISHED,
    level=None,
    case=ci_overlap.TOOL,
    failures=PUBLISHED,
    null=CHI2,
)
"""What OrderSage's own tool computes, and the paper's tables show: p-values are not corrected, intervals are."""


def options(asked: TypedOrderOptions) -> OrderOptions:
    """Raises UsageError, which says what may be written."""
    found = AS_PUBLISHED if asked.as_published else OrderOptions()
    if asked.alpha is not None:
        if not 0 < asked.alpha < 1:
            raise UsageError(f"--alpha {asked.alpha:g}: between 0 and 1, such as 0.05")
        found = replace(found, alpha=asked.alpha)
    if asked.level is not None:
        found = replace(found, level=_level(asked.level))
    return replace(
        found,
        correction=_chosen("--correction", asked.correction, multiple_testing.RULES, found.correction),
        interval=_chosen("--intervals", asked.intervals, median_ci.RULES, found.interval),
        case=_chosen("--case", asked.case, ci_overlap.RULES, found.case),
        failures=_chosen("--failures", asked.failures, FAILURES, found.failures),
        null=_chosen("--null", asked.null, NULLS, found.null),
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
