"""Select the claims of a verdict, at one error rate for all its sentences.

Each sentence is about one family of tests. If each family used the full alpha, one in six studies without any effect
would report a false positive. So alpha is shared: the share FIRST for the question of the study, the rest in equal
parts for the other families that the data allow (C. E. Bonferroni 1936). Tests that are significant only at their
family's full alpha are reported separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

Family = Literal["orders", "within", "spread", "position", "predecessor", "earlier", "drift", "interaction", "unlike"]
FIRST = 0.75
"""The share of alpha for the first family. The other families need far larger effects anyway, and their share of alpha
costs the first family hardly any power.
"""
OF_ORDER: tuple[Family, ...] = ("orders", "within", "spread", "position", "predecessor", "earlier")
"""The families whose effects are effects of the order."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claims of one family at its `level`, which is a part of the study's alpha. `named`: tests that are
    significant at this level; `alone`: tests that are significant only if this family is considered alone, at the full
    alpha.
    """

    family: Family
    level: float
    named: tuple[str, ...]
    alone: tuple[str, ...]


def claimed(
    families: Mapping[Family, tuple[Sequence[str], Sequence[float]]], alpha: float, shared: bool = True
) -> tuple[Claim, ...]:
    """The claims of each family, from the names of its tests and their p-values, which are corrected within the family
    (NaN: no test). The first family answers the question of the study. `shared`: whether the families share alpha.
    """
    present = [family for family, (_, p) in families.items() if not all(map(isnan, p))]
    found = []
    for place, family in enumerate(present):
        names, p = families[family]
        share = 1.0 if not shared or len(present) == 1 else FIRST if not place else (1 - FIRST) / (len(present) - 1)
        sure = tuple(name for name, each in zip(names, p, strict=True) if each < share * alpha)
        alone = tuple(name for name, each in zip(names, p, strict=True) if share * alpha <= each < alpha)
        found.append(Claim(family, share * alpha, sure, alone))
    return tuple(found)
