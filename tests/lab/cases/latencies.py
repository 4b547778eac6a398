"""Latencies of wake-ups as `quiet noise --wake` and other programs report them, brought to one form: no tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

Bins = list[tuple[int, int]]
"""(microseconds, wake-ups), in order."""

QUANTILES = {0.25: 1.5, 0.5: 1.5, 0.75: 2.0, 0.99: 4.0}
"""The factor by which two programs may differ at each: an emulator that shares its CPU has its own tails."""


def of_quiet(text: str, cpu: int) -> Bins:
    found: Any = json.loads(text)["cpus"][str(cpu)]["histogram_us"]
    return sorted((int(us), int(count)) for us, count in found)


def of_cyclictest(text: str) -> Bins:
    found: Any = json.loads(text)["thread"]["0"]["histogram"]
    return sorted((int(us), int(count)) for us, count in found.items())


def of_timerlat(text: str) -> Bins:
    """Of `rtla timerlat hist --no-irq` for one CPU: a line for each bin that is not empty."""
    return [(int(us), int(count)) for us, count in re.findall(r"^ *(\d+) +(\d+) *$", text, re.MULTILINE)]


def quantile(bins: Bins, q: float) -> int:
    wanted, seen = q * sum(count for _, count in bins), 0
    for us, count in bins:
        seen += count
        if seen >= wanted:
            return us
    raise AssertionError(bins)


def typical(turns: Iterable[Bins]) -> dict[float, int]:
    """The median over the turns for each quantile."""
    every = list(turns)
    return {q: sorted(quantile(bins, q) for bins in every)[len(every) // 2] for q in QUANTILES}


def agree(one: dict[float, int], other: dict[float, int]) -> bool:
    return all(1 / factor <= one[q] / other[q] <= factor for q, factor in QUANTILES.items())
