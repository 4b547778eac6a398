"""Summarize the values of one series in one order."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from cbench.order.stats.median_ci import MedianInterval
from cbench.order.stats.within_run_effects import median_of_sorted
from cbench.stats import median_ranks
from cbench.stats.trials import Values


@dataclass(frozen=True, slots=True)
class OrderSample:
    """The values of one series in one order. `values`: those that are compared, sorted; `failed`: the number of trials
    that do not count; `unpaired`: the number of values that a comparison of pairs leaves out.
    """

    values: Values = field(repr=False)
    failed: int
    mean: float
    median: float
    deviation: float  # population standard deviation
    unpaired: int = 0

    def interval(self, level: float, published: bool = False) -> MedianInterval | None:
        """The median's interval; None if there are too few values."""
        ranks = median_ranks.ranks(self.values.size, level, published)
        if ranks is None:
            return None
        return MedianInterval(float(self.values[ranks[0] - 1]), self.median, float(self.values[ranks[1] - 1]))


def sample(values: Values, failed: int, ordered: Values | None = None, unpaired: int = 0) -> OrderSample:
    """The sample of these values. `ordered`: the same values in increasing order, if already sorted."""
    if not values.size:
        return OrderSample(values, failed, np.nan, np.nan, np.nan, unpaired)
    ordered = np.sort(values) if ordered is None else ordered
    mean = float(values.sum()) / values.size
    away = ordered - mean
    deviation = sqrt(float(away @ away) / values.size)
    return OrderSample(ordered, failed, mean, median_of_sorted(ordered), deviation, unpaired)


def delta(fixed: float, random: float) -> float | None:
    """(fixed - random)/fixed in %, with the paper's sign; None if the fixed value is 0, or if one is missing."""
    if np.isnan(fixed) or np.isnan(random) or fixed == 0:
        return None
    return 100 * (fixed - random) / fixed
