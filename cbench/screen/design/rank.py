"""Ranks of models, without floating point.

Elimination modulo a prime of 61 bits: a rank or a coefficient of 0 comes out wrong only where that prime happens to
divide a determinant of -1, 0 and 1, and nothing here is chosen to that end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

PRIME = (1 << 61) - 1

Row = list[int]


def reduced(rows: Iterable[Sequence[int]]) -> dict[int, Row]:
    """The reduced row echelon form modulo PRIME: rows by their pivot's column, in the order of columns."""
    found: dict[int, Row] = {}
    for row in dict.fromkeys(tuple(each) for each in rows):
        left = [each % PRIME for each in row]
        for pivot, ours in found.items():
            if times := left[pivot]:
                left = [(a - times * b) % PRIME for a, b in zip(left, ours, strict=True)]
        pivot = next((column for column, value in enumerate(left) if value), -1)
        if pivot < 0:
            continue
        inverse = pow(left[pivot], -1, PRIME)
        left = [value * inverse % PRIME for value in left]
        for other, ours in found.items():
            if times := ours[pivot]:
                found[other] = [(a - times * b) % PRIME for a, b in zip(ours, left, strict=True)]
        found[pivot] = left
        if len(found) == len(left):
            break
    return dict(sorted(found.items()))


def rank(rows: Iterable[Sequence[int]]) -> int:
    """How many rows do not follow from the others."""
    return len(reduced(rows))


def null_space(rows: Sequence[Sequence[int]]) -> list[Row]:
    """A basis of the coefficients of columns that add up to 0 in every row, as sparse as elimination gives it."""
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
