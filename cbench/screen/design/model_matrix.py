"""Main effects and two-factor interactions as columns of -1, 0 and 1: sums to zero over a factor's levels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from cbench.screen.design.factorial import Treatment

Effect = tuple[int, ...]
"""Numbers of factors, ascending."""


def present(treatments: Sequence[Treatment]) -> tuple[tuple[int, ...], ...]:
    """For each factor its levels that some treatment has, ascending."""
    return tuple(tuple(sorted(set(column))) for column in zip(*treatments, strict=True))


def effects(levels: Sequence[Sequence[int]], interactions: bool) -> list[Effect]:
    """Of factors with two levels or more: each one, then each two."""
    some = [number for number, each in enumerate(levels) if len(each) > 1]
    return [(each,) for each in some] + ([*combinations(some, 2)] if interactions else [])


def columns(
    treatments: Sequence[Treatment], wanted: Sequence[Effect]
) -> tuple[list[list[int]], dict[Effect, tuple[int, int]]]:
    """A row for each treatment, 1 first, and where (from, to) each effect has its columns."""
    levels = present(treatments)
    places: dict[Effect, tuple[int, int]] = {}
    at = 1
    for effect in wanted:
        size = 1
        for factor in effect:
            size *= len(levels[factor]) - 1
        places[effect] = at, at + size
        at += size
    rows = []
    for treatment in treatments:
        row = [1]
        coded = [_coded(level, ours) for level, ours in zip(treatment, levels, strict=True)]
        for effect in wanted:
            made = [1]
            for factor in effect:
                made = [one * other for one in made for other in coded[factor]]
            row += made
        rows.append(row)
    return rows, places


def _coded(level: int, levels: Sequence[int]) -> list[int]:
    """1 at its own place; -1 everywhere for the last level."""
    if level == levels[-1]:
        return [-1] * (len(levels) - 1)
    return [int(level == each) for each in levels[:-1]]
