"""Compute signed ranks, and the probability of their sum if each block's sign is random.

F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945) 80-83; J. W. Pratt, "Remarks on
zeros and ties in the Wilcoxon signed rank procedures", J. Amer. Statist. Assoc. 54 (1959) 655-667: zeros are ranked but
do not contribute. A block of zeros is the same with either sign and does not count as a block. With few blocks, all
signs are enumerated. With more blocks, the distribution is enumerated if single scores are multiples of one step, as in
Wilcoxon's own tables; ranks are such multiples, and so are differences read from a coarse clock. Their sums have few
possible values, whose probabilities no smooth curve matches. Otherwise the tail of the sum of single scores comes from
the saddlepoint approximation: J. Robinson, "Saddlepoint approximations for permutation tests and confidence intervals",
J. R. Statist. Soc. B 44 (1982) 91-101. For vectors of scores, the beta distribution with the mean and the variance of
the statistic over all signs is used: G. E. P. Box, S. L. Andersen, "Permutation theory in the derivation of robust
criteria", J. R. Statist. Soc. B 17 (1955) 1-26; with normal scores, this is H. Hotelling's T^2 (Ann. Math. Statist. 2
(1931) 360-378).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import erfc, exp, pi, sqrt

import numpy as np

from cbench.screen.stats.effects import Values
from cbench.stats.distributions import beta_sf
from cbench.stats.interval import exponent
from cbench.stats.stratified import sign_distribution

COUNTED = 12
"""With at most this many blocks, all sign combinations are enumerated."""
ROUNDING = 1e-12
"""Scores up to this share of the largest score count as 0."""


@dataclass(frozen=True, slots=True)
class Flipped:
    """The result of flip_test(). `statistic`: S' (sum of s s')^-1 S for the sum S of the blocks' scores s, from 0 to
    the number of blocks; `df`: the dimension of the space that the scores span; `p`: the probability of a statistic at
    least this large, never below 2^(1 - n) for n blocks with scores that are not all 0.
    """

    statistic: float
    df: int
    p: float


def signed_ranks(differences: Values, least: float | Values) -> Values:
    """The rank of each magnitude with the difference's sign, in the shape of `differences`. NaN (missing) and
    magnitudes below `least` (a number, or one per difference) become 0.
    """
    size = np.where(np.abs(differences) < least, 0.0, np.abs(differences))
    there = ~np.isnan(size)
    _, at, counts = np.unique(size[there], return_inverse=True, return_counts=True)
    ranks = np.zeros(differences.shape)
    ranks[there] = (np.cumsum(counts) - (counts - 1) / 2)[at]
    return np.where(there & (size > 0), ranks * np.sign(differences), 0.0)


def flip_test(scores: Values) -> Flipped | None:
    """Test whether the scores are centered at 0, by flipping the blocks' signs. `scores`: shape (blocks, df). Returns
    None if there are fewer than two blocks or, with more than COUNTED blocks, fewer than df + 2. A block whose scores
    are all 0 carries no information: its sign changes no sum.
    """
    if scores.shape[0] < 2:
        return None
    size = np.abs(scores).max(axis=1)
    scores = scores[size > ROUNDING * max(float(size.max()), np.finfo(float).tiny)]
    n = scores.shape[0]
    if not n:
        return Flipped(0.0, 0, 1.0)
    scores = np.ldexp(scores, -exponent(scores))
    sizes, axes = np.linalg.eigh(scores.T @ scores)
    keep = sizes > 1e-12 * max(float(sizes.max()), np.finfo(float).tiny)
    df = int(np.count_nonzero(keep))
    if not df or not float(sizes.max()) > 0:
        return Flipped(0.0, 0, 1.0)
    white = scores @ (axes[:, keep] / np.sqrt(sizes[keep]))
    statistic = float((white.sum(axis=0) ** 2).sum())
    least = 2.0 ** (1 - n)
    if n <= COUNTED:
        every = ((_all_signs(n) @ white) ** 2).sum(axis=1)
        return Flipped(statistic, df, float(np.count_nonzero(every >= statistic * (1 - 1e-9))) * least)
    if n < df + 2:
        return None
    if df == 1:
        return Flipped(statistic, df, max(least, _chance(white.ravel())))
    fourth = float(((white**2).sum(axis=1) ** 2).sum())
    freedom = (df * (n - df) / (df - fourth) - 2) / n if fourth < df else 0.0
    p = beta_sf(min(statistic / n, 1.0), freedom * df / 2, freedom * (n - df) / 2) if freedom > 0 else 1.0
    return Flipped(statistic, df, max(p, least))


@lru_cache(maxsize=COUNTED)
def _all_signs(n: int) -> Values:
    """All combinations of signs of n blocks, in which the first block's sign is always plus. Shape (2^(n - 1), n)."""
    return np.array([(1, *each) for each in product((1, -1), repeat=n - 1)], dtype=np.float64)


