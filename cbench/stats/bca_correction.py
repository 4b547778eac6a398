"""What makes a bootstrap interval BCa: bias correction, acceleration, and the quantiles of the replicates.

B. Efron, "Better bootstrap confidence intervals", J. Amer. Statist. Assoc. 82 (1987) 171-185; T. J. DiCiccio, B. Efron,
"Bootstrap confidence intervals", Statist. Sci. 11 (1996) 189-228, section 2. z0 = Phi^-1(P), where P is the share of
replicates below the estimate; a = sum d^3/(6 (sum d^2)^(3/2)), d_i: mean of the jackknife values less the i-th one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, sqrt
from statistics import NormalDist

import numpy as np

from cbench.stats.interval import LINEAR, MEDIAN, STRICT, Values

_NORMAL = NormalDist()
_SORTED = 4096
"""So few replicates are sorted as a whole."""

_PROBE = 1024
"""So many of more replicates say about where a quantile is."""

_FAR = 4
"""How many standard deviations of the probe's rank the guess is on the safe side."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """P and z0, acceleration a, and which quantiles of the replicates the ends are; `why`: there are none."""

    p: float
    z0: float
    a: float
    low: float
    high: float
    why: str | None = None


def corrected(p: float, a: float, level: float) -> Corrected:
    """The two quantiles for a share `p` of replicates below the estimate. `why` where they cannot be computed."""
    none = float("nan")
    if not 0 < p < 1:
        share = "every" if p >= 1 else "no"
        return Corrected(
            p, none, a, none, none, f"{share} replicate is below the estimate: its bias cannot be corrected"
        )
    z0 = _NORMAL.inv_cdf(p)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + _NORMAL.inv_cdf(tail)
        if a * z >= 1:
            return Corrected(p, z0, a, none, none, f"an acceleration of {a:.3g} is too much for level {level:g}")
        ends.append(_NORMAL.cdf(z0 + z / (1 - a * z)))
    return Corrected(p, z0, a, ends[0], ends[1])


def share_below(replicates: Values, estimate: float, ties: str, rounding: float = 0.0) -> float:
    """P by one of TIES; replicates within `rounding` of the estimate are equal to it."""
    below = int(np.count_nonzero(replicates < estimate - rounding))
    if ties == STRICT:
        return below / replicates.size
    upto = int(np.count_nonzero(replicates <= estimate + rounding))
    return (below + upto) / (2 * replicates.size)


def acceleration(row: Values, statistic: str) -> float | None:
    """a by the jackknife, for means skew/(6 sqrt n); None where leaving out any one value changes nothing."""
    away = _left_out(np.sort(row)) if statistic == MEDIAN else row
    away = away.mean() - away if statistic == MEDIAN else away - away.mean()
    largest = float(np.abs(away).max())
    if largest == 0 or not isfinite(largest):
        return None
    away = away / largest
    return float((away**3).sum() / (6 * (away**2).sum() ** 1.5))


def _left_out(ordered: Values) -> Values:
    """The median without each value of a sorted row of 2 or more."""
    n, m = ordered.size, ordered.size // 2
    if n % 2 == 0:
        return np.repeat([ordered[m], ordered[m - 1]], m)
    low, middle, high = ordered[m - 1] / 2, ordered[m] / 2, ordered[m + 1] / 2
    return np.concatenate([np.repeat(middle + high, m), [low + high], np.repeat(low + middle, m)])


def place(count: int, q: float, quantile: str) -> tuple[int, float]:
    """A quantile's place among `count` ascending values: the number of the lower one, and how far to the next."""
    if quantile != LINEAR:
        return min(max(ceil(count * q) - 1, 0), count - 1), 0.0
    at = (count - 1) * q
    whole = min(floor(at), count - 1)
    return whole, at - whole


def quantiles(replicates: Values, low: float, high: float, quantile: str) -> tuple[float, float]:
    """Both ends: the `low` and the `high` quantile of replicates in any order."""
    if replicates.size <= _SORTED:
        ordered = np.sort(replicates)
        return _at(ordered, place(ordered.size, low, quantile)), _at(ordered, place(ordered.size, high, quantile))
    probe = np.sort(replicates[:: replicates.size // _PROBE])
    return _quantile(replicates, probe, low, quantile), _quantile(replicates, probe, high, quantile)


def _quantile(replicates: Values, probe: Values, q: float, quantile: str) -> float:
    """Only the tail that surely has it is ordered; whether it has is checked."""
    whole, part = place(replicates.size, q, quantile)
    upper = q > 0.5
    rank = probe.size * (1 - q if upper else q)
    inner = ceil(rank + _FAR * sqrt(rank) + _FAR)
    if inner < probe.size // 2:
        tail = replicates[replicates >= probe[-1 - inner]] if upper else replicates[replicates <= probe[inner]]
        first = whole - (replicates.size - tail.size if upper else 0)
        if first >= 0 and first + 1 < tail.size:
            return _at(np.partition(tail, (first, first + 1)), (first, part))
    if whole + 1 < replicates.size:
        return _at(np.partition(replicates, (whole, whole + 1)), (whole, part))
    return float(replicates.max())


def _at(ordered: Values, where: tuple[int, float]) -> float:
    whole, part = where
    low = float(ordered[whole])
    return low + part * (float(ordered[whole + 1]) - low) if part else low
