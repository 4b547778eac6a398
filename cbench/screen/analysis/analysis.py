"""The analysis of a screening experiment as one plain object, for programs and for whatever shows it.

The method is that of D. Flater, NIST Technical Note 1855 (2014), sections 4.6 and 4.7; docs/screen-analysis.md has
every key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any

import numpy as np

from cbench.screen.analysis import effects, samples, verdict
from cbench.screen.analysis import filters as analysis_filters
from cbench.screen.analysis import plots as analysis_plots
from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.analysis.samples import IntervalOptions, Studying
from cbench.screen.data.data import COMPLETE, Data, Filter, ResponseSeries
from cbench.screen.stats.splitplot import SplitPlot
from cbench.stats import multiple_testing
from cbench.stats.etalon import FIRST_ALPHA

Row = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """`alpha`, `confidence`, `seed`: None for the experiment's own. `abridgment`: the name of a filter; `only` and
    `minus`: filters of the command line; `exclude`: leave questionable treatments out."""

    alpha: float | None = None
    confidence: float | None = None
    seed: int | None = None
    abridgment: str | None = None
    only: Sequence[str] = ()
    minus: Sequence[str] = ()
    exclude: bool = False
    digits: int | None = None
    studying: Studying = field(default_factory=Studying)


@np.errstate(over="ignore", invalid="ignore")
def analyse(data: Data, options: ScreenOptions, progress: Progress = lambda words: None) -> Row:
    """The whole result; numbers that are not known are None. Raises UsageError for a filter that does not exist."""
    alpha = data.alpha if options.alpha is None else options.alpha
    confidence = data.confidence if options.confidence is None else options.confidence
    how = IntervalOptions(confidence, data.seed if options.seed is None else options.seed, options.digits)
    chosen = _filter(data, options)
    made: Row = {
        "factors_matter": False,
        "alpha": alpha,
        "confidence": confidence,
        "seed": how.seed,
        "filter": {"name": chosen.name, "words": chosen.words, "treatments": int(chosen.keep.sum())},
        "correction": multiple_testing.HOLM,
        "design": _design(data, chosen),
        "responses": {},
    }
    parts: dict[str, ResponseSlice] = {}
    deltas = samples.tolerances([each.kept(chosen.keep) for each in data.series], confidence)
    for series, delta in zip(data.series, deltas, strict=True):
        progress(series.name)
        mine = replace(how, delta=delta, first_alpha=min(FIRST_ALPHA, alpha / (chosen.keep.sum() * len(data.series))))
        made["responses"][series.name], found = _response(data, series, chosen, alpha, mine, options)
        if found is not None:
            parts[series.name] = found
    _decide(made, parts, alpha)
    studying = options.studying
    if studying.treatments is None:
        share = samples.MOST_STUDIED // max(len(parts), 1)
        studying = replace(studying, treatments=min(3, max(1, share)))
    for name, found in parts.items():
        progress(f"{name}: samples of other sizes")
        _study(made["responses"][name], found, how, studying)
    made["factors_matter"] = any(each["significant"] for row in made["responses"].values() for each in _effects(row))
    finite = finite_only(made)
    finite["verdict"] = verdict.verdict(finite)
    return dict(finite)


def _filter(data: Data, options: ScreenOptions) -> Filter:
    found = analysis_filters.chosen(data, options.abridgment, options.exclude)
    for option, texts in (("--only", options.only), ("--minus", options.minus)):
        if texts:
            more = analysis_filters.ad_hoc(data, option, texts)
            name = more.name if found.name == COMPLETE else f"{found.name}; {more.name}"
            found = Filter(name, name, found.keep & more.keep)
            analysis_filters.check(found)
    return found


def _design(data: Data, chosen: Filter) -> Row:
    filters = analysis_filters.every_filter(data)
    if chosen.name not in [each.name for each in filters]:
        filters.append(chosen)
    blocks = [np.unique(np.stack([each.batch, each.iteration]), axis=1).shape[1] for each in data.series]
    return {
        "name": data.name,
        "factors": [
            {"name": factor.name, "levels": list(factor.levels), "hard": factor.hard} for factor in data.factors
        ],
        "treatments": [
            {
                "number": number,
                "name": data.label(number),
                "levels": {
                    factor.name: factor.levels[level] for factor, level in zip(data.factors, levels, strict=True)
                },
                "questionable": data.questionable.get(number),
                "kept": bool(chosen.keep[number]),
            }
            for number, levels in enumerate(data.treatments)
        ],
        "excluded": data.excluded,
        "batches": list(data.batches),
        "iterations": max(blocks, default=0),
        "sets": [analysis_filters.shown(data, each, analysis_filters.judged(data, each.keep)) for each in filters],
        "warnings": list(data.warnings),
    }


def _response(
    data: Data, series: ResponseSeries, chosen: Filter, alpha: float, how: IntervalOptions, options: ScreenOptions
) -> tuple[Row, ResponseSlice | None]:
    """One response with the filter's treatments; no part where it has no values."""
    many = len(data.treatments)
    whole = samples.means(series, many)
    keep = chosen.keep & ~np.isin(np.arange(many), list(series.unobtainable))
    kept = series.kept(keep)
    means = np.where(keep, whole, nan)
    missing = [number for number in np.flatnonzero(keep).tolist() if np.isnan(means[number])]
    made: Row = {
        "workload": series.workload,
        "response": series.response,
        "unit": series.unit,
        "better": series.better,
        "n": int((~np.isnan(kept.value)).sum()),
        "failed": int(np.isnan(kept.value).sum()),
        "unobtainable": [data.label(number) for number in sorted(series.unobtainable)],
        "missing": [data.label(number) for number in missing],
        "treatments": samples.samples(data, kept, keep, how),
        "sets": _effects_by_filter(data, series, whole),
    }
    judged = analysis_filters.judged(data, keep & ~np.isnan(means))
    if judged is None:
        return made | _nothing("it has no values"), None
    part = effects.part(data, kept, means, alpha, judged)
    plots = analysis_plots.whole_plots(part)
    made |= {
        "why": None,
        "effects": effects.effects(part),
        "interactions": effects.interactions(part),
        "blocks": effects.block_plots(part, options.exclude),
        "split_plot": analysis_plots.shown_plots(plots),
        "boots": analysis_plots.boots(part),
    }
    _tests(made, part, plots)
    return made, part


