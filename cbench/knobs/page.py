"""Render the page of a screening of knobs."""

from __future__ import annotations

from cbench.knobs import figure, table
from cbench.knobs.result import KnobsResult
from cbench.report.page import Figure, Table, render
from cbench.report.text import counted


def page(result: KnobsResult) -> str:
    """The result as one self-contained HTML page."""
    figures = []
    if any(each.effect is not None for each in result.effects):
        figures.append(
            Figure(
                "effects",
                figure.effects(result),
                "Effects",
                f"Change in the {result.title} when one knob is left out, with its 95 % interval.",
                broad=True,
            )
        )
    rows = [table.row(each) for each in result.effects]
    facts = [
        ("host", f"CPUs {result.cpus} isolated"),
        ("response", f"{result.title}, in {result.unit}" + (f": {' '.join(result.command)}" if result.command else "")),
        ("applications", f"{result.applications:,} in {result.seconds:,.0f} s, seed {result.seed}"),
        ("knobs", f"{counted(result.screened, 'knob')} screened, {result.idle:,} have nothing to change here"),
    ]
    return render(
        "knobs/knobs.html",
        result=result,
        lines=table.lines(result),
        ranking=Table(table.head(result), rows, names=2) if rows else None,
        notes=table.below(result),
        figures=figures,
        design=facts,
        inert=", ".join(result.inert),
        profile=", ".join(result.written),
    )
