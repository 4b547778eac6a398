"""The report of a screening experiment: one HTML page that needs nothing else, verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cbench.report.page import style
from cbench.report.page_parts import facts, figure, paragraph, section
from cbench.report.svg import shortened
from cbench.screen.analysis.verdict import amount
from cbench.screen.data.data import Data, ResponseSeries
from cbench.screen.report import figures, figures_effects, page_tables

Row = Mapping[str, Any]
MOST_DRAWN = 12
"""Responses that have figures of their own; of more the others have their tables."""
NAMED = 3


def page(made: Row, data: Data) -> str:
    """The whole page: the same bytes for the same data."""
    name = escape(data.name)
    parts = {
        "effects": ("Effects", page_tables.effects(made)),
        "means": ("Means with intervals", _means(made, data)),
    }
    for number, series in enumerate(data.series):
        key = f"r{number}"
        parts[key] = (series.name, _response(made, data, series, key, number < MOST_DRAWN))
    parts |= {
        "sets": ("Choices of treatments", page_tables.sets(made)),
        "design": ("The experiment", _design(made, data)),
        "method": ("How this was computed", page_tables.method(made)),
    }
    links = " · ".join(f'<a href="#{key}">{escape(title)}</a>' for key, (title, body) in parts.items() if body)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}: which factors matter?</title>\n<style>\n{style()}</style>\n</head>\n<body>\n"
        f"<h1>{name}: which factors matter?</h1>\n{_verdict(made)}<nav>{links}</nav>\n"
        f"{''.join(section(key, title, body) for key, (title, body) in parts.items())}</body>\n</html>\n"
    )


def _verdict(made: Row) -> str:
    lines = "".join(paragraph(line, "beware" if line.startswith("beware:") else "") for line in made["verdict"])
    return f'<section class="verdict {"yes" if made["factors_matter"] else "no"}">\n{lines}</section>\n'


def _label(data: Data, row: Row) -> dict[str, Any]:
    """What the figures of samples name their axes by."""
    levels = [
        [factor.levels[level] for factor, level in zip(data.factors, treatment, strict=True)]
        for treatment in data.treatments
    ]
    factors = [factor.name for factor in data.factors]
    return {"levels": levels, "factors": factors, "value": row["unit"] or "value", "unit": row["unit"]}


def _means(made: Row, data: Data) -> str:
    """A figure for each workload, whose panels of one unit have one scale."""
    workloads: dict[str, list[str]] = {}
    for name, row in list(made["responses"].items())[:MOST_DRAWN]:
        if any(each["mean"] is not None for each in row["treatments"]):
            workloads.setdefault(row["workload"], []).append(name)
    text = ""
    for number, (workload, names) in enumerate(workloads.items()):
        rows = [made["responses"][name] for name in names]
        panels = [(name, row["treatments"], _label(data, row)) for name, row in zip(names, rows, strict=True)]
        key = f"means{number}"
        text += figure(
            key,
            figures.means(key, panels),
            f"Means with intervals{': ' + workload if workload else ''}",
            f"At {100 * made['confidence']:.4g} %; panels of one unit span the same height, without a unit each its "
            f"own; intervals narrower than a pixel are left away, red is questionable.{_first(made)}",
            " ".join(_lowest(name, row) for name, row in zip(names, rows, strict=True)),
            broad=True,
        )
    return text


def _first(made: Row) -> str:
    many = max((len(row["treatments"]) for row in made["responses"].values()), default=0)
    return f" The first {figures.MOST_SHOWN} of {many:,} treatments." if many > figures.MOST_SHOWN else ""


def _lowest(name: str, row: Row) -> str:
    known = [each for each in row["treatments"] if each["mean"] is not None]
    low, high = (choose(known, key=lambda each: float(each["mean"])) for choose in (min, max))
    ends = [f"{amount(each['mean'], row['unit'])} ({shortened(each['name'], 40)})" for each in (low, high)]
    return f"{shortened(name, 40)}: from {ends[0]} to {ends[1]}."


def _response(made: Row, data: Data, series: ResponseSeries, key: str, drawn: bool) -> str:
    row = made["responses"][series.name]
    if row["why"]:
        return paragraph(row["why"])
    text = _effect_figures(made, data, row, key) if drawn else ""
    text += f"<h3>Treatments</h3>\n{page_tables.treatments(made, row)}"
    text += _sample_figures(made, data, series, row, key) if drawn else ""
    if row["studies"]:
        text += f"<h3>Does it matter in practice?</h3>\n{_sizes(made, row, key) if drawn else ''}"
        text += page_tables.material(row)
    if row["split_plot"]:
        hard = any(factor["hard"] for factor in made["design"]["factors"])
        what = "Hard factors against their batches" if hard else "Effects against the batches"
        text += f"<h3>{what}</h3>\n{page_tables.split_plot(row)}"
    if row["boots"]:
        text += f"<h3>Do values depend on the batch?</h3>\n{page_tables.boots(row)}"
    return text


def _effect_figures(made: Row, data: Data, row: Row, key: str) -> str:
    unit = row["unit"] or "value"
    factors = {factor.name: factor.levels for factor in data.factors}
    largest = sorted(
        ((name, each) for name, each in row["effects"].items() if each["magnitude"] is not None),
        key=lambda item: -item[1]["magnitude"],
    )
    parts = []
    if largest:
        said = [f"{name} {amount(each['effect'], row['unit'], each['signed'])}" for name, each in largest]
        parts.append(
            figure(
                f"{key}-main",
                figures_effects.main_effects(f"{key}-main", row, unit, factors),
                "Main effects",
                "The mean of all treatments with each level, one axis for all; the line across is the mean of all.",
                f"Largest: {', '.join(said[:NAMED])}.",
                broad=True,
            )
        )
    if figures_effects.drawable(row["interactions"]):
        parts.append(_interactions(row, key, unit))
    if any(row["blocks"].values()):
        parts.append(_blocks(row, key, unit))
    return "".join(parts)


def _interactions(row: Row, key: str, unit: str) -> str:
    known = [each for each in row["interactions"] if each["magnitude"] is not None]
    shown = len(figures_effects.drawable(known))
    best = sorted(known, key=lambda each: -each["magnitude"])[:NAMED]
    said = [f"{each['name']} {amount(each['magnitude'], row['unit'])}" for each in best]
    return figure(
        f"{key}-pairs",
        figures_effects.interactions(f"{key}-pairs", row["interactions"], unit),
        "Interactions of two factors",
        "Lines that are not parallel are an interaction; one axis for all, ● significant, a cell without treatments is "
        "blank." + (f" The {shown} of {len(known)} with the smallest p." if shown < len(known) else ""),
        f"{significant_said(known)} Largest: {', '.join(said)}.",
        broad=True,
    )


def significant_said(effects: Sequence[Row]) -> str:
    """Of those that were tested."""
    tested = [each for each in effects if each["p"] is not None]
    if not tested:
        return "Not tested."
    return f"Significant: {sum(each['significant'] for each in tested):,} of {len(tested):,} tested."


def _blocks(row: Row, key: str, unit: str) -> str:
    plots = {name: each for name, each in row["blocks"].items() if each}
    said = [
        f"{name}: {each['agreeing']} of {each['n']} boxes alike"
        + (f" (chance {each['chance']:.2g})" if each["consistent"] else "")
        for name, each in plots.items()
    ]
    most = figures_effects.MOST_FACTORS
    return figure(
        f"{key}-blocks",
        figures_effects.block_plots(f"{key}-blocks", plots, unit),
        "Block plots",
        "A box is one combination of the other factors, the marks in it are the means at the levels of the one that is "
        "named; ringed in red: a questionable treatment, dotted: a level is missing and the box does not count."
        + (f" The first {most} of {len(plots)} factors." if len(plots) > most else ""),
        "; ".join(said) + ".",
        broad=True,
    )


def _sample_figures(made: Row, data: Data, series: ResponseSeries, row: Row, key: str) -> str:
    rows = [each for each in row["treatments"] if each["n"]]
    label = _label(data, row)
    values = [series.of(each["treatment"]) for each in rows]
    timed = [series.timed(each["treatment"]) for each in rows]
    known = sum(each.size for each in values)
    alike = [each["name"] for each in rows if each["alike"]]
    said = f"{known:,} values of {len(rows):,} treatments" + (
        f"; all alike: {len(alike):,} treatments." if alike else "."
    )
    shown = figures.MOST_SHOWN
    first = f" The first {shown} of {len(rows):,} treatments." if len(rows) > shown else ""
    text = figure(
        f"{key}-values",
        figures.samples(f"{key}-values", rows, values, label, made["seed"]),
        "Every value",
        "A point is a value, moved aside by chance within its distribution's silhouette; the line is the mean, red is "
        f"questionable.{first}",
        said,
        broad=True,
    )
    text += figure(
        f"{key}-time",
        figures.in_time(f"{key}-time", rows, timed, label),
        "Values in time",
        f"Against the number of the trial in the whole experiment: clusters and drift are seen here.{first}",
        said,
        broad=True,
    )
    return text + _by_batch(made, data, series, row, key)


def _by_batch(made: Row, data: Data, series: ResponseSeries, row: Row, key: str) -> str:
    """Nothing where there is one batch only."""
    if len(data.batches) < 2:
        return ""
    kept = {each["treatment"] for each in row["treatments"]}
    hard = [number for number, factor in enumerate(data.factors) if factor.hard]
    kinds: dict[tuple[int, ...], int] = {}
    values, of = [], []
    for batch in range(len(data.batches)):
        which, mine = series.of_batch(batch, kept)
        values.append(mine)
        first = data.treatments[int(which[0])] if which.size else ()
        of.append(kinds.setdefault(tuple(first[number] for number in hard) if first else (), len(kinds)))
    names = [
        " ".join(
            f"{data.factors[n].name}={data.factors[n].levels[level]}" for n, level in zip(hard, kind, strict=False)
        )
        for kind in kinds
    ]
    label = {"value": row["unit"] or "value", "kinds": names}
    depends = [each["level"] or "all" for each in row["boots"] if each["depends"]]
    return figure(
        f"{key}-batches",
        figures.by_batch(f"{key}-batches", data.batches, values, of, label, made["seed"]),
        "Values by batch",
        "All values of each batch, whatever their treatment, with their mean.",
        f"They depend on the batch: {', '.join(depends)}." if depends else f"{len(data.batches):,} batches.",
        broad=True,
    )


def _sizes(made: Row, row: Row, key: str) -> str:
    studies: Sequence[Row] = row["studies"]
    middle = studies[len(studies) // 2]
    return figure(
        f"{key}-sizes",
        figures_effects.sizes(f"{key}-sizes", row, row["unit"], made["confidence"]),
        "Intervals by the size of the sample",
        f"Left: widths of intervals from samples of {shortened(middle['name'], 40)}; where they are below an effect's "
        "line, samples of this size show it. Right: how often they hold the mean of all values, for each treatment "
        "studied.",
        coverage_said(studies),
        broad=True,
    )


def coverage_said(studies: Sequence[Row]) -> str:
    """The lowest one that the figure shows, by BCa where there is any."""
    every = [(study["name"], each) for study in studies for each in study["sizes"]]
    covers = [item for item in every if item[1]["method"] == "BCa"] or every
    name, low = min(covers, key=lambda item: float(item[1]["coverage"]))
    which = f" ({shortened(name, 40)})" if len(studies) > 1 else ""
    return f"Lowest coverage by {low['method']}: {100 * low['coverage']:.1f} % at n = {low['n']:,}{which}."


def _design(made: Row, data: Data) -> str:
    design = made["design"]
    doubtful = [f"{each['name']}: {each['questionable']}" for each in design["treatments"] if each["questionable"]]
    rows = [
        (factor["name"], ", ".join(factor["levels"]) + (" (changes between batches only)" if factor["hard"] else ""))
        for factor in design["factors"]
    ]
    rows.append(("treatments", f"{len(design['treatments']):,}" + _excluded(design)))
    batches = len(design["batches"])
    rows.append(("iterations", f"{design['iterations']:,} in {batches:,} {'batch' if batches == 1 else 'batches'}"))
    rows += [("questionable", "; ".join(doubtful))] if doubtful else []
    lacking = {name: row["unobtainable"] for name, row in made["responses"].items() if row["unobtainable"]}
    rows += (
        [("unobtainable", "; ".join(f"{name} of {', '.join(each)}" for name, each in lacking.items()))]
        if lacking
        else []
    )
    return facts([*rows, *data.about])


def _excluded(design: Row) -> str:
    return f"; {design['excluded']:,} combinations of levels were not run" if design["excluded"] else ""
