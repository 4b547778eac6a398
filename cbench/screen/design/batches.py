"""Plan randomized complete blocks, in batches if a factor is hard to change.

An iteration (block) runs every treatment of its batch once, in a separately drawn order: D. Flater, NIST Technical Note
1855 (2014), section 4.5. A batch (whole plot) has one level of each hard factor; a hard factor can be tested only with
several batches of each level: G. E. P. Box, J. S. Hunter, W. G. Hunter, Statistics for Experimenters (2nd ed. 2005),
section 9.1.

The boots of a single hard factor form a balanced sequence that is neither alternating nor blocked (NIST TN 1855,
section 4.5.1: 20 boots, 10 of each level, 11 changes of level). In an alternating sequence, any other change that
occurs at every second boot looks like an effect of the level; in a blocked sequence, drift does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cbench.screen.design.factorial import Factor, Treatment, named
from cbench.stats.random_draws import Stream


@dataclass(frozen=True, slots=True)
class Batch:
    """The treatments that run between two resets. `levels`: one level per hard factor, in the order of these factors;
    `treatments`: the numbers of all treatments with these levels, ascending.
    """

    number: int
    levels: tuple[int, ...]
    treatments: tuple[int, ...]


def batches(
    factors: Sequence[Factor],
    treatments: Sequence[Treatment],
    plots: int,
    seed: int,
    sequence: Sequence[Treatment] | None = None,
) -> tuple[Batch, ...]:
    """The batches in the order in which they run: `plots` for each combination of hard levels that has treatments, or
    `plots` in total if no factor is hard.

    Batches form rounds, each with every combination once in a new random order, so that drift affects all levels
    equally. `sequence`: the hard levels of each batch, instead of rounds. Raises ValueError if `sequence` omits a
    combination or has an unknown one.
    """
    hard = [number for number, factor in enumerate(factors) if factor.hard]
    members: dict[tuple[int, ...], list[int]] = {}
    for number, treatment in enumerate(treatments):
        members.setdefault(tuple(treatment[each] for each in hard), []).append(number)
    if sequence is None:
        rounds = (Stream(seed, f"batches {number}").shuffled(sorted(members)) for number in range(plots))
        sequence = [levels for one in rounds for levels in one]
    else:
        ours = [factors[each] for each in hard]
        if unknown := [levels for levels in sequence if levels not in members]:
            raise ValueError(f"no treatment has {named(ours, unknown[0])}, which is in the sequence of batches")
        if missing := sorted(set(members) - set(sequence)):
            raise ValueError(f"the sequence of batches never has {named(ours, missing[0])}")
    return tuple(Batch(number, levels, tuple(members[levels])) for number, levels in enumerate(sequence))


def order(batch: Batch, iteration: int, seed: int) -> tuple[int, ...]:
    """The numbers of the treatments in the order of one iteration (numbered from 0) of a batch. The order does not
    depend on earlier draws.
    """
    return Stream(seed, f"batch {batch.number} iteration {iteration}").shuffled(batch.treatments)


def boot_sequence(levels: int, per_level: int, seed: int) -> tuple[int, ...]:
    """The level of each boot. Each level occurs `per_level` times; all sequences whose number of level changes is
    within bounds() are equally likely.
    """
    boots = [level for level in range(levels) for _ in range(per_level)]
    low, high = bounds(boots)
    stream = Stream(seed, "boots")
    while True:
        drawn = stream.shuffled(boots)
        if low <= transitions(drawn) <= high:
            return drawn


def transitions(sequence: Sequence[int]) -> int:
    """The number of boots whose level differs from that of the preceding boot."""
    return sum(one != two for one, two in pairwise(sequence))


def bounds(sequence: Sequence[int]) -> tuple[int, int]:
    """The minimum and maximum number of level changes in an acceptable sequence of boots with these levels.

    The lower bound is halfway (rounded up) between the number of changes in a blocked sequence and the expected number
    for a random order, N - sum n_i^2/N. The upper bound is halfway (rounded down) between that expected number and
    N - 1, the number for a sequence whose level changes with every boot.
    """
    sizes = Counter(sequence).values()
    n = len(sequence)
    # Numbers are multiplied by 2 N to stay integers. 20 boots of two levels have 10 changes on average; 6 to 14 are
    # allowed.
    expected = n * n - sum(size * size for size in sizes)
    low = -(-(expected + n * (len(sizes) - 1)) // (2 * n))
    return low, max(low, (expected + n * (n - 1)) // (2 * n))


def sequence_words(sequence: Sequence[int], names: Sequence[str], what: str = "boots") -> str:
    """One sentence with the number of boots, in total and by level name, the number of changes, and any problem.
    `what`: the noun for batches.
    """
    counts = Counter(sequence)
    each = ", ".join(f"{counts[level]} of {name}" for level, name in enumerate(names))
    changes, (low, high) = transitions(sequence), bounds(sequence)
    wrong = ["not balanced"] if len({counts[level] for level in range(len(names))}) > 1 else []
    wrong += ["nearly in blocks"] * (changes < low) + ["nearly alternating"] * (changes > high)
    text = f"{len(sequence)} {what}, {each}; the level changes {changes} times ({low} to {high} are neither alternating"
    return f"{text} nor in blocks){': ' if wrong else ''}{' and '.join(wrong)}"
