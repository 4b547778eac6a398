"""What a set of treatments and batches can test, before anything runs; and what an abridgment leaves of it.

A main effect is judged among the main effects (interactions are taken for none; words say which would be seen as it),
an interaction among all main effects and two-factor interactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from cbench.screen.design import testable_words as say
from cbench.screen.design.factorial import Factor, Treatment, effect_name, named
from cbench.screen.design.judged import ALIASED, EMPTY, NO_PLOTS, OK, ONE_LEVEL, Judged
from cbench.screen.design.model_matrix import Effect, columns, effects, present
from cbench.screen.design.rank import Row, null_space, rank

Cells = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is there, and what it can test.

    `counts`: for each factor the treatments with each level; `balanced`: of each factor the levels that are there have
    equally many (`balanced_factors`: by factor); `orthogonal`: the main effects do not depend on each other
    (proportional counts for each two factors); `empty`: for pairs of factors the cells (two levels) that no treatment
    has; `rank` of the model of all main effects and two-factor interactions, which has `columns`; `plots_df`: degrees
    of freedom of the whole-plot error, None where no factor is hard; `words`: everything that is worth a sentence.
    """

    treatments: int
    counts: tuple[tuple[int, ...], ...]
    balanced: bool
    balanced_factors: tuple[bool, ...]
    orthogonal: bool
    empty: Mapping[tuple[int, int], Cells]
    rank: int
    columns: int
    plots_df: int | None
    effects: tuple[Judged, ...]
    words: tuple[str, ...]

    def effect(self, *factors: int) -> Judged:
        """The one with these factors. KeyError for one that was not asked for."""
        return {each.factors: each for each in self.effects}[factors]


def assess(
    factors: Sequence[Factor],
    treatments: Sequence[Treatment],
    plots: Mapping[tuple[int, ...], int] | int = 1,
    interactions: bool = True,
) -> Assessment:
    """`plots`: batches of each combination of the hard factors' levels, one number for all or by combination.

    Raises ValueError without treatments or with one that is there twice.
    """
    if not treatments:
        raise ValueError("no treatments are left")
    if len(set(treatments)) < len(treatments):
        twice = next(each for each in treatments if treatments.count(each) > 1)
        raise ValueError(f"{named(factors, twice)} is there twice")
    levels = present(treatments)
    counts = tuple(
        tuple(sum(each[number] == level for each in treatments) for level in range(len(factor.levels)))
        for number, factor in enumerate(factors)
    )
    pairs = [each for each in effects(levels, True) if len(each) == 2]
    balanced = tuple(len({count for count in each if count}) <= 1 for each in counts)
    empty = {pair: cells for pair in pairs if (cells := _empty(treatments, levels, pair))}
    skew = [pair for pair in pairs if not _proportional(treatments, counts, levels, pair)]
    plots_df = _plots_df(factors, treatments, plots)
    model = _Model(treatments, effects(levels, interactions))
    mains = _Model(treatments, effects(levels, False))
    wanted: list[Effect] = [(each,) for each in range(len(factors))]
    wanted += combinations(range(len(factors)), 2) if interactions else []
    judged = tuple(_judged(factors, levels, effect, mains, model, empty, plots_df) for effect in wanted)
    words = say.counted(factors, counts, balanced) + say.crossed(factors, skew, empty)
    words += say.together(factors, judged)
    return Assessment(
        treatments=len(treatments),
        counts=counts,
        balanced=all(balanced),
        balanced_factors=balanced,
        orthogonal=not skew,
        empty=empty,
        rank=model.rank,
        columns=model.columns,
        plots_df=plots_df,
        effects=judged,
        words=tuple(words),
    )