def _chance(scores: Values) -> float:
    """The probability that the scores' sum with random signs is at least as far from 0 as their actual sum."""
    size, total = np.abs(scores), abs(float(scores.sum()))
    step = common_step(size)
    exact = chance_of_sum(size, total, step) if step else None
    # Sums are 2 steps apart: the tail begins halfway between this sum and the next smaller one.
    return _saddlepoint(size, max(total - step, 0.0)) if exact is None else exact


def _saddlepoint(size: Values, total: float) -> float:
    square = float(size @ size)
    if total * total < 1e-4 * square:
        return erfc(total / sqrt(2 * square))
    if total > (1 - 1e-9) * float(size.sum()):  # all signs equal
        return 0.0
    low, high = 0.0, 1.0 / float(size.max())
    while high < 1e6 / float(size.max()) and float(size @ np.tanh(high * size)) < total:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(size @ np.tanh(middle * size)) < total else (low, middle)
    point = (low + high) / 2
    steep = np.exp(-2 * point * size)
    growth = float((point * size + np.log1p(steep) - np.log(2)).sum())  # sum of ln cosh, without overflow
    curve = float((size * size * 4 * steep / (1 + steep) ** 2).sum())
    away = point * total - growth
    if away <= 0 or curve <= 0:  # nearly all signs are equal, beyond floating-point precision
        return 0.0
    w, u = sqrt(2 * away), point * sqrt(curve)
    return min(1.0, erfc(w / sqrt(2)) + 2 * exp(-w * w / 2) / sqrt(2 * pi) * (1 / u - 1 / w))


MOST_WORK = 2**22
"""The maximum number of additions; 60 blocks of 12 treatments without ties take 2 million, which is a few
milliseconds.
"""
CLOSE = 1e-9
"""A remainder below this share of the largest number counts as rounding error."""


def common_step(size: Values) -> float:
    """The largest common divisor of these positive numbers; 0 if it is below a millionth of the largest number."""
    largest = float(size.max())
    step = largest
    while step > 1e-6 * largest:
        left = size % step
        left = np.minimum(left, step - left)
        wrong = left > CLOSE * largest
        if not wrong.any():
            return step
        step = float(left[wrong].min())  # a sum of multiples of the numbers, and so a multiple of their step
    return 0.0


def chance_of_sum(size: Values, total: float, step: float) -> float | None:
    """The probability that the sum of the numbers in `size`, each with a random sign, is at least as far from 0 as
    `total`. `step`: the numbers' common step. None if the computation needs more than MOST_WORK additions.
    """
    parts = np.sort(np.rint(size / step).astype(np.int64))
    whole, wanted = int(parts.sum()), round(total / step)
    if whole * parts.size > MOST_WORK:
        return None
    if not wanted:
        return 1.0
    chances = sign_distribution(parts.tolist())
    return min(1.0, 2 * float(chances[(whole + wanted + 1) // 2 :].sum()))
