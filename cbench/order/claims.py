"""Decide what a verdict may claim, at one error rate for all its sentences.

Each sentence is about one family of tests. If each family had a chance of a false alarm of its own, one in six studies
without any effect would have a positive sentence. So alpha is shared: FIRST of it for the question of the study, the
rest in equal parts for the other families that the data allow (C. E. Bonferroni 1936). What passes its family's alpha
alone is said as well, as that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

Family = Literal["orders", "within", "spread", "position", "predecessor", "earlier", "drift", "interaction", "unlike"]
FIRST = 0.75
"""The share of alpha for the first family; the other families need far larger effects anyway, and their share costs the
first hardly any power."""
OF_ORDER: tuple[Family, ...] = ("orders", "within", "spread", "position", "predecessor", "earlier")
"""Families whose effects are effects of the order."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One family: what is claimed at its `level`, a part of the study's alpha; `alone`: the tests that are significant
    only if this family is considered alone, at all of alpha."""

    family: Family
    level: float
    named: tuple[str, ...]
    alone: tuple[str, ...]


def claimed(
    families: Mapping[Family, tuple[Sequence[str], Sequence[float]]], alpha: float, shared: bool = True
) -> tuple[Claim, ...]:
    """The names and p-values of each family, corrected within it (NaN: none). The first family is the question
    of the study. `shared`: whether the families share alpha."""
    present = [family for family, (_, p) in families.items() if not all(map(isnan, p))]
    found = []
    for place, family in enumerate(present):
        names, p = families[family]
        share = 1.0 if not shared or len(present) == 1 else FIRST if not place else (1 - FIRST) / (len(present) - 1)
        sure = tuple(name for name, each in zip(names, p, strict=True) if each < share * alpha)
        alone = tuple(name for name, each in zip(names, p, strict=True) if share * alpha <= each < alpha)
        found.append(Claim(family, share * alpha, sure, alone))
    return tuple(found)
