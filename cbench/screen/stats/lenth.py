"""Test the effects of an unreplicated two-level design against each other, assuming that most are inert.

R. V. Lenth, "Quick and easy analysis of unreplicated factorials", Technometrics 31 (1989) 469-473: s0 is 1.5 times the
median magnitude of the contrasts, and PSE is 1.5 times the median of those below 2.5 s0. Lenth approximates critical
values with Student's t distribution; here, the probabilities of t = contrast/PSE are estimated from simulated inert
contrasts, as in K. Q. Ye, M. Hamada, "Critical values of the Lenth method for unreplicated factorial designs", J.
Quality Technology 32 (2000) 57-66. All contrasts share one error rate: the largest contrast is compared with the
largest of the same number of inert contrasts, and is omitted in the next step: K. Q. Ye, M. Hamada, C. F. J. Wu, "A
step-down Lenth method", J. Quality Technology 33 (2001) 140-152.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from cbench.screen.stats.block_tests import Effect
from cbench.screen.stats.effects import Levels, Values

LENTH = "Lenth's pseudo standard error"
FEWEST = 3
"""The fewest contrasts for the method."""
DRAWN = 2_000_000
"""The number of simulated contrasts, unless this is fewer than 1,000 sets or more than MOST_SETS."""
MOST_SETS = 20_000
LARGEST_ORDER = 4
"""With more than 10 factors, the maximum number of factors in an interaction that is named."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A sum of effects that the design cannot separate: `effects`, of the smallest order first, each with its sign,
    and `signs` of the treatments, shape (treatments,).
    """

    effects: tuple[tuple[Effect, int], ...]
    signs: Values


@dataclass(frozen=True, slots=True)
class LenthTest:
    """The result of lenth(). `pse`: pseudo standard error in the values' unit; `margin`: margin of error of one
    contrast at the requested level. Per contrast: `estimates`; `p`, its individual p-value; and `p_family`, the
    step-down p-value of a contrast this large anywhere in the design, which is at least `p`.
    """

    pse: float
    margin: float
    estimates: tuple[float, ...]
    p: tuple[float, ...]
    p_family: tuple[float, ...]


def contrasts(levels: Levels, highest: int | None = None) -> tuple[Contrast, ...]:
    """The contrasts of a two-level design: orthogonal columns, from main effects to higher orders, each with all
    effects that have the same column up to its sign. () if a factor has more than two levels, or if a main effect is
    unbalanced or not orthogonal to the others. `highest`: the highest order, None for all orders or, with more than 10
    factors, LARGEST_ORDER.
    """
    treatments, factors = levels.shape
    coded = np.empty((treatments, factors))
    for factor in range(factors):
        present = np.unique(levels[:, factor])
        if present.size > 2:
            return ()
        coded[:, factor] = np.where(levels[:, factor] == present[-1], 1.0, -1.0) if present.size == 2 else 0.0
    varied = [each for each in range(factors) if coded[:, each].any()]
    order = highest or (len(varied) if 2 ** len(varied) <= 1024 else LARGEST_ORDER)
    kept: list[tuple[Values, list[tuple[Effect, int]]]] = []
    most = sum(comb(len(varied), size) for size in range(1, order + 1))
    matrix = np.empty((min(most, treatments), treatments))
    for effect in (each for size in range(1, order + 1) for each in combinations(varied, size)):
        signs = np.prod(coded[:, list(effect)], axis=1)
        shared = np.rint(matrix[: len(kept)] @ signs).astype(int)
        same = np.flatnonzero(np.abs(shared) == treatments)
        if same.size:
            kept[int(same[0])][1].append((effect, 1 if shared[same[0]] > 0 else -1))
        elif abs(float(signs.sum())) > 0.5 or shared.any():
            if len(effect) == 1:
                return ()
        elif len(kept) < treatments - 1:
            matrix[len(kept)] = signs
            kept.append((signs, [(effect, 1)]))
    return tuple(Contrast(tuple(effects), signs) for signs, effects in kept)


def lenth(values: Sequence[Contrast], means: Values, confidence: float = 0.95) -> LenthTest | None:
    """Lenth's test of contrasts; None if there are fewer than FEWEST, or if the pseudo standard error is 0. `means`:
    one value of each treatment; `confidence`: the level of the margin of error.
    """
    m = len(values)
    if m < FEWEST:
        return None
    estimates = np.array([float(each.signs @ means) for each in values]) * (2 / means.size)
    sizes = np.abs(estimates)
    sizes[sizes < 1e-13 * float(np.abs(means).max())] = 0.0
    pse = float(pseudo_error(sizes[np.newaxis])[0])
    if not pse > 0:
        return None
    singles, _ = _null(m)
    t = sizes / pse
    p = (np.searchsorted(-singles, -t * (1 - 1e-12), side="right") + 1) / (singles.size + 1)
    margin = pse * float(np.quantile(singles, confidence))
    family = np.empty(m)
    largest = 0.0
    descending = np.argsort(-sizes, kind="stable")
    for place, at in enumerate(descending.tolist()):
        rest = sizes[descending[place:]]
        error = float(pseudo_error(rest[np.newaxis])[0]) if rest.size >= FEWEST else 0.0
        if largest < 1 and error > 0:
            _, most = _null(rest.size)
            tail = int(np.count_nonzero(most >= sizes[at] / error * (1 - 1e-12)))
            largest = max(largest, (tail + 1) / (most.size + 1))
        else:
            largest = 1.0
        family[at] = max(largest, p[at])
    return LenthTest(pse, margin, tuple(estimates.tolist()), tuple(p.tolist()), tuple(family.tolist()))


def pseudo_error(sizes: Values) -> Values:
    """The pseudo standard error of each set of magnitudes, which have the shape (sets, contrasts)."""
    first = 1.5 * np.median(sizes, axis=1, keepdims=True)
    near = np.where((sizes < 2.5 * first) | (first == 0), sizes, np.nan)
    return np.asarray(1.5 * np.nanmedian(near, axis=1))


@lru_cache(maxsize=64)
def _null(m: int) -> tuple[Values, Values]:
    """The null distribution for `m` inert contrasts: |t| of single contrasts in descending order, and the largest |t|
    of each set.
    """
    draw = np.random.default_rng([1989, m])
    sizes = np.abs(draw.standard_normal((min(MOST_SETS, max(1000, DRAWN // m)), m)))
    t = sizes / pseudo_error(sizes)[:, np.newaxis]
    return -np.sort(-t, axis=None), t.max(axis=1)