def _nothing(why: str) -> Row:
    return {
        "why": why,
        "effects": {},
        "interactions": [],
        "blocks": {},
        "split_plot": None,
        "boots": [],
        "blocks_used": 0,
        "blocks_dropped": 0,
        "material": None,
        "studies": [],
    }


def _effects_by_filter(data: Data, series: ResponseSeries, means: Any) -> Row:
    """The main effects that each filter would give: name of the filter, name of the factor."""
    made: Row = {}
    for each in analysis_filters.every_filter(data):
        left = np.where(each.keep, means, nan)
        judged = analysis_filters.judged(data, ~np.isnan(left))
        if judged is not None:
            part = effects.part(data, series, left, 0.5, judged)
            found = effects.effects(part)
            made[each.name] = {
                name: {key: row[key] for key in ("effect", "adjusted", "signed", "testable")}
                for name, row in found.items()
            }
    return made


def _tests(made: Row, part: ResponseSlice, plots: SplitPlot | None) -> None:
    """Put the test of each effect beside it; or why there is none."""
    found = effects.tested(part)
    ranks = {each.factors: effects.shown_test(each) for each in found.effects}
    tests = ranks | analysis_plots.plot_tests(plots, ranks, part.hard)
    why = dict(found.untested) | analysis_plots.untested(plots)
    made["blocks_used"], made["blocks_dropped"] = found.blocks, found.dropped
    numbers = {name: number for number, name in enumerate(part.names)}
    rows: list[tuple[tuple[int, ...], Row]] = [((numbers[name],), row) for name, row in made["effects"].items()]
    rows += [((numbers[row["factors"][0]], numbers[row["factors"][1]]), row) for row in made["interactions"]]
    for factors, row in rows:
        test = tests.get(factors)
        row["test"] = test
        row["p"] = None if test is None else test["p"]
        if test is None and not row["why"]:
            row["why"] = why.get(factors) or "there are too few values to test it"


def _decide(made: Row, parts: Mapping[str, ResponseSlice], alpha: float) -> None:
    """One family: all effects of all responses, by Holm."""
    every = [each for name in parts for each in _effects(made["responses"][name])]
    p = [nan if each["p"] is None else each["p"] for each in every]
    adjusted = multiple_testing.adjusted(p, multiple_testing.HOLM).tolist() if p else []
    for each, value in zip(every, adjusted, strict=True):
        each["p_adjusted"] = None if each["p"] is None else float(value)
        each["significant"] = bool(each["p"] is not None and value < alpha)
    made["tests"] = sum(each["p"] is not None for each in every)


def _effects(row: Mapping[str, Any]) -> list[Row]:
    return [*row["effects"].values(), *row["interactions"]]


def _study(row: Row, part: ResponseSlice, how: IntervalOptions, studying: Studying) -> None:
    """What samples of other sizes would show of the effects."""
    found = samples.studies(part.series, part.numbers.tolist(), how.confidence, how.seed, studying)
    row["studies"] = samples.shown_studies(part.data, found)
    row["material"] = samples.materiality(_material_effects(row), row["treatments"], found)


def _material_effects(row: Row) -> dict[str, float]:
    """Main effects that can be told from all others; 0 where all values are one, whatever rounding makes of it."""
    told = {name: each for name, each in row["effects"].items() if each["testable"] and each["effect"] is not None}
    values = [each[end] for each in row["treatments"] if each["n"] for end in ("min", "max")]
    if values and min(values) == max(values):
        return dict.fromkeys(told, 0.0)
    return {name: verdict.fair(each) for name, each in told.items()}


def finite_only(made: Any) -> Any:
    """The same with None in place of numbers that are none."""
    if isinstance(made, dict):
        return {key: finite_only(each) for key, each in made.items()}
    if isinstance(made, (list, tuple)):
        return [finite_only(each) for each in made]
    return None if isinstance(made, float) and not isfinite(made) else made
