"""Decide by a sequential test whether the host is noisier without a group of knobs. No I/O.

The test is Wald's sequential probability ratio test (A. Wald, Ann. Math. Statist. 16 (1945) 117-186) of no difference
against a difference of `matters`, once for each direction (M. Sobel, A. Wald, Ann. Math. Statist. 20 (1949) 502-522):
one measurement is enough if the noise is low; otherwise the test requests another. The probability that any inert knob
is reported as mattering is limited to about alpha for the whole screening: alpha is divided by the number of knobs. The
idea of testing every group of a bisection in this way comes from controlled sequential bifurcation (H. Wan, B. E.
Ankenman, B. L. Nelson, Oper. Res. 54 (2006) 743-755).

The unit of observation is the application, because the spread between applications, not the spread within one, shows
how well a level repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import NormalDist, fmean, median

from cbench.stats.distributions import student_p, t_quantile

MISSED = 0.01
"""The probability, at each decision, that a group with a joint effect of `matters` is judged to have none."""
SMALLEST, LARGEST, OF_ALL = 3.0, 6.0, 0.25
"""The smallest effect that matters is the share OF_ALL of the noise that the profile removes, but at least SMALLEST and
at most LARGEST standard deviations. In any case, it is at least `within` of the quiet level.
"""
MOST_REPEATS = 5
FEW, HEAVY = 6, 2.0
"""With at least FEW values, the standard deviation is limited to HEAVY times the estimate from the median absolute
deviation, because outliers cause any excess.
"""
CAUTION = 0.975
"""A standard deviation is enlarged by the ratio of this quantile of Student's t to that of the normal distribution."""
NORMAL_MAD = 1.4826
LEAST_STEP = 1e-4
"""The smallest credible noise, as a share of the quiet level plus its distance from the level without any knob."""
LOUDER, QUIETER, ALIKE = 1, -1, 0


@dataclass(slots=True)
class QuietLevel:
    """The level of the quiet host, estimated from all applications that were judged to be at this level.

    `segments`: earlier levels, from before a harmful knob was left out. `range_`: the distance from this level to the
    level without any knob.
    """

    within: float
    alpha: float
    knobs: int
    values: list[float] = field(default_factory=list)
    segments: list[list[float]] = field(default_factory=list)
    range_: float = 0.0

    @property
    def center(self) -> float:
        """The median of the values at this level."""
        return median(self.values)

    def begin_anew(self, values: Sequence[float]) -> None:
        """Start a new level with these values."""
        self.segments.append(self.values)
        self.values = list(values)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of `deviation`."""
        return max(1, sum(len(each) - 1 for each in (*self.segments, self.values) if each))

    @property
    def deviation(self) -> float:
        """The standard deviation of one application's value."""
        rows = [each for each in (*self.segments, self.values) if len(each) > 1]
        squares = sum((value - fmean(row)) ** 2 for row in rows for value in row)
        found = sqrt(squares / self.freedom)
        residuals = [abs(value - median(row)) for row in rows for value in row]
        if len(residuals) >= FEW:
            found = min(found, HEAVY * NORMAL_MAD * median(residuals)) or found
        return max(found, LEAST_STEP * (abs(self.range_) + abs(self.center)), 1e-300)

    @property
    def cautious(self) -> float:
        """The standard deviation, enlarged the more, the fewer values it is estimated from."""
        return self.deviation * t_quantile(CAUTION, self.freedom) / NormalDist().inv_cdf(CAUTION)

    @property
    def matters(self) -> float:
        """The smallest difference to detect."""
        noise = self.cautious
        seen = min(LARGEST * noise, max(SMALLEST * noise, OF_ALL * abs(self.range_)))
        return max(self.within * abs(self.center), seen)

    def judge(self, values: Sequence[float]) -> int | None:
        """Judge the values of one group: LOUDER, QUIETER or ALIKE; None to measure again."""
        difference = center_of(values) - self.center
        variance = self.cautious**2 * (1 / len(values) + 1 / len(self.values))
        matters = self.matters
        yes, no = log((1 - MISSED) * self.knobs / self.alpha), log(MISSED / (1 - self.alpha / self.knobs))
        up = matters * (difference - matters / 2) / variance
        down = matters * (-difference - matters / 2) / variance
        if up >= yes or down >= yes:
            return LOUDER if up >= yes else QUIETER
        if max(up, down) <= no:
            return ALIKE
        if len(values) < MOST_REPEATS:
            return None
        return ALIKE if max(up, down) < 0 else LOUDER if up > down else QUIETER

    def p_value(self, difference: float, repeats: int) -> float:
        """The p-value of a difference that `repeats` values show, after Bonferroni's correction for all knobs."""
        error = self.deviation * sqrt(1 / repeats + 1 / len(self.values))
        return min(1.0, self.knobs * student_p(difference / error, self.freedom))


def center_of(values: Sequence[float]) -> float:
    """The mean of up to two values, the median of more."""
    return fmean(values) if len(values) < 3 else median(values)
