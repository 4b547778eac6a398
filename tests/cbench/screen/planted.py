"""A planted experiment: known effects, one interaction, an inert factor, long-tailed noise and drift."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from cbench.screen.stats.block_tests import Blocked, Effect
from cbench.stats.multiple_testing import HOLM, adjusted

Values = NDArray[np.float64]

ALIGN, CACHE, INERT = 0, 1, 2
LEVELS = np.array(list(product(range(2), range(2), range(3))))
"""Two, two and three levels: 12 treatments."""
STRICT = 0.0025
"""With this chance of any false alarm in one experiment it is below 5 % in 20 of them: 1 - 0.9975^20 = 4.9 %."""
FULL = (0.8, 0.6, 0.8)
"""Main effects of the first two factors and their interaction, in standard deviations of the noise."""


def noise(random: np.random.Generator, shape: tuple[int, ...], kind: str = "long-tailed") -> Values:
    """Of standard deviation 1 but for the outliers: lognormal (sigma 0.5), and 2 % of values ten deviations higher."""
    if kind == "normal":
        return random.normal(size=shape)
    if kind == "discrete":
        return np.round(random.exponential(2, shape)) / 2
    if kind == "unequal":  # the first factor's second level is three times as noisy
        return random.lognormal(0, 0.5, shape) * np.where(LEVELS[:, ALIGN], 3.0, 1.0)
    scale = np.sqrt((np.exp(0.25) - 1) * np.exp(0.25))
    return random.lognormal(0, 0.5, shape) / scale + 10 * (random.random(shape) < 0.02)


def experiment(seed: int, blocks: int, sizes: tuple[float, float, float] = FULL, kind: str = "long-tailed") -> Values:
    """Shape (blocks, treatments): values by treatment, each block in a random order of time.

    The host drifts by five standard deviations over the whole experiment, and wanders by 0.3 from block to block.
    """
    random = np.random.default_rng(seed)
    signs = 2 * LEVELS[:, :2] - 1
    align, cache, both = sizes
    effects = (align * signs[:, 0] + cache * signs[:, 1] + both * signs[:, 0] * signs[:, 1]) / 2
    places = random.permuted(np.tile(np.arange(LEVELS.shape[0]), (blocks, 1)), axis=1)
    time = (np.arange(blocks)[:, np.newaxis] + places / LEVELS.shape[0]) / blocks
    wander = np.cumsum(random.normal(scale=0.3, size=(blocks, 1)), axis=0)
    return np.asarray(100 + effects + 5 * time + wander + noise(random, places.shape, kind))


def significant(tested: Blocked, alpha: float = 0.05) -> set[Effect]:
    """Effects whose p, corrected by Holm, is below alpha."""
    holm = adjusted([each.p for each in tested.effects.values()], HOLM)
    return {effect for effect, p in zip(tested.effects, holm.tolist(), strict=True) if p < alpha}
