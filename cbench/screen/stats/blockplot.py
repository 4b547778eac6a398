"""Compute block plots, which show whether the order of a factor's levels is the same for all levels of the other
factors.

Sources: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.3.3 and 5.5.9.5; D. Flater, NIST Technical Note 1855
(2014), section 4.6.3. If there is no effect, each of the L! orders is equally likely in each box, so all N boxes agree
with probability (1/L!)^(N-1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb, factorial

import numpy as np

from cbench.screen.design.factorial import Factor, named
from cbench.screen.stats.effects import Levels, Values


@dataclass(frozen=True, slots=True)
class Box:
    """One combination of levels of the other factors.

    `others`: these levels, without factors that are fully aliased with the primary factor. `means` (NaN: missing) and
    `questionable` have one entry per level of the primary factor. `order`: levels from the lowest mean to the highest;
    None if means are tied or missing. `tied`: whether some means are equal, False if one is missing. `missing`:
    whether a level has no mean, so that the box does not count.
    """

    others: str
    means: tuple[float, ...]
    order: tuple[str, ...] | None
    tied: bool
    missing: bool
    questionable: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BlockPlot:
    """The block plot of one factor. `boxes`: all boxes. `n`: the number of boxes that count, because no level is
    missing; `left_out`: the number of other boxes; `tied`: the number of counted boxes with equal means. `together`:
    other factors that change only with the primary factor (fully aliased), so that no box can hold them fixed.
    `consistent`: whether all `n` boxes have the same order, without ties; `chance`: the probability of this if no
    factor has an effect; `agreeing`: the number of boxes with the most frequent `order`. With two levels, `p_one` and
    `p_two` are the p-values of the sign test of `agreeing` (ties omitted). For a hard-to-change factor, `chance` counts
    one independent outcome per combination of the other hard factors, however many boxes share its batches, and there
    is no sign test. `p`: `chance` if consistent; otherwise `p_two`, which is None without a sign test. `needed`: the
    number of boxes required for a chance of at most alpha; `able`: whether there are enough boxes for the plot to be
    significant.
    """

    levels: tuple[str, ...]
    boxes: tuple[Box, ...]
    n: int
    tied: int
    left_out: int
    together: tuple[str, ...]
    consistent: bool
    order: tuple[str, ...] | None
    agreeing: int
    chance: float
    p_one: float | None
    p_two: float | None
    p: float | None
    needed: int
    able: bool


def block_plot(
    factors: Sequence[Factor],
    levels: Levels,
    means: Values,
    factor: int,
    questionable: Collection[int] = (),
    exclude: bool = False,
    alpha: float = 0.05,
) -> BlockPlot | None:
    """The block plot of one factor; None if fewer than two levels have means. `levels`: shape (treatments, factors);
    `means`: shape (treatments,), NaN if missing; `factor`: the number of the primary factor. `questionable`: the
    numbers of questionable treatments; `exclude`: whether to omit these.
    """
    means = np.array(means, dtype=np.float64)
    if exclude:
        means[list(questionable)] = np.nan
    known = np.flatnonzero(~np.isnan(means))
    ours = np.unique(levels[known, factor]).tolist()
    if len(ours) < 2:
        return None
    together = _together(levels[known], factor)
    fixed = [each for each in range(levels.shape[1]) if each != factor and each not in together]
    members: dict[tuple[int, ...], dict[int, int]] = {}
    for number in known.tolist():
        members.setdefault(tuple(levels[number, fixed].tolist()), {})[int(levels[number, factor])] = number
    boxes = []
    for others, numbers in sorted(members.items()):
        mine = [float(means[numbers[level]]) if level in numbers else float("nan") for level in ours]
        missing = len(numbers) < len(ours)
        tied = not missing and len(set(mine)) < len(mine)
        order = tuple(factors[factor].levels[level] for _, level in sorted(zip(mine, ours, strict=True)))
        boxes.append(
            Box(
                others=named([factors[each] for each in fixed], others),
                means=tuple(mine),
                order=None if missing or tied else order,
                tied=tied,
                missing=missing,
                questionable=tuple(numbers.get(level) in questionable for level in ours),
            )
        )
    counted = [box for box in boxes if not box.missing]
    hard = factors[factor].hard
    shared = [at for at in fixed if factors[at].hard] if hard else fixed
    draws = {
        tuple(others[fixed.index(at)] for at in shared)
        for (others, _), box in zip(sorted(members.items()), boxes, strict=True)
        if not box.missing
    }
    orders = Counter(box.order for box in counted if box.order is not None)
    most_frequent, agreeing = orders.most_common(1)[0] if orders else (None, 0)
    n, tied_boxes = len(counted), sum(box.tied for box in counted)
    consistent = bool(n) and agreeing == n
    signs = len(ours) == 2 and n > tied_boxes and not hard
    p_one, p_two = sign_test(agreeing, n - tied_boxes) if signs else (None, None)
    limit, luck = needed(len(ours), alpha), chance(len(ours), len(draws))
    return BlockPlot(
        levels=tuple(factors[factor].levels[level] for level in ours),
        boxes=tuple(boxes),
        n=n,
        tied=tied_boxes,
        left_out=len(boxes) - n,
        together=tuple(factors[each].name for each in together),
        consistent=consistent,
        order=most_frequent,
        agreeing=agreeing,
        chance=luck,
        p_one=p_one,
        p_two=p_two,
        p=luck if consistent else p_two,
        needed=limit,
        able=len(draws) >= limit,
    )


def chance(levels: int, boxes: int) -> float:
    """The probability that all boxes have the same order of this many levels if no factor has an effect; 1 for fewer
    than two boxes.
    """
    return float(factorial(levels)) ** -max(boxes - 1, 0)


def needed(levels: int, alpha: float) -> int:
    """The smallest number of boxes for a chance of at most alpha."""
    boxes = 1
    while chance(levels, boxes) > alpha:
        boxes += 1
    return boxes


def sign_test(agreeing: int, n: int) -> tuple[float, float]:
    """The one-sided and two-sided p-values of `agreeing` boxes out of `n`: the probability of at least as many boxes
    in a given direction, and the probability of a division that is at least as uneven.
    """
    one = sum(comb(n, each) for each in range(agreeing, n + 1)) / 2**n
    other = sum(comb(n, each) for each in range(max(agreeing, n - agreeing), n + 1)) / 2**n
    return one, min(1.0, 2 * other)


def _together(levels: Levels, factor: int) -> tuple[int, ...]:
    """The other factors, with at least two levels, whose level determines the primary factor's level and vice versa."""
    numbers = []
    for other in range(levels.shape[1]):
        pairs = np.unique(levels[:, [factor, other]], axis=0)
        if other != factor and all(np.unique(side).size == len(pairs) for side in pairs.T):
            numbers.append(other)
    return tuple(numbers)
