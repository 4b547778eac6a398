"""Evaluate chains of additions (c/chain.h): the number of ticks per core cycle, and whether the core is shared.

A narrow chain takes one core cycle per addition, so ticks / cycles = (chain's ticks) / length, at that moment. A wide
chain uses all the additions that the core can execute in a cycle, so it takes longer when another thread runs on the
same core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import fmean, median

AGREE = 0.003
"""Two narrow chains agree if they differ by at most this share or STEPS steps of the clock, whichever is more."""
STEPS = 2
NARROWER = 0.02
"""A core counts as unshared if its ratio of wide to narrow is at most this share above the lowest cluster."""
PLAUSIBLE = 2.2
"""The largest multiple of the unshared ratio that another thread on the core can cause, because the two threads share
the units of the core equally. A longer wide chain was interrupted.
"""
CLUSTER, CLUSTER_SHARE, CLUSTER_LEAST = 0.02, 0.03, 3
"""The lowest cluster: its width as a share, its minimum share of the values, and its minimum number of values."""
ALONE = {"x86_64": 0.3}
"""The largest wide-to-narrow ratio that counts as unshared. On x86, an unshared core has 0.27 with 4 ALUs (0.5 shared)
and 0.289 with the 5 of Golden Cove (0.36 shared), whose ports conflict. Cores with 3 ALUs (0.34, before 2013) and with
2 ALUs always count as shared. On other architectures, cores with 2 ALUs (0.53) are common, and cores with several
threads are rare."""
EMULATOR = "parallel additions, or additions with carry, take longer than on any processor: the CPU is emulated"
ALWAYS = "the core is shared all the time"
SCALAR = 0.85
"""With a wide-to-narrow ratio of this or more, parallel additions take about as long as sequential ones: an emulator.
"""
TRANSLATED = {"x86_64": 2.5, "aarch64": 1.5}
"""Only an emulator takes this many times as long for an addition with carry as for one without. The ratio is 1 on
processors (2 on Intel processors before 2014), and in QEMU 3 (arm64) and 12 (x86-64)."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The durations of a narrow chain and the wide chain right after it, in ticks."""

    narrow: int
    wide: int


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """The results of the chains on a core.

    `rates`: the ticks per cycle, sorted, of narrow chains that agree with the next chain; `why`: the reason if there
    are none, or if they are imprecise. `shared`: the share of chains during which another thread used the core; None if
    the chains cannot show it.
    """

    rates: tuple[float, ...]
    shared: float | None
    why: str = ""


def chains_agree(one: int, other: int, step: int) -> bool:
    """Whether two narrow chains show the same frequency; `step`: step of the clock, in ticks."""
    return abs(one - other) <= max(AGREE * min(one, other), STEPS * step)


def lowest_cluster(values: Sequence[float], width: float = CLUSTER, share: float = CLUSTER_SHARE) -> float | None:
    """The middle of the lowest cluster of values; None if there is no such cluster."""
    ordered = sorted(values)
    least = max(min(CLUSTER_LEAST, len(ordered)), round(share * len(ordered)), 1)
    for at in range(len(ordered) - least + 1):
        last = at + least - 1
        if ordered[last] <= ordered[at] * (1 + width):
            while last + 1 < len(ordered) and ordered[last + 1] <= ordered[at] * (1 + width):
                last += 1
            return median(ordered[at : last + 1])
    return None


def unshared_ratio(ratios: Sequence[float], machine: str) -> tuple[float | None, str]:
    """The ratio of wide to narrow chain times on a core with one active thread; None and the reason if it is unknown.

    `machine`: the value of platform.machine().
    """
    lowest = lowest_cluster(ratios)
    if lowest is None:
        return None, "no chains agree: the CPU is interrupted all the time, or its frequency keeps changing"
    if lowest >= SCALAR:
        return None, EMULATOR
    if lowest > ALONE.get(machine, SCALAR):
        return None, f"{ALWAYS}: parallel additions take {lowest / 0.27:.1f} times as long as on an unshared core"
    return lowest, ""


def speed(timed: Sequence[Chain], length: int, step: int, edge: float, machine: str) -> CoreSpeed:
    """Compute the speed of a core from the durations of successive chains of `length` additions.

    `step`: the step of the clock, and `edge`: the cost of timing a chain, both in ticks; `machine`: the value of
    platform.machine().
    """
    pairs = [(one, other) for one, other in pairwise(timed) if chains_agree(one.narrow, other.narrow, step)]
    alone, why = unshared_ratio([one.wide / one.narrow for one, _ in pairs], machine)
    if alone is None and not why.startswith(ALWAYS):
        return CoreSpeed((), None, why)
    limit = (alone or 0.0) * (1 + NARROWER)
    most = alone * PLAUSIBLE if alone else inf
    pairs = [pair for pair in pairs if pair[0].wide <= most * pair[0].narrow + STEPS * step]
    quiet = [pair for pair in pairs if pair[0].wide <= limit * pair[0].narrow + STEPS * step]
    rates = sorted((one.narrow + other.narrow - 2 * edge) / (2 * length) for one, other in quiet or pairs)
    return CoreSpeed(tuple(rates), 1 - len(quiet) / len(pairs), why)


def chain_edge(short: Sequence[int], double: Sequence[int]) -> float:
    """The cost of timing a chain, in ticks, from short chains and from chains of twice their length."""
    return max(2 * _undisturbed_mean(short) - _undisturbed_mean(double), 0.0)


def _undisturbed_mean(values: Sequence[int]) -> float:
    """The mean of the values without interrupted ones, which are much longer than a short chain."""
    most = 1.5 * median(values)
    return fmean(value for value in values if value <= most)
