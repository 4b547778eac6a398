"""Render the page of a screening of knobs."""

from __future__ import annotations

from typing import Any

from cbench.knobs import table
from cbench.knobs.result import WORSE, KnobsResult
from cbench.report.page import Figure, Table, render
from cbench.report.svg import BROAD, DARK, GREY, shortened, svg
from cbench.report.text import counted


def page(result: KnobsResult) -> str:
    """The result as one self-contained HTML page."""
    figures = []
    if any(each.effect is not None for each in result.effects):
        figures.append(
            Figure(
                "effects",
                _effects(result),
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
        left_out=", ".join((*(each.knob for each in result.effects if each.verdict == WORSE), *result.inert)),
        profile=", ".join(result.written),
    )


def _effects(result: KnobsResult) -> str:
    """The figure of effects as SVG text: dots and intervals, the largest effect at the top."""
    known = [each for each in result.effects if each.effect is not None and each.interval is not None]

    def draw(axes: Any) -> None:
        for at, each in enumerate(reversed(known)):
            axes.plot(each.interval, [at, at], color=DARK, linewidth=1.2)
            axes.plot([each.effect], [at], "o", color=DARK, markersize=4)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set_yticks(range(len(known)), [shortened(each.knob) for each in reversed(known)])
        axes.set_ylim(-0.6, len(known) - 0.4)
        axes.set_xlabel(f"change without the knob, {result.unit}")

    return svg("effects", draw, height=0.9 + 0.28 * len(known), width=BROAD)
