"""Represent the interval of a mean, or the reason why there is none, and compute Student's interval.

This module also names the conventions on which programs differ, and contains the checks of a sample that all intervals
share. A sample is a one-dimensional array in any unit; the ends of its interval are in the same unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbench.stats.distributions import t_quantile

Values = NDArray[np.float64]

STRICT, MID = "strict", "mid"
TIES = (STRICT, MID)
"""The conventions for replicates that equal the estimate. In the share P of replicates below the estimate, they do not
count (STRICT, as in R's boot), or count as one half each (MID, as in scipy).
"""

LARGEST = 1e150
TOO_LARGE = "the values are too large to be squared"

BCA, T = "BCa", "t"
METHODS = (T, BCA)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval from `low` to `high`, in the values' unit, at `level`; both are None if there is no interval, with
    the reason in `why`. `method`: "BCa (mid)", "BCa (strict)" or "t". `replicates`: the number of replicates used, 0 if
    none are needed. `why` may also contain a caveat about an existing interval (all values equal, not stable with this
    many replicates).
    """

    low: float | None
    high: float | None
    level: float
    method: str
    replicates: int = 0
    why: str | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends; None if there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def width(self) -> float | None:
        """The width, high - low; None if there is no interval."""
        return None if self.low is None or self.high is None else self.high - self.low

    @property
    def half(self) -> float | None:
        """Half the width; None if there is no interval."""
        width = self.width
        return None if width is None else width / 2

    def holds(self, value: float) -> bool:
        """Whether `value` lies in the interval, ends included; False if there is no interval."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high


def checked(values: ArrayLike) -> Values:
    """The values as a one-dimensional array of floats. Raises ValueError for more than one dimension."""
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"the values have {row.ndim} dimensions: pass a one-dimensional array")
    return row


def check_level(level: float) -> None:
    """Raise ValueError if the level is not within (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level = {level}: must be above 0 and below 1")


def exponent(values: Values) -> int:
    """The exponent of the smallest power of two above the largest magnitude. If values are scaled by 2^-exponent, the
    sum of their squares neither underflows to 0 nor overflows, and the values keep their digits.
    """
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def scaled(number: float, power: int) -> float:
    """The number times 2^power; infinite on overflow."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(number, power))


def deviation(row: Values) -> float | None:
    """The standard deviation with the divisor n - 1; exactly 0 if all values are equal, None for fewer than 2
    values.
    """
    if row.size < 2:
        return None
    power = exponent(row)
    return 0.0 if row.min() == row.max() else float(np.ldexp(np.ldexp(row, -power).std(ddof=1), power))


def no_numbers(row: Values) -> str | None:
    """The reason why the values have no interval if some are not finite; None if all are finite."""
    wrong = int(row.size - np.count_nonzero(np.isfinite(row)))
    return f"{wrong:,} of {row.size:,} values are not finite numbers" if wrong else None


def no_squares(row: Values) -> str | None:
    """The reason why the values have no interval, or no standard deviation within 64-bit range; None if they have
    both.
    """
    if row.size and np.isfinite(row).all() and float(np.abs(row).max()) > LARGEST:
        return TOO_LARGE
    return no_numbers(row)


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval of the mean, mean -+ t(n - 1, (1 + level)/2) s/sqrt(n). There is no interval, with the reason
    in `why`, for fewer than 2 values, and for values that are not finite or whose magnitude is above LARGEST. Raises
    ValueError for a level outside (0, 1), or values of more than one dimension.
    """
    check_level(level)
    row = checked(values)
    why = no_squares(row)
    if why is None and row.size < 2:
        why = f"2 values are needed, but there {'is' if row.size == 1 else 'are'} {row.size}"
    if why is not None:
        return Interval(None, None, level, T, 0, why)
    if row.min() == row.max():
        return Interval(float(row[0]), float(row[0]), level, T, 0, alike(row.size))
    middle = float(row.mean())
    half = t_quantile((1 + level) / 2, row.size - 1) * (deviation(row) or 0.0) / sqrt(row.size)
    return Interval(middle - half, middle + half, level, T)


def alike(n: int) -> str:
    """The caveat for an interval of width 0."""
    return f"all {n:,} values are equal: a width of 0 says nothing about other values"
