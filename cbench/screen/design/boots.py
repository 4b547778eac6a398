"""The order of boots of the boot-dependency experiment: balanced, neither alternating nor blocked.

D. Flater, NIST Technical Note 1855 (2014), section 4.5.1: 20 boots, 10 of each level, 11 changes of level. In an
alternating sequence whatever else happens at every second boot looks like the level, in one of blocks whatever drifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from cbench.stats.random_draws import Stream


def boot_sequence(levels: int, per_level: int, seed: int) -> tuple[int, ...]:
    """The level of each boot: `per_level` times each, all such sequences with changes within `bounds` equally likely.

    ValueError for fewer than one level or boot.
    """
    if levels < 1 or per_level < 1:
        raise ValueError("at least one level and one boot of each are needed")
    boots = [level for level in range(levels) for _ in range(per_level)]
    low, high = bounds(boots)
    stream = Stream(seed, "boots")
    while True:
        drawn = stream.shuffled(boots)
        if low <= transitions(drawn) <= high:
            return drawn


def transitions(sequence: Sequence[int]) -> int:
    """How often the level differs from that of the boot before."""
    return sum(one != two for one, two in pairwise(sequence))


def bounds(sequence: Sequence[int]) -> tuple[int, int]:
    """The fewest and most changes that boots with these levels may have, in whatever order they are.

    At most half-way from what chance gives (N - sum n_i^2/N on average) to a sequence in blocks, and to one whose level
    changes with every boot.
    """
    sizes = Counter(sequence).values()
    n = len(sequence)
    # Twice N times the sums, for whole numbers: 20 boots of two levels have 10 on average, 6 to 14 are allowed.
    expected = n * n - sum(size * size for size in sizes)
    low = -(-(expected + n * (len(sizes) - 1)) // (2 * n))
    return low, max(low, (expected + n * (n - 1)) // (2 * n))


def words(sequence: Sequence[int], names: Sequence[str], what: str = "boots") -> str:
    """One sentence: boots, of each level (by its name), changes, and what is wrong with it. `what`: what they are."""
    counts = Counter(sequence)
    each = ", ".join(f"{counts[level]} of {name}" for level, name in enumerate(names))
    changes, (low, high) = transitions(sequence), bounds(sequence)
    wrong = ["not balanced"] if len({counts[level] for level in range(len(names))}) > 1 else []
    wrong += ["nearly in blocks"] * (changes < low) + ["nearly alternating"] * (changes > high)
    told = f"{len(sequence)} {what}, {each}; the level changes {changes} times ({low} to {high} are neither alternating"
    return f"{told} nor in blocks){': ' if wrong else ''}{' and '.join(wrong)}"
