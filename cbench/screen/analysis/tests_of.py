"""Select the test of each effect by the design and by which tests are possible, never by their p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np

from cbench.screen.analysis import effects, plots
from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.analysis.result import ContrastResult, LenthContrast, LenthResult
from cbench.screen.design.detectable import ranks_decide, smallest_p
from cbench.screen.design.factorial import effect_name
from cbench.screen.stats.anova import ANOVA, REPEATS, Anova, anova
from cbench.screen.stats.anova_table import WITHIN_ERROR
from cbench.screen.stats.block_tests import Blocked, Effect, EffectTest, blocked, tested_contrast
from cbench.screen.stats.effects import Values
from cbench.screen.stats.lenth import LENTH, Contrast, contrasts, lenth
from cbench.screen.stats.splitplot import SplitPlot
from cbench.stats.distributions import f_sf

UNKNOWN = "the assignment of values to iterations is unknown"


@dataclass(frozen=True, slots=True)
class ResponseTests:
    """The tests of one response. `contrasts`: sums of aliased interactions, and interactions of more than two factors.
    `split`, `anova`, `lenth`: None if the analysis does not apply.
    """

    effects: Mapping[Effect, EffectTest]
    untested: Mapping[Effect, str]
    split: SplitPlot | None
    ranked: Blocked
    anova: Anova | None
    lenth: LenthResult | None
    contrasts: tuple[ContrastResult, ...]


def tests_of(part: ResponseSlice, tests: int, confidence: float) -> ResponseTests:
    """Test the effects of a response. `tests`: the number of tests that share one error rate. The method is signed
    ranks within iterations if there are enough iterations (`ranks_decide`); otherwise the analysis of variance of
    single values, or Lenth's method if no treatment has two values. Effects that these cannot test, for example because
    all values of each treatment are equal, are tested by ranks if ranks can reject. With several batches, the
    split-plot analysis decides.
    """
    split, rows, estimates = plots.whole_plots(part)
    values = effects.matrix(part)
    ranked = _ranked(part, values)
    together = part.numbers.size // max(1, np.unique(part.levels[:, part.hard], axis=0).shape[0])
    few = part.data.randomised or not ranks_decide(together, ranked.blocks, tests, part.alpha)
    found = {} if few else dict(ranked.effects)
    untested = dict(ranked.untested)
    several = np.unique(part.series.batch).size > 1
    single, table, sums = None, None, tuple[ContrastResult, ...]()
    able = [each for each in _every(part) if part.assessed.effect(*each).ok and not set(each) & set(part.hard)]
    open_ = [each for each in able if each not in found]
    if open_:
        table = _anova(part)
        contrast = contrasts(part.levels) if table.error != REPEATS and not part.hard and not several else ()
        single, ours, sums = _lenth(part, contrast, confidence)
        found |= ours if single else {each: table.effects[each] for each in open_ if each in table.effects}
        untested |= table.untested
        if not part.data.randomised and tests * smallest_p(ranked.blocks) < part.alpha:
            found = {each: ranked.effects[each] for each in open_ if each in ranked.effects} | found
    found |= plots.plot_tests(split, rows, estimates, ranked.effects, part)
    untested |= plots.untested(split, rows)
    if single is None and not part.hard and not several:
        sums = _sums(part, values, None if few else ranked, table)
    return ResponseTests(found, untested, split, ranked, table, single, sums)


def _every(part: ResponseSlice) -> list[Effect]:
    varied = [each for each in range(part.levels.shape[1]) if np.unique(part.levels[:, each]).size > 1]
    return [*((each,) for each in varied), *combinations(varied, 2)]


def _ranked(part: ResponseSlice, values: Values) -> Blocked:
    if not part.data.randomised:
        return blocked(part.levels, values, part.hard)
    return Blocked(0, 0, {}, dict.fromkeys(_every(part), UNKNOWN))


def _anova(part: ResponseSlice) -> Anova:
    series = part.series
    rows = np.isin(series.treatment, part.numbers)
    levels = np.array(part.data.treatments, dtype=np.intp)[series.treatment[rows]]
    blocks = series.batch[rows].astype(np.int64)
    if not part.data.randomised:
        blocks = blocks * (int(series.iteration.max(initial=0)) + 1) + series.iteration[rows]
    return anova(part.names, levels, series.value[rows], blocks if np.unique(blocks).size > 1 else None)


def _lenth(
    part: ResponseSlice, every: Sequence[Contrast], confidence: float
) -> tuple[LenthResult | None, dict[Effect, EffectTest], tuple[ContrastResult, ...]]:
    made = lenth(every, part.means, confidence)
    if made is None:
        return None, {}, ()
    tests, sums, shown = {}, [], []
    for contrast, estimate, p, family in zip(every, made.estimates, made.p, made.p_family, strict=True):
        test = EffectTest(LENTH, estimate, made.pse, estimate / made.pse, 1, p, p, None, None, (), family)
        effect = _effect_of(contrast)
        if effect is not None:
            tests[effect] = test
            shown.append(LenthContrast(effect_name(part.names, effect), estimate, p, family))
        else:
            sums.append(_contrast(part, contrast, test))
            shown.append(LenthContrast(sums[-1].name, estimate, p, family))
    return LenthResult(made.pse, made.margin, tuple(shown)), tests, tuple(sums)


def _effect_of(contrast: Contrast) -> Effect | None:
    """The main effect in a contrast, or its only interaction of two factors; None if it has neither."""
    first = contrast.effects[0][0]
    if len(first) == 1:
        return first
    return first if len(first) == 2 and len(_pairs(contrast)) == 1 else None


def _pairs(contrast: Contrast) -> list[tuple[Effect, int]]:
    """The interactions of the smallest order in a contrast, with their signs."""
    order = len(contrast.effects[0][0])
    return [each for each in contrast.effects if len(each[0]) == order]


def _contrast(part: ResponseSlice, contrast: Contrast, test: EffectTest) -> ContrastResult:
    """The contrast with its test, named by its effects of the smallest order and their signs."""
    lowest = _pairs(contrast)
    names = [effect_name(part.names, effect) for effect, _ in lowest]
    signs = ["" if sign > 0 else "-" for _, sign in lowest]
    name = names[0] + "".join(f" {sign or '+'} {each}" for sign, each in zip(signs[1:], names[1:], strict=True))
    size = float(contrast.signs @ part.means) * 2 / part.means.size
    return ContrastResult(
        effect=size, signed=True, testable=True, magnitude=abs(size), why=None, test=test, p=test.p,
        name=name, effects=tuple(names),
    )  # fmt: skip


def _sums(
    part: ResponseSlice, values: Values, ranked: Blocked | None, table: Anova | None
) -> tuple[ContrastResult, ...]:
    """The tests of sums of two-factor interactions that are aliased with each other."""
    chains = [each for each in contrasts(part.levels, 2) if len(each.effects[0][0]) == 2 and len(_pairs(each)) > 1]
    errors = [row for row in table.rows if row.source == WITHIN_ERROR and row.df and row.ss] if table else []
    made = []
    for chain in chains:
        test: EffectTest | None = None
        if ranked is not None:
            test = tested_contrast(chain.signs, values)
        elif errors and not np.isnan(values).any():
            error, weights = errors[0], chain.signs * 2 / chain.signs.size
            counts = np.bincount(part.series.treatment, minlength=len(part.data.treatments))[part.numbers]
            estimate = float(weights @ part.means)
            se = sqrt((error.ms or 0.0) * float((weights**2 / counts).sum()))
            p = f_sf((estimate / se) ** 2, 1, error.df)
            test = EffectTest(ANOVA, estimate, se, (estimate / se) ** 2, 1, p, p, None, error.df)
        if test is not None:
            made.append(_contrast(part, chain, test))
    return tuple(made)
