"""How often the tests of a screen's effects find one where none is, and where one is, in simulated experiments.

    python tests/benchmarks/screen_effects_simulations.py [EXPERIMENTS]

2 x 2 x 3 treatments, six effects, Holm over them; noise, drift and outliers as in tests/cbench/screen/planted.py. The
test is the one that the design chooses: the analysis of variance for few iterations, then signed ranks. The first
table: the chance in % that any of the effects without an effect is called significant. The second: the chance in %
that an effect of so many standard deviations of the noise is, and in parentheses by the other of the two tests. The
third: the planted experiment. The last: aligned ranks, which were not taken. EXPERIMENTS (2,000) of each kind; all
seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cbench.screen.design.detectable import ranks_decide
from cbench.screen.stats.anova import anova
from cbench.screen.stats.block_tests import Effect, EffectTest, blocked
from cbench.stats.distributions import f_sf
from cbench.stats.multiple_testing import HOLM, adjusted
from tests.cbench.screen.planted import ALIGN, CACHE, FULL, INERT, LEVELS, STRICT, Values, experiment

KINDS = ("normal", "long-tailed", "discrete", "unequal")
BLOCKS = (8, 15, 30, 60)
SIZES = (0.2, 0.4, 0.6, 0.8)
REAL = {(ALIGN,), (CACHE,), (ALIGN, CACHE)}
TESTS = 6


def by_ranks(values: Values) -> dict[Effect, float]:
    return holm(blocked(LEVELS, values).effects)


def by_anova(values: Values) -> dict[Effect, float]:
    blocks, treatments = values.shape
    levels = np.tile(LEVELS, (blocks, 1))
    return holm(anova("abc", levels, values.ravel(), np.repeat(np.arange(blocks), treatments)).effects)


def decided(values: Values, alpha: float) -> dict[Effect, float]:
    ranks = ranks_decide(LEVELS.shape[0], values.shape[0], TESTS, alpha)
    return by_ranks(values) if ranks else by_anova(values)


def each(count: int, blocks: int, sizes: tuple[float, float, float], kind: str) -> Iterator[Values]:
    for seed in range(count):
        yield experiment(seed, blocks, sizes, kind)


def holm(found: Mapping[Effect, EffectTest]) -> dict[Effect, float]:
    """The p-values, corrected by Holm."""
    p = adjusted([test.p for test in found.values()], HOLM)
    return dict(zip(found, p.tolist(), strict=True))


def false_alarms(count: int) -> None:
    print("| noise | other effects | alpha in % | " + " | ".join(f"{blocks} blocks" for blocks in BLOCKS) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(BLOCKS))
    for kind in KINDS:
        for sizes, label in (((0.0, 0.0, 0.0), "none"), ((2.0, 1.0, 1.0), "three")):
            # Twice the noise at a level of the first factor is an effect of that factor.
            real = REAL if any(sizes) else {(ALIGN,)} if kind == "unequal" else set()
            for alpha in (0.05, STRICT):
                cells = []
                for blocks in BLOCKS:
                    lowest = [
                        min(p for effect, p in decided(values, alpha).items() if effect not in real)
                        for values in each(count, blocks, sizes, kind)
                    ]
                    cells.append(f"{100 * np.mean(np.array(lowest) < alpha):.2f}")
                print(f"| {kind} | {label} | {100 * alpha:g} | {' | '.join(cells)} |", flush=True)


def power(count: int) -> None:
    print("| noise | size | " + " | ".join(f"{blocks} blocks" for blocks in BLOCKS) + " |")
    print("| --- | ---: |" + " ---: |" * len(BLOCKS))
    for kind in ("normal", "long-tailed"):
        for size in SIZES:
            cells = []
            for blocks in BLOCKS:
                ranks, means = 0, 0
                for values in each(count, blocks, (size, 0.0, 0.0), kind):
                    ranks += by_ranks(values)[ALIGN,] < 0.05
                    means += by_anova(values)[ALIGN,] < 0.05
                by = (ranks, means) if ranks_decide(LEVELS.shape[0], blocks, TESTS, 0.05) else (means, ranks)
                cells.append(f"{100 * by[0] / count:.0f} ({100 * by[1] / count:.0f})")
            print(f"| {kind} | {size} | {' | '.join(cells)} |", flush=True)


def planted(count: int) -> None:
    for blocks in (40, 60):
        everything, wrong = 0, 0
        for values in each(count, blocks, FULL, "long-tailed"):
            seen = {effect for effect, p in decided(values, STRICT).items() if p < STRICT}
            everything += seen >= REAL
            wrong += any(INERT in factors for factors in seen)
        print(f"{blocks} blocks: all three found in {everything} of {count}, anything else in {wrong}")


def aligned(values: Values, factor: int) -> float:
    """p of a main effect by the analysis of variance of aligned ranks: the rejected alternative, for comparison."""
    blocks, treatments = values.shape
    centred = values - np.median(values, axis=1, keepdims=True)
    columns = (LEVELS[:, factor, np.newaxis] == np.unique(LEVELS[:, factor])).astype(float)
    columns -= columns.mean(axis=0)
    onto = columns @ np.linalg.pinv(columns)
    means = centred.mean(axis=0)
    left = centred - (means - onto @ means)
    left -= np.median(left, axis=1, keepdims=True)
    _, at, counts = np.unique(np.round(left, 9), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[at].reshape(values.shape)
    ranks -= ranks.mean(axis=1, keepdims=True)
    effect = onto @ ranks.mean(axis=0)
    df, df_error = columns.shape[1] - 1, (blocks - 1) * (treatments - 1)
    error = ((ranks - ranks.mean(axis=0)) ** 2).sum() / df_error
    return f_sf(float(blocks * (effect**2).sum() / df / error), df, df_error)


def not_taken(count: int) -> None:
    for kind in KINDS:
        alarms = np.mean([aligned(experiment(seed, 60, (2.0, 1.0, 1.0), kind), INERT) < 0.05 for seed in range(count)])
        print(f"aligned ranks, {kind}: the inert factor at 5 % in {100 * alarms:.1f} % of {count}")


if __name__ == "__main__":
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    false_alarms(experiments)
    print()
    power(experiments)
    print()
    planted(experiments)
    print()
    not_taken(min(experiments, 400))
