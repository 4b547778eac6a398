"""Three kernels as in the OrderSage paper's section 7.2: kernels.py softmax|spmv|sort, or check. Prints seconds.

softmax and spmv are NPBench's formulas (github.com/spcl/npbench) with smaller data; sort is the ranking of NPB's IS:
keys that are averages of four random numbers are counted in buckets (np.bincount) and summed. The data are generated
from a fixed seed before the clock starts; each kernel runs once, without warm-up, as an order study requires.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np


def softmax() -> Callable[[], object]:
    x = np.random.default_rng(1).random((16, 16, 128, 256), dtype=np.float32)  # 32 MiB

    def run() -> object:
        shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return shifted / np.sum(shifted, axis=-1, keepdims=True)

    return run


def spmv() -> Callable[[], object]:
    """y = A x, with A in compressed sparse rows: 200,000 rows of 20 numbers each."""
    draw, rows, each = np.random.default_rng(2), 200_000, 20
    columns = draw.integers(0, rows, rows * each, dtype=np.int32)
    values, x = draw.random(rows * each), draw.random(rows)
    starts = np.arange(0, rows * each, each)
    return lambda: np.add.reduceat(values * x[columns], starts)


def sort() -> Callable[[], object]:
    """The ranks of 2^22 keys below 2^19; class W of IS has 2^20 keys below 2^16."""
    draw, count, most = np.random.default_rng(3), 1 << 22, 1 << 19
    keys = (draw.random((4, count), dtype=np.float32).sum(axis=0) * (most / 4)).astype(np.int32)

    def run() -> object:
        before = np.cumsum(np.bincount(keys, minlength=most))
        return before[keys]

    return run


KERNELS = {"softmax": softmax, "spmv": spmv, "sort": sort}


def main(what: str) -> int:
    if what == "check":  # the import above is the check
        return 0
    if what not in KERNELS:
        sys.exit(f"kernels.py: {what!r}: one of {', '.join(KERNELS)}, check")
    run = KERNELS[what]()
    begun = time.perf_counter()
    run()
    sys.stdout.write(f"{time.perf_counter() - begun:.9f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
