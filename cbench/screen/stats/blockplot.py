"""Block plots: is the order of a factor's levels the same whatever the other factors are?

NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.3.3 and 5.5.9.5; D. Flater, NIST Technical Note 1855 (2014),
section 4.6.3. With no effect each of the L! orders is equally likely in each box, so all N boxes agree with the chance
(1/L!)^(N-1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from math import comb, factorial, isnan

import numpy as np

from cbench.screen.stats.effects import Levels, Values


@dataclass(frozen=True, slots=True)
class Box:
    """One combination of the other factors.

    `others`: their levels (-1 at the primary factor's place and at factors that go with it); by the primary factor's
    levels: `means` (NaN: missing), `treatments` (their numbers, -1: missing), `questionable`. `ordering`: levels from
    the lowest mean to the highest; None where means are tied or missing.
    """

    others: tuple[int, ...]
    means: tuple[float, ...]
    treatments: tuple[int, ...]
    questionable: tuple[bool, ...]
    ordering: tuple[int, ...] | None
    tied: bool

    @property
    def missing(self) -> bool:
        """Whether a level has no mean, so that the box does not count."""
        return any(isnan(mean) for mean in self.means)


@dataclass(frozen=True, slots=True)
class BlockPlot:
    """`boxes`: all; `n` of them count (no level missing), `tied` of these have equal means. `together`: other factors
    that change only with the primary one (fully aliased), which no box can hold fixed.

    `consistent`: all `n` have the same ordering, without ties; `chance`: of that when nothing has an effect;
    `agreeing`: how many have the most frequent `ordering`. Two levels: `p_one`, `p_two` are the sign test of that (ties
    left out). `p`: `chance` where consistent; else `p_two`, or None for more levels (no test). `needed`: boxes for a
    chance of at most alpha; `able`: there are so many, so that the plot can be significant.
    """

    factor: int
    levels: tuple[int, ...]
    boxes: tuple[Box, ...]
    n: int
    tied: int
    together: tuple[int, ...]
    consistent: bool
    ordering: tuple[int, ...] | None
    chance: float
    agreeing: int
    p_one: float | None
    p_two: float | None
    p: float | None
    needed: int
    able: bool


def block_plot(
    levels: Levels,
    means: Values,
    factor: int,
    questionable: Collection[int] = (),
    exclude: bool = False,
    alpha: float = 0.05,
) -> BlockPlot | None:
    """`levels`: shape (treatments, factors); `means`: shape (treatments,), NaN: none. `questionable`: numbers of
    treatments, which `exclude` leaves out. None where fewer than two levels have means."""
    means = np.array(means, dtype=np.float64)
    if exclude:
        means[list(questionable)] = np.nan
    known = np.flatnonzero(~np.isnan(means))
    ours = sorted({int(level) for level in levels[known, factor]})
    if len(ours) < 2:
        return None
    together = _together(levels[known], factor)
    fixed = [each for each in range(levels.shape[1]) if each != factor and each not in together]
    members: dict[tuple[int, ...], dict[int, int]] = {}
    for number in known.tolist():
        others = tuple(int(levels[number, each]) if each in fixed else -1 for each in range(levels.shape[1]))
        members.setdefault(others, {})[int(levels[number, factor])] = number
    boxes = tuple(_box(others, found, ours, means, questionable) for others, found in sorted(members.items()))
    counted = [box for box in boxes if not box.missing]
    orderings = Counter(box.ordering for box in counted if box.ordering is not None)
    ordering, agreeing = orderings.most_common(1)[0] if orderings else (None, 0)
    n, tied = len(counted), sum(box.tied for box in counted)
    consistent = bool(n) and agreeing == n
    p_one, p_two = sign_test(agreeing, n - tied) if len(ours) == 2 and n > tied else (None, None)
    limit = needed(len(ours), alpha)
    return BlockPlot(
        factor=factor,
        levels=tuple(ours),
        boxes=boxes,
        n=n,
        tied=tied,
        together=together,
        consistent=consistent,
        ordering=ordering,
        chance=chance(len(ours), n),
        agreeing=agreeing,
        p_one=p_one,
        p_two=p_two,
        p=chance(len(ours), n) if consistent else p_two,
        needed=limit,
        able=n >= limit,
    )


def chance(levels: int, boxes: int) -> float:
    """That all boxes order so many levels alike when nothing has an effect; 1 with fewer than two boxes."""
    return float(factorial(levels)) ** -max(boxes - 1, 0)


def needed(levels: int, alpha: float) -> int:
    """The fewest boxes whose chance is at most alpha. ValueError for fewer than two levels or no alpha."""
    if levels < 2 or not 0 < alpha <= 1:
        raise ValueError("two levels and an alpha above 0 are needed")
    boxes = 1
    while chance(levels, boxes) > alpha:
        boxes += 1
    return boxes


def sign_test(agreeing: int, n: int) -> tuple[float, float]:
    """(one-sided, two-sided) chance that so many or more of n boxes have one direction given beforehand, and that they
    are so unevenly divided. The second is at most 1."""
    one = sum(comb(n, each) for each in range(agreeing, n + 1)) / 2**n
    other = sum(comb(n, each) for each in range(max(agreeing, n - agreeing), n + 1)) / 2**n
    return one, min(1.0, 2 * other)


def _together(levels: Levels, factor: int) -> tuple[int, ...]:
    """Other factors of two levels or more whose level is given by the primary one's and gives it."""
    found = []
    for other in range(levels.shape[1]):
        pairs = {(int(row[factor]), int(row[other])) for row in levels}
        sides = len({one for one, _ in pairs}), len({two for _, two in pairs})
        if other != factor and sides == (len(pairs), len(pairs)):
            found.append(other)
    return tuple(found)


def _box(
    others: tuple[int, ...], members: dict[int, int], levels: list[int], means: Values, questionable: Collection[int]
) -> Box:
    numbers = tuple(members.get(level, -1) for level in levels)
    ours = tuple(float(means[number]) if number >= 0 else float("nan") for number in numbers)
    missing = -1 in numbers
    tied = not missing and len(set(ours)) < len(ours)
    ordering = None if missing or tied else tuple(level for _, level in sorted(zip(ours, levels, strict=True)))
    return Box(others, ours, numbers, tuple(number in questionable for number in numbers), ordering, tied)
