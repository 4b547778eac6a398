"""Compare neighboring runs of both orders as pairs, so that drift over the study cancels.

F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945) 80-83: the signed ranks of paired
differences. If the order changes nothing, each difference is as likely as its opposite, whatever the distribution of
the values. So p is computed over all assignments of signs: by counting or, as in permutation.py, with a beta
distribution that has the exact variance and kurtosis. J. W. Pratt, J. Amer. Statist. Assoc. 54 (1959) 655-667: pairs
with a difference of 0 have a rank but no sign. J. L. Hodges, E. L. Lehmann, Ann. Math. Statist. 34 (1963) 598-611: the
estimate and interval of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cbench.order.stats.permutation import WORK
from cbench.stats.distributions import beta_sf, chi2_sf
from cbench.stats.kruskal import tied
from cbench.stats.stratified import sign_distribution
from cbench.stats.trials import Codes, Flags, Values

FEWEST_PAIRS = 6
"""With fewer pairs, no p-value is below 1/16, so the orders are compared without pairs."""


LOST = 0.1
"""The maximum share of the runs of the rarer order that may lack a partner."""


@dataclass(frozen=True, slots=True)
class SignedRanks:
    """A signed-rank test: the number of pairs, twice the sum of the signed ranks, and the two-sided p-value."""

    pairs: int
    sum: float
    p: float


def pairs_of_runs(random: Flags) -> Codes | None:
    """The pair number of each run, in chronological order, -1 for a run without a partner; None if the design has no
    pairs. Neighbors of different order form a pair. A missing run leaves its partner unpaired; if more runs are
    unpaired than LOST allows, the design has no pairs.
    """
    kinds = random.tolist()
    found = np.full(random.size, -1, dtype=np.int32)
    at = number = 0
    while at + 1 < len(kinds):
        if kinds[at] == kinds[at + 1]:
            at += 1
            continue
        found[at : at + 2] = number
        at, number = at + 2, number + 1
    fewer = min(int(random.sum()), int((~random).sum()))
    return found if number and number >= (1 - LOST) * fewer else None


def smallest_p(pair: Codes) -> float:
    """The smallest p-value of signed ranks that this number of pairs can have."""
    return float(2.0 ** -int(pair.max()))


def complete(random: Flags, pair: Codes) -> Flags:
    """For each value, whether its pair has a value in both orders. `pair`: the pair number of each value's run."""
    inside = pair >= 0
    seen = np.zeros((int(pair.max(initial=-1)) + 2, 2), dtype=bool)  # the last row: values without a pair
    seen[pair, random.astype(np.intp)] = True
    return np.asarray(inside & seen[pair].all(axis=1))


def matched(value: Values, random: Flags, pair: Codes) -> tuple[Values, Values]:
    """The values in fixed and in random order of the pairs that have both. If a run has several values, their mean is
    used.
    """
    inside = pair >= 0
    if not inside.all():
        value, random, pair = value[inside], random[inside], pair[inside]
    side = 2 * pair + random
    size = 2 * (int(pair.max()) + 1) if pair.size else 0
    count = np.bincount(side, minlength=size)
    with np.errstate(invalid="ignore"):
        means = np.bincount(side, value, minlength=size) / count
    ends = means[::2], means[1::2]
    both = ~(np.isnan(ends[0]) | np.isnan(ends[1]))
    return ends[0][both], ends[1][both]


def signed_ranks(away: Values) -> SignedRanks | None:
    """The signed-rank test of sorted paired differences; None for fewer than FEWEST_PAIRS."""
    if away.size < FEWEST_PAIRS:
        return None
    below = int(away.searchsorted(0.0))
    away = np.concatenate([away[:below][::-1], away[below:]])
    size = np.abs(away)
    order = size.argsort(kind="stable")  # fast: it merges two sorted halves
    lengths = tied(size[order])
    ends = np.arange(1, away.size + 1) if lengths is None else np.cumsum(lengths)
    doubled = 2 * ends - (0 if lengths is None else lengths - 1)
    ranks = doubled if lengths is None else np.repeat(doubled, lengths.astype(np.intp))
    signs = np.sign(away[order])
    total, ranks = float((signs * ranks).sum()), ranks[signs != 0]
    if not ranks.size:
        return SignedRanks(away.size, 0.0, 1.0)
    whole = ranks.astype(np.int64)
    step = int(np.gcd.reduce(whole))  # possible signed sums are 2 steps apart
    if whole.size * int(whole.sum()) // step <= WORK:
        p = _counted(tuple((whole // step).tolist()), round(abs(total)) // step)
    else:
        square, fourth = float((ranks**2).sum()), float((ranks**4).sum())
        freedom = 3 * square * square / fourth - 3  # kurtosis 3 - 2 fourth/square^2
        h = total * total / square
        p = beta_sf(h / (freedom + 1), 0.5, freedom / 2) if freedom > 0 else chi2_sf(h, 1)
    return SignedRanks(away.size, total, p)


_chances = lru_cache(maxsize=256)(sign_distribution)


def _counted(ranks: tuple[int, ...], total: int) -> float:
    """The share of sign combinations whose signed sum is at least as far from 0 as `total`."""
    plus = (total + sum(ranks)) // 2
    return min(1.0, 2 * float(_chances(tuple(sorted(ranks)))[plus:].sum())) if total else 1.0
