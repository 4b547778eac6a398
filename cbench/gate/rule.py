"""Define when a gate reports a regression: the threshold, and the error rate and power of each session."""

from __future__ import annotations

from dataclasses import dataclass

from cbench.ab.analyze import ALPHA, POWER


@dataclass(frozen=True, slots=True)
class GateRule:
    """The rule for regressions. `threshold`: the slowdown to detect, as a share; `confirm`: whether a regression must
    be confirmed by a second session.

    `better`: "higher" or "lower" for all values that are not times; None decides by the unit.
    """

    threshold: float
    confirm: bool = True
    better: str | None = None

    @property
    def power(self) -> float:
        """The power of each session, chosen so that all required sessions together detect a slowdown by the threshold
        with POWER.
        """
        return POWER**0.5 if self.confirm else POWER

    def alpha(self, tests: int, again: bool) -> float:
        """The error rate for each of the `tests` in the first session, or for each suspect when suspects are measured
        `again`.
        """
        return ALPHA if self.confirm and not again else together(tests)


def together(tests: int) -> float:
    """The error rate for each of this many tests, for a combined error rate of ALPHA (Bonferroni)."""
    return ALPHA / max(tests, 1)
