"""Four benchmarks of pytest-benchmark. One of them changes the cache."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prices import price, remember


def _run(benchmark: Any, function: Any, *values: Any) -> None:
    benchmark.pedantic(function, args=values, rounds=7, iterations=20, warmup_rounds=1)


def test_find(benchmark: Any) -> None:
    _run(benchmark, price, "milk")


def test_remember(benchmark: Any) -> None:
    for number in range(300):
        remember(f"article {number}", number)
    _run(benchmark, remember, "article 299", 299)


@pytest.mark.parametrize("size", [200, 400], ids=["few: [200]", "more: [400]"])
def test_sum(benchmark: Any, size: int) -> None:
    _run(benchmark, math.fsum, [1.0] * size)
