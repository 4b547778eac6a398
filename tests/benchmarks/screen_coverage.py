"""How often intervals of the mean hold it: Student's t and BCa, of samples of known distributions.

    python tests/benchmarks/screen_coverage.py [REPETITIONS]

REPETITIONS (5,000) samples of each distribution and size; BCa with 50,000 replicates, mid convention. Printed are
the shares in % of intervals that hold the distribution's mean, each with the standard error that it has from the number
of repetitions, and how wide the median BCa interval is, in median t intervals. All seeds are fixed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from math import exp, sqrt
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads that wait for each other would be counted as work

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cbench.stats.batched_intervals import bca_ends, t_ends
from cbench.stats.bca import generator
from cbench.stats.interval import MID

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Values]
LEVEL, REPLICATES = 0.95, 50_000
SIZES = (5, 10, 40, 200)
SEED = 1855

SLOW, STEP, NOISE = 0.2, 0.1, 0.01


def two_modes(rng: np.random.Generator, shape: tuple[int, int]) -> Values:
    """One in five runs is slower by ten standard deviations of the noise."""
    return 1 + STEP * (rng.random(shape) < SLOW) + NOISE * rng.standard_normal(shape)


DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.standard_normal(shape), 0.0),
    "log-normal (sigma 1)": (lambda rng, shape: np.exp(rng.standard_normal(shape)), exp(0.5)),
    "two modes (80 %, 20 %)": (two_modes, 1 + STEP * SLOW),
}


def covered(ends: tuple[Values, Values], mean: float) -> tuple[float, float]:
    """The share in % of intervals that hold the mean, and its standard error; none (NaN) holds nothing."""
    share = float(np.count_nonzero((ends[0] <= mean) & (mean <= ends[1])) / ends[0].size)
    return 100 * share, 100 * sqrt(share * (1 - share) / ends[0].size)


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(f"{repetitions:,} repetitions, {REPLICATES:,} replicates, seed {SEED}; wanted: {100 * LEVEL:g} %\n")
    print("| values | n | t | BCa | median width of BCa, in those of t |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    for number, (name, (draw, mean)) in enumerate(DISTRIBUTIONS.items()):
        for n in SIZES:
            samples = draw(generator(SEED, number, n, 0), (repetitions, n))
            t = t_ends(samples, LEVEL)
            bca = bca_ends(samples, LEVEL, REPLICATES, MID, generator(SEED, number, n, 1))
            cells = [f"{share:.1f} ± {error:.1f}" for share, error in (covered(t, mean), covered(bca, mean))]
            width = np.nanmedian(bca[1] - bca[0]) / np.median(t[1] - t[0])
            print(f"| {name} | {n} | {' | '.join(cells)} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