class _Model:
    """The model of some effects, and what the treatments cannot tell of it."""

    def __init__(self, treatments: Sequence[Treatment], wanted: Sequence[Effect]) -> None:
        rows, self._places = columns(treatments, wanted)
        self.columns = len(rows[0])
        self._null: list[Row] = null_space(rows)
        self.rank = self.columns - len(self._null)
        self._rows = rows
        owners = [effect for effect, (start, end) in self._places.items() for _ in range(start, end)]
        # Which effects each combination of columns that adds up to nothing has in it.
        self._sums = [
            {owner for owner, value in zip(owners, vector[1:], strict=True) if value} for vector in self._null
        ]

    def full(self, effect: Effect) -> int:
        """Degrees of freedom when everything can be told."""
        start, end = self._places[effect]
        return end - start

    def df(self, effect: Effect) -> int:
        """How many of the effect's columns can be told from everything else in the model."""
        start, end = self._places[effect]
        return end - start - rank(vector[start:end] for vector in self._null)

    def aliases(self, effect: Effect) -> list[Effect]:
        """Effects that can make up for a change of this one's coefficients."""
        found = set[Effect]().union(*(each for each in self._sums if effect in each)) - {effect}
        return [other for other in self._places if other in found]

    def seen_as(self, effect: Effect) -> list[Effect]:
        """Those of them without its factors that are seen as it where it is estimated as if they were none."""
        start, end = self._places[effect]
        found = []
        for other in self.aliases(effect):
            first, last = self._places[other]
            products = (
                sum(row[a] * row[b] for row in self._rows) for a in range(start, end) for b in range(first, last)
            )
            if not set(other) & set(effect) and len(other) > 1 and any(products):
                found.append(other)
        return found


def _judged(
    factors: Sequence[Factor],
    levels: Sequence[Sequence[int]],
    effect: Effect,
    mains: _Model,
    model: _Model,
    empty: Mapping[tuple[int, int], Cells],
    plots_df: int | None,
) -> Judged:
    names = [factor.name for factor in factors]
    name = effect_name(names, effect)
    if single := [each for each in effect if len(levels[each]) < 2]:
        full = prod(len(factors[each].levels) - 1 for each in effect)
        words = say.one_level(name, factors[single[0]], levels[single[0]])
        return Judged(effect, name, ONE_LEVEL, 0, full, (), words)
    main = len(effect) == 1
    ours = mains if main else model
    df, full = ours.df(effect), ours.full(effect)
    why = OK if df else EMPTY if not main and effect in empty else ALIASED
    if why == OK and plots_df == 0 and any(factors[each].hard for each in effect):
        return Judged(effect, name, NO_PLOTS, 0, full, (), say.no_plots(factors, [effect]))
    others = model.seen_as(effect) if main and why == OK else ours.aliases(effect)
    aliases = tuple(effect_name(names, each) for each in others)
    words = say.empty(name) if why == EMPTY else say.aliased(name, df, full, aliases)
    return Judged(effect, name, why, df, full, aliases, words)


def _empty(treatments: Sequence[Treatment], levels: Sequence[Sequence[int]], pair: Effect) -> Cells:
    one, two = pair
    full = {(each[one], each[two]) for each in treatments}
    return tuple(cell for cell in product(levels[one], levels[two]) if cell not in full)


def _proportional(
    treatments: Sequence[Treatment], counts: Sequence[Sequence[int]], levels: Sequence[Sequence[int]], pair: Effect
) -> bool:
    one, two = pair
    cells = Counter((each[one], each[two]) for each in treatments)
    n = len(treatments)
    return all(n * cells[a, b] == counts[one][a] * counts[two][b] for a, b in product(levels[one], levels[two]))


def _plots_df(
    factors: Sequence[Factor], treatments: Sequence[Treatment], plots: Mapping[tuple[int, ...], int] | int
) -> int | None:
    hard = [number for number, factor in enumerate(factors) if factor.hard]
    if not hard:
        return None
    together = {tuple(each[number] for number in hard) for each in treatments}
    if isinstance(plots, int):
        return len(together) * (plots - 1)
    return sum(max(plots.get(each, 0) - 1, 0) for each in together)
