"""Determine the order of arms in each block, and the number of blocks.

A block is one execution of every arm. The orders of successive blocks are the rows of Williams squares, so that within
each square every arm occurs equally often at each position and after every other arm. The seed determines the
assignment of arms and the order of rows in each square (E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149-168).

The stopping rule depends on the widths of the intervals, never on their location (Y. S. Chow, H. Robbins, "On the
asymptotic theory of fixed-width sequential confidence intervals for the mean", Ann. Math. Statist. 36 (1965) 457-462).
A test that is repeated until it rejects exceeds its error rate; the width of an interval does not depend on which arm
is faster.
"""

from __future__ import annotations

from dataclasses import dataclass

from cbench.ab.analyze import SmallestEffect
from cbench.study.orders import drawn_square, square

FEWEST = 10
"""Blocks before the first check, rounded up to complete squares."""
GROWTH = 1.25
"""The factor between the numbers of blocks at successive checks."""
BLOCKS, EFFECT, BUDGET = "blocks", "effect", "budget"
"""The reasons why a measurement ends: the requested blocks are done, the effect is detectable, or time is up."""


def order_of(block: int, arms: int, seed: int) -> tuple[int, ...]:
    """The numbers (from 0) of the arms of this block, in the order in which they run."""
    rows = len(square(arms))
    return drawn_square(arms, block // rows, seed)[block % rows]


def whole_squares(blocks: int, arms: int) -> int:
    """The number of blocks, rounded up to whole squares."""
    rows = len(square(arms))
    return -(-blocks // rows) * rows


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The rule that ends a measurement. `blocks`: the requested number of blocks; None to measure until `effect` (a
    log ratio) is detectable or the time limit is reached. `budget_s`: time limit for measuring in seconds; `strict`:
    enforce the limit even if fewer than FEWEST blocks fit. `layouts`: the number of builds that the blocks use in turn.
    """

    arms: int
    effect: float
    budget_s: float
    strict: bool
    blocks: int | None = None
    layouts: int = 1

    @property
    def first_look(self) -> int:
        """The number of blocks at the first check, with at least one for each layout."""
        return whole_squares(max(FEWEST, self.layouts), self.arms)

    def next_look(self, blocks: int) -> int:
        """The number of blocks at the next check after `blocks` blocks."""
        return whole_squares(int(GROWTH * blocks) + 1, self.arms)

    def over(self, blocks: int, spent_s: float) -> str:
        """The reason why no further block may begin, "" if another block may begin. `spent_s`: the duration of the
        blocks so far in seconds.
        """
        if self.blocks is not None and blocks >= self.blocks:
            return BLOCKS
        fewest = 1 if self.strict else self.first_look
        # Without an explicit budget, the requested number of blocks is measured however long that takes.
        limited = self.strict or self.blocks is None
        if limited and blocks >= fewest and spent_s + spent_s / blocks > self.budget_s:
            return BUDGET
        return ""

    def enough(self, detectable: SmallestEffect | None) -> bool:
        """Whether the effect is detectable with the blocks so far; False if a number of blocks is requested."""
        return self.blocks is None and detectable is not None and detectable.effect <= self.effect
