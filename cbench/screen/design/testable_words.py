"""What testable.py finds, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbench.screen.design.factorial import Factor, effect_name
from cbench.screen.design.judged import ALIASED, NO_PLOTS, Judged
from cbench.screen.design.model_matrix import Effect

LISTED = 6
"""So many names in one sentence."""
TOGETHER = " are fully aliased: none can be told from another"
"""After the names of effects."""
SEVERAL = (
    "take several batches (boots) per level, or run the boot check: an experiment of one hard factor alone, with "
    'batches = 10 and sequence = "mixed"'
)
"""What to do where a hard factor cannot be told from its batches."""


def counted(factors: Sequence[Factor], counts: Sequence[Sequence[int]], balanced: Sequence[bool]) -> list[str]:
    """Levels without treatments, and factors out of balance."""
    found = []
    for factor, ours, even in zip(factors, counts, balanced, strict=True):
        absent = [f"{factor.name}={name}" for name, count in zip(factor.levels, ours, strict=True) if not count]
        found += [f"{each} is in no treatment" for each in absent]
        if not even:
            parts = [f"{count} with {name}" for name, count in zip(factor.levels, ours, strict=True) if count]
            found.append(f"{factor.name} is not balanced: treatments {', '.join(parts)}")
    return found


def crossed(
    factors: Sequence[Factor],
    skew: Sequence[tuple[int, ...]],
    empty: Mapping[tuple[int, int], Sequence[tuple[int, int]]],
) -> list[str]:
    """Pairs of factors whose main effects depend on each other."""
    found = []
    for one, two in skew:
        cells = [
            f"{factors[one].name}={factors[one].levels[a]} {factors[two].name}={factors[two].levels[b]}"
            for a, b in empty.get((one, two), ())
        ]
        why = f": no treatment has {listed(cells)}" if cells else ": their levels do not come together equally often"
        both = f"{factors[one].name} and {factors[two].name}"
        found.append(f"{both} are not orthogonal, so that the plain effect of one has some of the other's in it{why}")
    return found


def one_level(name: str, factor: Factor, levels: Sequence[int]) -> str:
    """For an effect of a factor that is always the same."""
    return f"{name} cannot be tested: every treatment has {factor.name}={factor.levels[levels[0]]}"


def no_plots(factors: Sequence[Factor], effects: Sequence[Effect]) -> str:
    """For effects of factors that are hard to change, with one batch of each of their levels."""
    names = [factor.name for factor in factors]
    hard = sorted({each for effect in effects for each in effect if factors[each].hard})
    told = listed([effect_name(names, effect) for effect in effects])
    return f"{told} cannot be tested: one batch per level of {listed([names[each] for each in hard])}; {SEVERAL}"


def empty(name: str) -> str:
    """For an interaction whose cells are not there."""
    return f"{name} cannot be tested: cells without treatments leave no two levels of each factor to compare"


def aliased(name: str, df: int, full: int, aliases: Sequence[str]) -> str:
    """For an effect that is seen together with others."""
    if not df:
        return f"{name} cannot be tested: it is fully aliased with {listed(aliases)}"
    if df < full:
        return f"{name} can be tested in part only: {df} of {full} degrees of freedom"
    return f"{name} cannot be told from {listed(aliases)}, which the test of {name} takes for none" if aliases else ""


def together(factors: Sequence[Factor], judged: Sequence[Judged]) -> list[str]:
    """What is to be said of all effects: one sentence for those that go together."""
    plots = [each.factors for each in judged if each.why == NO_PLOTS]
    found = [no_plots(factors, plots)] if plots else []
    found += [each.words for each in judged if each.words and each.why not in (NO_PLOTS, ALIASED)]
    groups: dict[frozenset[str], list[str]] = {}
    for each in judged:
        if each.why == ALIASED:
            groups.setdefault(frozenset({each.name, *each.aliases}), []).append(each.name)
    alone = 0
    for every, names in groups.items():
        if len(every) == len(names) <= LISTED:
            found.append(f"{listed(names)}{TOGETHER}")
        else:  # with main effects, of which that is said
            alone += len(names)
    if alone:
        found.append(f"{alone} of the interactions cannot be tested: each is aliased with other effects")
    return found


def listed(names: Sequence[str]) -> str:
    """Names with commas between them, the first ones where there are many."""
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
