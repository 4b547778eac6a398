"""Apply abridgments, which are named selections of treatments, and determine the effects that each can still test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.plots import plots_of
from cbench.screen.analysis.result import AliasedEffect, EmptyCells, TreatmentSet, UntestableEffect
from cbench.screen.data.data import COMPLETE, UNQUESTIONED, Data, Filter
from cbench.screen.design.testability import Assessment, assess
from quiet import UsageError


def every_filter(data: Data) -> list[Filter]:
    """All filters: the complete design, the design without questionable treatments (if any), and the abridgments."""
    everything = np.ones(len(data.treatments), dtype=bool)
    known = [Filter(COMPLETE, "all treatments", everything)]
    if data.questionable:
        keep = everything.copy()
        keep[list(data.questionable)] = False
        known.append(Filter(UNQUESTIONED, "minus the questionable ones", keep))
    return [*known, *data.filters]


def chosen(data: Data, options: ScreenOptions) -> Filter:
    """The filter that an analysis uses. Raises UsageError for an unknown name, or if the filter keeps no treatment."""
    known = {each.name: each for each in every_filter(data)}
    name = options.abridgment
    if name is not None and name not in known:
        raise UsageError(
            f"--abridgment {name}: unknown; the data define {', '.join(each.name for each in data.filters) or 'none'}"
        )
    used = known[name or COMPLETE]
    if options.exclude and data.questionable and name != UNQUESTIONED:
        keep = used.keep & known[UNQUESTIONED].keep
        words = "minus the questionable ones" if name is None else f"{used.words}; minus the questionable ones"
        used = Filter(UNQUESTIONED if name is None else f"{used.name}, {UNQUESTIONED}", words, keep)
    for option, texts in (("--only", options.only), ("--minus", options.minus)):
        if texts:
            both = f"{option[2:]} {', '.join(texts)}"
            both = both if used.name == COMPLETE else f"{used.name}; {both}"
            used = Filter(both, both, used.keep & _keep(data, option, texts))
        if not used.keep.any():
            raise UsageError(f"{used.name}: leaves no treatment; choose a wider filter")
    return used


def _keep(data: Data, option: str, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Flags for the treatments that the values of `--only` or `--minus`, such as "fp=0 prf=1", select.

    Raises UsageError for a factor or level that does not exist.
    """
    factors = {factor.name: (number, factor.levels) for number, factor in enumerate(data.factors)}
    hit = np.zeros(len(data.treatments), dtype=bool)
    levels = np.array(data.treatments, dtype=np.intp).reshape(len(data.treatments), len(data.factors))
    for text in texts:
        if not text.strip():
            raise UsageError(f"{option}: the condition is empty; write FACTOR=LEVEL")
        mine = np.ones(len(data.treatments), dtype=bool)
        for name, wanted in _conditions(text, factors):
            if name not in factors:
                raise UsageError(f"{option} {text}: no factor {name}; the factors are {', '.join(factors)}")
            number, names = factors[name]
            if not wanted:
                raise UsageError(f"{option} {text}: write FACTOR=LEVEL; the levels of {name} are {', '.join(names)}")
            meant = names if wanted == ["*"] else wanted
            if wrong := [each for each in meant if each not in names]:
                raise UsageError(
                    f"{option} {text}: {name} has no level {wrong[0]!r}; its levels are {', '.join(names)}"
                )
            mine &= np.isin(levels[:, number], [names.index(each) for each in meant])
        hit |= mine
    return hit if option == "--only" else ~hit


def _conditions(text: str, factors: Mapping[str, tuple[int, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """The conditions of a text such as "fp=0 prf=1|2" or "fp=0, prf=1,2": factors, each with its levels.

    A level may contain spaces and commas if it is the only level of its condition.
    """
    name, _, level = text.strip().partition("=")
    if name in factors and level in factors[name][1]:
        return [(name, [level])]
    starts = "|".join(map(re.escape, sorted(factors, key=len, reverse=True)))
    unknown, *parts = re.split(rf"(?:^|[\s,]+)({starts})=", text.strip())
    found: list[tuple[str, list[str]]] = [(unknown.partition("=")[0], [])] if unknown else []
    for name, level in zip(parts[::2], parts[1::2], strict=True):
        levels = [level] if level in factors[name][1] else [each for each in re.split(r"[\s,|]+", level) if each]
        found += [(each.partition("=")[0], []) for each in levels if "=" in each and each not in factors[name][1]]
        found.append((name, levels))
    return found


def judged(data: Data, keep: NDArray[np.bool_]) -> Assessment | None:
    """The tests that the kept treatments allow; None if no treatment is kept."""
    treatments = [each for each, kept in zip(data.treatments, keep.tolist(), strict=True) if kept]
    if not treatments:
        return None
    plots = plots_of(data)
    return assess(data.factors, treatments, plots if any(factor.hard for factor in data.factors) else 1)


def treatment_set(data: Data, each: Filter, assessment: Assessment | None) -> TreatmentSet:
    """A filter with its balance and aliasing."""
    many = int(each.keep.sum())
    if assessment is None:
        return TreatmentSet(each.name, each.words, many, {}, None, None, (), ("no treatment is left",))
    factors = data.factors
    return TreatmentSet(
        name=each.name,
        words=each.words,
        treatments=many,
        counts={
            factor.name: dict(zip(factor.levels, row, strict=True))
            for factor, row in zip(factors, assessment.counts, strict=True)
        },
        balanced=assessment.balanced,
        unbalanced=tuple(
            factor.name for factor, good in zip(factors, assessment.balanced_factors, strict=True) if not good
        ),
        orthogonal=assessment.orthogonal,
        aliased=tuple(
            AliasedEffect(effect.name, effect.aliases)
            for effect in assessment.effects
            if effect.aliases and not effect.ok
        ),
        untestable=tuple(UntestableEffect(effect.name, effect.words) for effect in assessment.effects if not effect.ok),
        empty_cells=tuple(
            EmptyCells(
                (factors[first].name, factors[second].name),
                tuple((factors[first].levels[a], factors[second].levels[b]) for a, b in cells),
            )
            for (first, second), cells in assessment.empty.items()
            if cells
        ),
        says=assessment.words,
        seen_with=tuple(
            AliasedEffect(effect.name, effect.aliases)
            for effect in assessment.effects
            if effect.aliases and effect.ok and len(effect.factors) == 1
        ),
    )
