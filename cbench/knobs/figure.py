"""Draw the figure of a screening: each knob's effect with its interval."""

from __future__ import annotations

from typing import Any

from cbench.knobs.result import KnobsResult
from cbench.report.svg import BROAD, DARK, GREY, shortened, svg


def effects(result: KnobsResult) -> str:
    """The figure as SVG text: dots and intervals, the largest effect at the top."""
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
