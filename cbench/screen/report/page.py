"""Render the report of a screening experiment as one self-contained HTML page, verdict first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cbench.report.page import Figure, Table, render
from cbench.report.svg import shortened
from cbench.screen.analysis.result import EffectResult, ResponseResult, SampleResult, ScreenResult, StudyResult
from cbench.screen.analysis.verdict import amount, corrected_by, tested_by
from cbench.screen.data.data import Data, ResponseSeries
from cbench.screen.report import figures, figures_effects, figures_sizes, page_tables
from cbench.screen.report.figures import AxisNames

MOST_DRAWN = 12
"""The maximum number of responses with figures; further responses have only tables."""
NAMED = 3


@dataclass(frozen=True, slots=True)
class ResponseSection:
    """The section of the page for one response. `material`: the table of practical significance, None if there is none;
    `material_said`: a summary of this table, or the reason why there is none.
    """

    key: str
    name: str
    row: ResponseResult
    effect_figures: Sequence[Figure]
    treatments: Table
    sample_figures: Sequence[Figure]
    sizes: Figure | None
    material_said: str
    material: Table | None
    split_plot: Table | None
    boots: Table
    hosts: tuple[Table, Table] | None


def page(result: ScreenResult, data: Data) -> str:
    """The page as HTML text. Equal arguments yield equal text."""
    rows = page_tables.every_effect(result)
    return render(
        "screen/screen.html",
        result=result,
        tested_by=tested_by(result),
        corrected_by=corrected_by(result),
        hard=any(factor.hard for factor in result.design.factors),
        effect_tables=page_tables.effects(rows),
        not_tested=page_tables.not_tested(rows),
        means=_means(result, data),
        responses=[
            _response(result, data, series, f"r{number}", number < MOST_DRAWN)
            for number, series in enumerate(data.series)
        ],
        set_table=page_tables.sets(result),
        set_effects=page_tables.effects_by_set(result),
        about=[*_design(result), *_columns(result), *data.about],
    )


def _columns(result: ScreenResult) -> list[tuple[str, str]]:
    """The role of each column of the analyzed table, as pairs for the page."""
    return [(f"column {name}", role) for name, role in result.design.columns.items()]


def _names(data: Data, row: ResponseResult) -> AxisNames:
    levels = [
        [factor.levels[level] for factor, level in zip(data.factors, treatment, strict=True)]
        for treatment in data.treatments
    ]
    return AxisNames(levels, [factor.name for factor in data.factors], row.unit)


def _means(result: ScreenResult, data: Data) -> list[Figure]:
    """A figure of the means for each workload; panels with the same unit share a scale."""
    workloads: dict[str, list[tuple[str, ResponseResult]]] = {}
    for name, row in list(result.responses.items())[:MOST_DRAWN]:
        if any(each.mean is not None for each in row.treatments):
            workloads.setdefault(row.workload, []).append((name, row))
    most, many = figures.MOST_SHOWN, max((len(row.treatments) for row in result.responses.values()), default=0)
    return [
        _figure(
            f"means{number}",
            partial(figures.means, panels=[(name, row.treatments, _names(data, row)) for name, row in rows]),
            f"Means with intervals{': ' + workload if workload else ''}",
            f"Intervals at {100 * result.confidence:.4g} %. Panels with the same unit share a scale; panels without a "
            "unit have separate scales. Intervals narrower than a pixel are omitted; red marks questionable treatments."
            + (f" The first {most} of {many:,} treatments." if many > most else ""),
            " ".join(_extremes(name, row) for name, row in rows),
        )
        for number, (workload, rows) in enumerate(workloads.items())
    ]


def _figure(key: str, draw: Callable[[str], str], title: str, explained: str, shown: str) -> Figure:
    """A figure over the whole width of the page. `draw` receives the key and returns the SVG."""
    return Figure(key, draw(key), title, explained, shown, broad=True)


def _extremes(name: str, row: ResponseResult) -> str:
    known = [(each.mean, each.name) for each in row.treatments if each.mean is not None]
    lowest, highest = (choose(known, key=lambda pair: pair[0]) for choose in (min, max))
    ends = [f"{amount(mean, row.unit)} ({shortened(treatment, 40)})" for mean, treatment in (lowest, highest)]
    return f"{shortened(name, 40)}: from {ends[0]} to {ends[1]}."


def _response(result: ScreenResult, data: Data, series: ResponseSeries, key: str, drawn: bool) -> ResponseSection:
    row = result.responses[series.name]
    drawn = drawn and not row.why
    said, material = page_tables.material(row)
    return ResponseSection(
        key=key,
        name=series.name,
        row=row,
        effect_figures=(*_size_figures(result, row, key), *_effect_figures(data, row, key)) if drawn else (),
        treatments=page_tables.treatments(row, result.confidence),
        sample_figures=_sample_figures(result, data, series, row, key) if drawn else (),
        sizes=_sizes(result, row, key) if drawn and row.studies else None,
        material_said=said,
        material=material,
        split_plot=page_tables.split_plot(row.split_plot) if row.split_plot else None,
        boots=page_tables.boots(row.boots),
        hosts=page_tables.hosts(row.hosts, row.unit) if row.hosts else None,
    )


def _size_figures(result: ScreenResult, row: ResponseResult, key: str) -> list[Figure]:
    """Figures of effects by size, and half-normal plots for a design without replicates."""
    unit = row.unit or "value"
    tested = [(name, each) for name, each in figures_sizes.by_size(row) if each.effect is not None]
    if not tested:
        return []
    most = figures_sizes.MOST_BARS
    drawn = [
        _figure(
            f"{key}-pareto",
            partial(figures_sizes.pareto, row=row, unit=unit),
            "Effects by size",
            f"Magnitudes with intervals at {100 * result.confidence:.4g} %; significant effects in a stronger color."
            + (f" The largest {most} of {len(tested)}." if len(tested) > most else ""),
            f"{significant_said([each for _, each in tested])} Largest: "
            + ", ".join(f"{name} {amount(each.fair, row.unit, each.signed)}" for name, each in tested[:NAMED])
            + ".",
        )
    ]
    if row.lenth is not None:
        family = sum(each.p_family < result.alpha for each in row.lenth.contrasts)
        drawn.append(
            _figure(
                f"{key}-half-normal",
                partial(figures_sizes.half_normal, lenth=row.lenth, unit=unit, alpha=result.alpha),
                "Half-normal plot",
                "Magnitudes of all contrasts against the magnitudes expected of inert contrasts; the slope of the "
                "dashed line is Lenth's pseudo standard error. Inert contrasts lie along the line, real contrasts "
                "above it.",
                f"{family} of {len(row.lenth.contrasts)} contrasts are significant, at one error rate for all.",
            )
        )
    return drawn


def _effect_figures(data: Data, row: ResponseResult, key: str) -> list[Figure]:
    unit = row.unit or "value"
    drawn = []
    known = [(name, each) for name, each in row.effects.items() if each.effect is not None]
    if known:
        known.sort(key=lambda item: -(item[1].magnitude or 0.0))
        said = [f"{name} {amount(each.fair, row.unit, each.signed)}" for name, each in known[:NAMED]]
        factors = {factor.name: factor.levels for factor in data.factors}
        drawn.append(
            _figure(
                f"{key}-main",
                partial(figures_effects.main_effects, row=row, unit=unit, factors=factors),
                "Main effects",
                "The mean of all treatments with each level; all factors share one axis. The horizontal line is the "
                "overall mean.",
                f"Largest: {', '.join(said)}.",
            )
        )
    if figures_effects.drawable(row.interactions):
        drawn.append(_interactions(row, key, unit))
    if any(row.blocks.values()):
        drawn.append(_blocks(row, key, unit))
    return drawn


def _interactions(row: ResponseResult, key: str, unit: str) -> Figure:
    known = [each for each in row.interactions if each.magnitude is not None]
    shown = len(figures_effects.drawable(known))
    largest = sorted(known, key=lambda each: -(each.magnitude or 0.0))[:NAMED]
    said = [f"{each.name} {amount(each.magnitude or 0.0, row.unit)}" for each in largest]
    return _figure(
        f"{key}-pairs",
        partial(figures_effects.interactions, rows=row.interactions, unit=unit),
        "Interactions of two factors",
        "Lines that are not parallel show an interaction. All panels share one axis; ● marks significant interactions; "
        "cells without treatments are blank."
        + (f" The {shown} of {len(known)} with the smallest p." if shown < len(known) else ""),
        f"{significant_said(known)} Largest: {', '.join(said)}.",
    )


def significant_said(effects: Sequence[EffectResult]) -> str:
    """A sentence that counts the significant effects among those tested."""
    tested = [each for each in effects if each.p is not None]
    if not tested:
        return "Not tested."
    return f"Significant: {sum(each.significant for each in tested):,} of {len(tested):,} tested."


def _blocks(row: ResponseResult, key: str, unit: str) -> Figure:
    plots = {name: each for name, each in row.blocks.items() if each}
    said = [
        f"{name}: {each.agreeing} of {each.n} boxes with the same order"
        + (f" (chance {each.chance:.2g})" if each.consistent else "")
        for name, each in plots.items()
    ]
    most = figures_effects.MOST_FACTORS
    return _figure(
        f"{key}-blocks",
        partial(figures_effects.block_plots, plots=plots, unit=unit),
        "Block plots",
        "Each box is one combination of the other factors; the marks in it are the means at the levels of the named "
        "factor. A red ring marks a questionable treatment; a dotted box lacks a level and does not count."
        + (f" The first {most} of {len(plots)} factors." if len(plots) > most else ""),
        "; ".join(said) + ".",
    )


def _sample_figures(
    result: ScreenResult, data: Data, series: ResponseSeries, row: ResponseResult, key: str
) -> list[Figure]:
    rows = [each for each in row.treatments if each.n]
    names = _names(data, row)
    values = [series.of(each.treatment) for each in rows]
    timed = [series.timed(each.treatment) for each in rows]
    alike = sum(each.alike for each in rows)
    said = f"{sum(each.size for each in values):,} values of {len(rows):,} treatments"
    said += f"; within each of {alike:,} treatments, all values are equal." if alike else "."
    most = figures.MOST_SHOWN
    first = f" The first {most} of {len(rows):,} treatments." if len(rows) > most else ""
    return [
        _figure(
            f"{key}-values",
            partial(figures.samples, rows=rows, values=values, label=names, seed=result.seed),
            "Every value",
            "Each point is a value, shifted sideways at random within the silhouette of its distribution. The line is "
            f"the mean; red marks questionable treatments.{first}",
            said,
        ),
        _figure(
            f"{key}-time",
            partial(figures.in_time, rows=rows, values=timed, label=names),
            "Values over time",
            f"Each value against the number of its trial in the experiment, which shows clusters and drift.{first}",
            said,
        ),
        *_residuals(series, rows, row.unit or "value", key),
    ]


def _residuals(series: ResponseSeries, rows: Sequence[SampleResult], unit: str, key: str) -> list[Figure]:
    """The figure of residuals; [] if no treatment has two values."""
    numbers = [each.treatment for each in rows if each.n > 1]
    if not numbers:
        return []
    return [
        _figure(
            f"{key}-residuals",
            partial(figures_sizes.residuals, series=series, numbers=numbers, unit=unit),
            "Residuals by trial",
            "Each value minus the mean of its treatment, in the order of the trials: this shows drift and jumps, "
            "regardless of the treatment. In a table without iterations, the order is that of its rows.",
            f"{sum(each.n for each in rows if each.n > 1):,} values of {len(numbers):,} treatments.",
        )
    ]


def _sizes(result: ScreenResult, row: ResponseResult, key: str) -> Figure:
    middle = row.studies[len(row.studies) // 2]
    return _figure(
        f"{key}-sizes",
        partial(figures_effects.sizes, row=row, unit=row.unit, confidence=result.confidence),
        "Intervals by sample size",
        f"Left: widths of intervals from samples of {shortened(middle.name, 40)}; where they are below an effect's "
        "line, samples of this size show the effect. Right: the share of intervals that contain the mean of all "
        "values, for each treatment studied.",
        coverage_said(row.studies),
    )


def coverage_said(studies: Sequence[StudyResult]) -> str:
    """A sentence about the lowest coverage in the figure, by BCa if available."""
    every = [(study.name, each) for study in studies for each in study.sizes]
    covers = [item for item in every if item[1].method == "BCa"] or every
    name, low = min(covers, key=lambda item: item[1].coverage)
    which = f" ({shortened(name, 40)})" if len(studies) > 1 else ""
    return f"Lowest coverage by {low.method}: {100 * low.coverage:.1f} % at n = {low.n:,}{which}."


def _design(result: ScreenResult) -> list[tuple[str, str]]:
    design = result.design
    doubtful = [f"{each.name}: {each.questionable}" for each in design.treatments if each.questionable]
    rows = [
        (factor.name, ", ".join(factor.levels) + (" (changes between batches only)" if factor.hard else ""))
        for factor in design.factors
    ]
    excluded = f"; {design.excluded:,} combinations of levels were not run" if design.excluded else ""
    rows.append(("treatments", f"{len(design.treatments):,}{excluded}"))
    batches = len(design.batches)
    rows.append(("iterations", f"{design.iterations:,} in {batches:,} {'batch' if batches == 1 else 'batches'}"))
    rows += [("questionable", "; ".join(doubtful))] if doubtful else []
    lacking = [f"{name} of {', '.join(row.unobtainable)}" for name, row in result.responses.items() if row.unobtainable]
    return rows + ([("unobtainable", "; ".join(lacking))] if lacking else [])
