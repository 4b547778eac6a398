"""Code effects as columns of -1, 0 and 1, which sum to zero over a factor's levels, and compute exact ranks.

Effects are main effects and two-factor interactions. Ranks are computed without floating point, by elimination modulo a
61-bit prime: a rank or a zero coefficient is wrong only if that prime divides the determinant of a matrix of -1, 0 and
1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from cbench.screen.design.factorial import Treatment

Effect = tuple[int, ...]
"""Numbers of factors, ascending."""


def present(treatments: Sequence[Treatment]) -> tuple[tuple[int, ...], ...]:
    """The levels of each factor that occur in some treatment, ascending."""
    return tuple(tuple(sorted(set(column))) for column in zip(*treatments, strict=True))


def effects(levels: Sequence[Sequence[int]], interactions: bool) -> list[Effect]:
    """The effects of all factors with at least two levels: main effects, then, if requested, two-factor
    interactions.
    """
    some = [number for number, each in enumerate(levels) if len(each) > 1]
    return [(each,) for each in some] + ([*combinations(some, 2)] if interactions else [])


def columns(
    treatments: Sequence[Treatment], wanted: Sequence[Effect]
) -> tuple[list[list[int]], dict[Effect, tuple[int, int]]]:
    """Two results: the model matrix, with a row for each treatment and the constant 1 as the first column; and for each
    effect, its first column and the column after its last one.
    """
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
            products = [1]
            for factor in effect:
                products = [one * other for one in products for other in coded[factor]]
            row += products
        rows.append(row)
    return rows, places


def _coded(level: int, levels: Sequence[int]) -> list[int]:
    """The row that codes a level: 1 in the level's own column; for the last level, -1 in all columns."""
    if level == levels[-1]:
        return [-1] * (len(levels) - 1)
    return [int(level == each) for each in levels[:-1]]


PRIME = (1 << 61) - 1

Row = list[int]


def reduced(rows: Iterable[Sequence[int]]) -> dict[int, Row]:
    """The nonzero rows of the reduced row echelon form modulo PRIME, keyed by pivot column in ascending order."""
    form: dict[int, Row] = {}
    for row in dict.fromkeys(tuple(each) for each in rows):
        left = [each % PRIME for each in row]
        for pivot, ours in form.items():
            if times := left[pivot]:
                left = [(a - times * b) % PRIME for a, b in zip(left, ours, strict=True)]
        pivot = next((column for column, value in enumerate(left) if value), -1)
        if pivot < 0:
            continue
        inverse = pow(left[pivot], -1, PRIME)
        left = [value * inverse % PRIME for value in left]
        for other, ours in form.items():
            if times := ours[pivot]:
                form[other] = [(a - times * b) % PRIME for a, b in zip(ours, left, strict=True)]
        form[pivot] = left
        if len(form) == len(left):
            break
    return dict(sorted(form.items()))


def rank(rows: Iterable[Sequence[int]]) -> int:
    """The number of linearly independent rows."""
    return len(reduced(rows))


def null_space(rows: Sequence[Sequence[int]]) -> list[Row]:
    """A basis of the null space modulo PRIME: the coefficients of combinations of columns that add up to 0 in every
    row.
    """
    form = reduced(rows)
    basis = []
    for free in range(len(rows[0])):
        if free not in form:
            vector = [0] * len(rows[0])
            vector[free] = 1
            for pivot, ours in form.items():
                vector[pivot] = -ours[free] % PRIME
            basis.append(vector)
    return basis
