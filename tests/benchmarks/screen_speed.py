"""How fast BCa intervals are, against `scipy.stats.bootstrap(method="BCa")` in the same run.

    python tests/benchmarks/screen_speed.py [--study]

The mean of 5,000 long-tailed values, 50,000 replicates. Each interval is made in a process of its own: CPU seconds of
the call alone, without imports, and by how much it raises the process's peak memory. Medians of ROUNDS rounds, in which
all take turns; ratios are medians of the rounds' ratios. scipy is asked as it is called by default and with the batch
that is fastest for it here. --study also times a subsampling study of TN 1855's size: 5,000 values, 15,000 subsamples
and 50,000 replicates per size.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads that wait for each other would be counted as work

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cbench.screen.stats.practical_significance import subsampling
from cbench.stats.bca import bca

VALUES, REPLICATES = 5000, 50_000
ROUNDS = 5
SEED = 1855
SIZES = (5, 10, 20, 40, 80, 160, 320, 640, 1000)
BATCH = 50
"""Of 10, 20, 50, 100, 200, 500, 1,000 the fastest here."""


def population() -> np.ndarray:
    return np.random.default_rng(SEED).lognormal(size=VALUES)


def ours(values: np.ndarray) -> tuple[float, float]:
    found = bca(values, replicates=REPLICATES, seed=SEED)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def scipys(batch: int | None) -> Callable[[np.ndarray], tuple[float, float]]:
    import scipy.stats

    def made(values: np.ndarray) -> tuple[float, float]:
        rng = np.random.default_rng(SEED)
        found = scipy.stats.bootstrap(
            (values,), np.mean, n_resamples=REPLICATES, method="BCa", batch=batch, random_state=rng
        ).confidence_interval
        return float(found.low), float(found.high)

    return made


WAYS = {"cbench": None, "scipy as called by default": None, f"scipy with batch={BATCH}": BATCH}


def one(name: str) -> None:
    """In a process of its own: CPU seconds, MB, ends."""
    way = ours if name == "cbench" else scipys(WAYS[name])
    values = population()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    low, high = way(values)
    used = time.process_time() - start
    print(used, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, low, high)


def study() -> None:
    values = population()
    total = time.process_time()
    for n in SIZES:
        clock, start = time.perf_counter(), time.process_time()
        t, bca_entry = subsampling(values, [n], seed=SEED)
        used = time.process_time() - start
        print(
            f"n = {n}: {time.perf_counter() - clock:.0f} s ({used:.0f} s of CPUs); coverage t {t.coverage:.3f}, "
            f"BCa {bca_entry.coverage:.3f}; median width t {t.width_quartiles[1]:.3f}, "
            f"BCa {bca_entry.width_quartiles[1]:.3f}",
            flush=True,
        )
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"all sizes: {time.process_time() - total:.0f} s of CPUs, at most {most:.0f} MB in the process")


def main() -> None:
    if len(sys.argv) > 2:
        one(sys.argv[2])
        return
    rounds = []
    for _ in range(ROUNDS):
        numbers = {}
        for name in WAYS:
            done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
            numbers[name] = [float(each) for each in done.stdout.split()]
        rounds.append(numbers)
    for name in WAYS:
        used, memory = (statistics.median(each[name][at] for each in rounds) for at in (0, 1))
        low, high = rounds[0][name][2:]
        ratio = statistics.median(each[name][0] / each["cbench"][0] for each in rounds)
        print(f"{name}: {used:.2f} s of CPUs, {memory:.0f} MB, [{low:.4f}, {high:.4f}]: {ratio:.1f} times ours")
    if "--study" in sys.argv:
        study()


if __name__ == "__main__":
    main()
