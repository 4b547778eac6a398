"""Randomised complete blocks, in batches where a factor is hard to change.

An iteration (block) runs every treatment of its batch once, in an order of its own: D. Flater, NIST Technical Note
1855 (2014), section 4.5. A batch (whole plot) has one level of each hard factor; a factor that is to be tested needs
several batches of each level: G. E. P. Box, J. S. Hunter, W. G. Hunter, Statistics for Experimenters (2nd ed. 2005),
section 9.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cbench.screen.design.factorial import Factor, Treatment, named
from cbench.stats.random_draws import Stream


@dataclass(frozen=True, slots=True)
class Batch:
    """`levels`: of the hard factors, in their order; `replicate`: the how many-th batch with them, from 0;
    `treatments`: the numbers of all treatments with these levels, ascending."""

    number: int
    levels: tuple[int, ...]
    replicate: int
    treatments: tuple[int, ...]


def batches(
    factors: Sequence[Factor],
    treatments: Sequence[Treatment],
    plots: int,
    seed: int,
    sequence: Sequence[Treatment] | None = None,
) -> tuple[Batch, ...]:
    """The batches in turn, `plots` for each combination of hard levels that has treatments, or `plots` in all where no
    factor is hard.

    They come in rounds: each has every combination once, in a fresh order, so that no level drifts away from another.
    `sequence`: the hard levels of each batch instead. ValueError for fewer than 1 plot, or a sequence that leaves out a
    combination or has another one.
    """
    if plots < 1:
        raise ValueError("at least one batch is needed")
    hard = [number for number, factor in enumerate(factors) if factor.hard]
    members: dict[tuple[int, ...], list[int]] = {}
    for number, treatment in enumerate(treatments):
        members.setdefault(tuple(treatment[each] for each in hard), []).append(number)
    if sequence is None:
        rounds = (Stream(seed, f"batches {number}").shuffled(sorted(members)) for number in range(plots))
        sequence = [levels for one in rounds for levels in one]
    else:
        ours = [factors[each] for each in hard]
        if unknown := [levels for levels in sequence if tuple(levels) not in members]:
            raise ValueError(f"no treatment has {named(ours, tuple(unknown[0]))}, which the sequence of batches has")
        if missing := sorted(set(members) - {tuple(levels) for levels in sequence}):
            raise ValueError(f"the sequence of batches never has {named(ours, missing[0])}")
    found, before = [], Counter[tuple[int, ...]]()
    for number, levels in enumerate(tuple(each) for each in sequence):
        found.append(Batch(number, levels, before[levels], tuple(members[levels])))
        before[levels] += 1
    return tuple(found)


def order(batch: Batch, iteration: int, seed: int) -> tuple[int, ...]:
    """The treatments' numbers in the order of one iteration (from 0) of a batch: of that one alone, whatever was drawn
    before."""
    return Stream(seed, f"batch {batch.number} iteration {iteration}").shuffled(batch.treatments)
