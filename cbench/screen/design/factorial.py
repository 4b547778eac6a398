"""Define factors and treatments, and generate the full factorial design.

The terms are those of D. Flater, NIST Technical Note 1855 (2014), section 2: a treatment is one level of each factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

Treatment = tuple[int, ...]
"""A level number, from 0, for each factor, in the order of the factors."""

MOST = 10_000
"""The maximum number of treatments of a design."""

TIMES = "\N{MULTIPLICATION SIGN}"
"""Separates the factors in an interaction's name."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor with the names of its levels, numbered from 0. `hard`: whether the level changes only between batches
    (whole plots).
    """

    name: str
    levels: tuple[str, ...]
    hard: bool = False


def full_factorial(
    factors: Sequence[Factor], excluded: Callable[[Treatment], bool] = lambda treatment: False
) -> tuple[Treatment, ...]:
    """All treatments that are not excluded; the level of the last factor varies fastest.

    Raises ValueError if there are more than MOST treatments, including excluded ones, or if all are excluded.
    """
    if (many := prod(len(factor.levels) for factor in factors)) > MOST:
        raise ValueError(f"{many} treatments; at most {MOST}: use fewer factors or levels, or a fractional design")
    treatments = tuple(
        each for each in product(*(range(len(factor.levels)) for factor in factors)) if not excluded(each)
    )
    if not treatments:
        raise ValueError("every treatment is excluded")
    return treatments


def named(factors: Sequence[Factor], treatment: Treatment) -> str:
    """A treatment's levels as text, such as "os=0 fp=1"."""
    pairs = zip(factors, treatment, strict=True)
    return " ".join(f"{factor.name}={factor.levels[number]}" for factor, number in pairs)


def effect_name(names: Sequence[str], effect: Sequence[int]) -> str:
    """The name of a main effect or an interaction: the factors' names, joined by TIMES."""
    return TIMES.join(names[each] for each in effect)
