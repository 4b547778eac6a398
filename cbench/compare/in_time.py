"""Check that both sides were measured over the same period: otherwise a change on the host looks like a difference."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.stats.stretches import mixed, stretches


def one_after_the_other(a: Sequence[int], b: Sequence[int]) -> str | None:
    """The side that was measured first, "A" or "B", by the start times of the processes; None if the sides were
    interleaved or times are unknown.
    """
    if not a or not b or set(a) & set(b):
        return None
    order = [side for _, side in sorted([*((at, "A") for at in a), *((at, "B") for at in b)])]
    if mixed(len(a), len(b), stretches(order)):
        return None
    return order[0]
