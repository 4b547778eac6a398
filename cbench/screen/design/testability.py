"""Determine the effects that a set of treatments and batches can test, before anything runs or after an abridgment.

A main effect is judged in the model of all main effects, which assumes that there are no interactions. Its remark names
the interactions that are aliased with it. An interaction is judged in the model of all main effects and two-factor
interactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from cbench.screen.design.factorial import Factor, Treatment, effect_name
from cbench.screen.design.model_matrix import Effect, Row, columns, effects, null_space, present, rank

Cells = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """The assessment of a set of treatments.

    `treatments`: their number; `counts`: number of treatments per level of each factor; `balanced`: whether, for every
    factor, all levels that occur have equal counts (`balanced_factors`: the same per factor); `orthogonal`: whether the
    main effects are independent of each other (proportional counts for each pair of factors); `empty`: for each pair of
    factors with empty cells (pairs of levels without treatments), these cells; `effects`: the judgments of all main
    effects and two-factor interactions; `words`: remarks, one sentence each.
    """

    treatments: int
    counts: tuple[tuple[int, ...], ...]
    balanced: bool
    balanced_factors: tuple[bool, ...]
    orthogonal: bool
    empty: Mapping[tuple[int, int], Cells]
    effects: tuple[Judged, ...]
    words: tuple[str, ...]

    def effect(self, *factors: int) -> Judged:
        """The judgment of the effect of these factors (numbers, ascending). Raises KeyError if it was not assessed."""
        return {each.factors: each for each in self.effects}[factors]


def assess(
    factors: Sequence[Factor],
    treatments: Sequence[Treatment],
    plots: Mapping[tuple[int, ...], int] | int = 1,
) -> Assessment:
    """Assess a set of treatments. `plots`: the number of batches of each combination of the hard factors' levels, or
    one number for all.
    """
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
    model = _Model(treatments, effects(levels, True))
    mains = _Model(treatments, effects(levels, False))
    numbers = range(len(factors))
    wanted: list[Effect] = [*((each,) for each in numbers), *combinations(numbers, 2)]
    judged = tuple(_judged(factors, levels, effect, mains, model, empty, plots_df) for effect in wanted)
    words = balance_words(factors, counts, balanced) + orthogonality_words(factors, skew, empty)
    words += effect_words(factors, judged)
    return Assessment(
        treatments=len(treatments),
        counts=counts,
        balanced=all(balanced),
        balanced_factors=balanced,
        orthogonal=not skew,
        empty=empty,
        effects=judged,
        words=tuple(words),
    )


class _Model:
    """A linear model of some effects, and the linear dependences between its columns."""

    def __init__(self, treatments: Sequence[Treatment], wanted: Sequence[Effect]) -> None:
        rows, self._places = columns(treatments, wanted)
        self._null: list[Row] = null_space(rows)
        self._rows = rows
        owners = [effect for effect, (start, end) in self._places.items() for _ in range(start, end)]
        # The effects in each combination of columns that adds up to zero. For any two effects in combinations that
        # share an effect, some combination contains both, so these form one set (a component of the matroid of
        # columns).
        self._sums: list[set[Effect]] = []
        for vector in self._null:
            every = {owner for owner, value in zip(owners, vector[1:], strict=True) if value}
            every = every.union(*(each for each in self._sums if each & every))
            self._sums = [each for each in self._sums if not each & every] + [every]

    def full(self, effect: Effect) -> int:
        """The effect's degrees of freedom if there were no aliases and no empty cells."""
        start, end = self._places[effect]
        return end - start

    def df(self, effect: Effect) -> int:
        """The number of the effect's columns that are independent of everything else in the model."""
        start, end = self._places[effect]
        return end - start - rank(vector[start:end] for vector in self._null)

    def aliases(self, effect: Effect) -> list[Effect]:
        """All effects that can compensate for a change in this effect's coefficients."""
        partners = set[Effect]().union(*(each for each in self._sums if effect in each)) - {effect}
        return [other for other in self._places if other in partners]

    def seen_as(self, effect: Effect) -> list[Effect]:
        """The interactions of other factors that bias this effect's estimate if the model omits them."""
        start, end = self._places[effect]
        visible = []
        for other in self.aliases(effect):
            first, last = self._places[other]
            products = (
                sum(row[a] * row[b] for row in self._rows) for a in range(start, end) for b in range(first, last)
            )
            if not set(other) & set(effect) and len(other) > 1 and any(products):
                visible.append(other)
        return visible


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
        constant = factors[single[0]]
        words = f"{name} cannot be tested: every treatment has {constant.name}={constant.levels[levels[single[0]][0]]}"
        return Judged(effect, name, ONE_LEVEL, 0, full, (), words)
    main = len(effect) == 1
    ours = mains if main else model
    df, full = ours.df(effect), ours.full(effect)
    why = OK if df else EMPTY if not main and effect in empty else ALIASED
    if why == OK and plots_df == 0 and any(factors[each].hard for each in effect):
        return Judged(effect, name, NO_PLOTS, 0, full, (), no_plots_words(factors, [effect]))
    others = model.seen_as(effect) if main and why == OK else ours.aliases(effect)
    aliases = tuple(effect_name(names, each) for each in others)
    words = alias_words(name, df, full, aliases)
    if why == EMPTY:
        words = f"{name} cannot be tested: too many combinations of the levels of its factors have no treatment"
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


OK, ONE_LEVEL, ALIASED, EMPTY, NO_PLOTS = "ok", "one level", "aliased", "empty cells", "no whole plots"


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgment of whether an effect of one or two factors, given by number, can be tested.

    `why`: OK; ONE_LEVEL: only one level of a factor is present; ALIASED: inseparable from `aliases` (names of effects);
    EMPTY: too many combinations of the levels of its factors have no treatment; NO_PLOTS: the effect involves a hard
    factor, and no combination of the hard factors' levels has a second batch. `df`: the testable degrees of freedom,
    fewer than `full` if cells are empty or the effect is partly aliased. `words`: a sentence about the problem or the
    aliases, "" if there are none. A main effect that is OK may also have `aliases`: interactions that its test assumes
    to be inert.
    """

    factors: Effect
    name: str
    why: str
    df: int
    full: int
    aliases: tuple[str, ...]
    words: str

    @property
    def ok(self) -> bool:
        """Whether the effect can be tested."""
        return self.why == OK


LISTED = 6
"""The maximum number of names in one sentence."""
TOGETHER = " are fully aliased: none can be separated from another"
"""The end of a sentence that begins with the names of effects."""
SEVERAL = (
    "take several batches (boots) per level, or run the boot check: an experiment of one hard factor alone, with "
    'batches = 10 and sequence = "mixed"'
)
"""Advice if a hard factor is confounded with its batches."""


def balance_words(factors: Sequence[Factor], counts: Sequence[Sequence[int]], balanced: Sequence[bool]) -> list[str]:
    """Sentences about levels without treatments and about unbalanced factors."""
    words = []
    for factor, ours, even in zip(factors, counts, balanced, strict=True):
        absent = [f"{factor.name}={name}" for name, count in zip(factor.levels, ours, strict=True) if not count]
        words += [f"{each} is in no treatment" for each in absent]
        if not even:
            parts = [f"{count} with {name}" for name, count in zip(factor.levels, ours, strict=True) if count]
            words.append(f"{factor.name} is not balanced: the numbers of treatments are {', '.join(parts)}")
    return words


def orthogonality_words(
    factors: Sequence[Factor],
    skew: Sequence[tuple[int, ...]],
    empty: Mapping[tuple[int, int], Sequence[tuple[int, int]]],
) -> list[str]:
    """Sentences about pairs of factors whose main effects depend on each other."""
    words = []
    for one, two in skew:
        cells = [
            f"{factors[one].name}={factors[one].levels[a]} {factors[two].name}={factors[two].levels[b]}"
            for a, b in empty.get((one, two), ())
        ]
        why = f": no treatment has {listed(cells)}" if cells else ": their levels are not combined equally often"
        both = f"{factors[one].name} and {factors[two].name}"
        words.append(f"{both} are not orthogonal, so the plain effect of one includes some of the other's{why}")
    return words


def no_plots_words(factors: Sequence[Factor], effects: Sequence[Effect]) -> str:
    """A sentence about effects of hard-to-change factors that have only one batch per level."""
    names = [factor.name for factor in factors]
    hard = sorted({each for effect in effects for each in effect if factors[each].hard})
    text = listed([effect_name(names, effect) for effect in effects])
    return f"{text} cannot be tested: one batch per level of {listed([names[each] for each in hard])}; {SEVERAL}"


def alias_words(name: str, df: int, full: int, aliases: Sequence[str]) -> str:
    """A sentence about an effect that is aliased with others or has lost degrees of freedom; "" if neither applies."""
    if not df:
        return f"{name} cannot be tested: it is fully aliased with {listed(aliases)}"
    if df < full:
        return f"{name} can be tested in part only: {df} of {full} degrees of freedom"
    return f"{name} is aliased with {listed(aliases)}, which the test of {name} assumes to be inert" if aliases else ""


def effect_words(factors: Sequence[Factor], judged: Sequence[Judged]) -> list[str]:
    """Sentences about the effects that have problems or aliases. Effects with the same problem share a sentence."""
    plots = [each.factors for each in judged if each.why == NO_PLOTS]
    words = [no_plots_words(factors, plots)] if plots else []
    words += [each.words for each in judged if each.words and each.why not in (NO_PLOTS, ALIASED)]
    groups: dict[frozenset[str], list[str]] = {}
    for each in judged:
        if each.why == ALIASED:
            groups.setdefault(frozenset({each.name, *each.aliases}), []).append(each.name)
    main, alone = {factor.name for factor in factors}, 0
    for every, names in groups.items():
        if len(every) == len(names) and (len(names) <= LISTED or names[0] in main):
            words.append(f"{listed(names)}{TOGETHER}")
        else:  # aliased with main effects; their own sentence reports this
            alone += len(names)
    if alone:
        words.append(f"{alone} of the interactions cannot be tested: each is aliased with other effects")
    return words


def listed(names: Sequence[str]) -> str:
    """The first LISTED names, separated by commas, and the number of the others."""
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
