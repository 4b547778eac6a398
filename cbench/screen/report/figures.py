"""Draw the samples of a screening experiment: every value, values over time, and means.

The figures follow D. Flater, NIST Technical Note 1855 (2014). A figure with many points stores the points as one bitmap
inside the SVG, so that a page with hundreds of thousands of values opens quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbench.report.figures import pyplot
from cbench.report.svg import BROAD, DARK, FAINT, FIXED, GREY, RANDOM, drawn, shortened
from cbench.screen.analysis.result import SampleResult
from cbench.screen.analysis.samples import PIXELS
from cbench.screen.data.data import Values

RED = "#b3261e"
"""The color of questionable treatments."""
LEVELS = (FIXED, RANDOM, "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", DARK, GREY)
"""The colors of levels, which are distinct for color-blind readers (Okabe and Ito); shapes also differ."""
SHAPES = "oDs^vP*X"
MOST_VECTORS = 600
"""The maximum number of points that are drawn as separate shapes."""
MOST_SHOWN = 24
"""The maximum number of treatments side by side."""
DPI = 130
HALF = 0.4
"""Half the maximum width of a silhouette; the distance between samples is 1."""
MOST_EXACT = 600
LETTER = 5.3
"""Width of a letter in points at the font size of the axis labels."""


@dataclass(frozen=True, slots=True)
class AxisNames:
    """The names on the axes of a response's figures. `levels`: per treatment, one level name per factor."""

    levels: Sequence[Sequence[str]]
    factors: Sequence[str]
    unit: str

    @property
    def value(self) -> str:
        return self.unit or "value"


Panel = tuple[str, Sequence[SampleResult], AxisNames]
"""A response's name, its treatments, and the names of its axes."""


@contextmanager
def figure(key: str, rows: int, columns: int, height: float, width: float = BROAD) -> Any:
    """The same context as svg.drawn(), with bitmaps at DPI dots per inch."""
    with drawn(key, rows, columns, width, height) as (svg, axes):
        axes[0].figure.set_dpi(DPI)
        yield svg, axes


def samples(key: str, rows: Sequence[SampleResult], values: Sequence[Values], label: AxisNames, seed: int) -> str:
    """An SVG with a violin-shaped scatter plot of each of the first MOST_SHOWN treatments. `rows`: the treatments'
    results; `values`: each treatment's values; `label`: the names on the axes; `seed`: the seed of the points'
    horizontal positions.
    """
    shown = list(zip(rows, values, strict=True))[:MOST_SHOWN]
    many = sum(each.size for _, each in shown)
    with figure(key, 1, 1, 3.3) as (svg, axes):
        colors = [RED if row.questionable is not None else FIXED for row, _ in shown]
        _violins(axes[0], [each for _, each in shown], colors, seed, rasterise=many > MOST_VECTORS)
        for place, (row, _) in enumerate(shown):
            if row.mean is not None and not row.alike:
                axes[0].plot([place - 0.22, place + 0.22], [row.mean] * 2, color=DARK, linewidth=1.2)
        treatments(axes[0], [row for row, _ in shown], label)
        plain(axes[0], label.value)
    return str(svg[0])


def _violins(axes: Any, samples: Sequence[Values], colors: Sequence[str], seed: int, rasterise: bool) -> None:
    """Draw samples at 0, 1, ...: every value is a point, shifted sideways at random within the silhouette of the
    distribution. A sample of equal values is a line.
    """
    draw = np.random.default_rng(seed)
    for place, (values, color) in enumerate(zip(samples, colors, strict=True)):
        if values.min() == values.max():
            axes.plot([place - HALF, place + HALF], [values[0]] * 2, color=color, linewidth=1.6)
            continue
        axes.plot(
            place + HALF * silhouette(values) * draw.uniform(-1, 1, values.size),
            values,
            ".",
            color=color,
            markersize=4.5 if values.size < 100 else 2.8 if values.size < 1000 else 1.4,
            alpha=1 if values.size < 500 else 0.6,
            markeredgewidth=0,
            rasterized=rasterise,
        )


def silhouette(values: Values) -> Values:
    """The half width of a violin at each value, as a share of the maximum. It is a Gaussian kernel density with D. W.
    Scott's bandwidth, computed at up to MOST_EXACT values or quantiles and linearly interpolated between them.
    """
    around = values - np.median(values)
    around = around / np.abs(around).max()
    places = np.unique(around)
    if places.size > MOST_EXACT:
        places = np.unique(np.quantile(around, np.linspace(0, 1, MOST_EXACT)))
    density = np.interp(around, places, pyplot().mlab.GaussianKDE(around).evaluate(places))
    return np.asarray(density / density.max())


def in_time(key: str, rows: Sequence[SampleResult], values: Sequence[Any], label: AxisNames) -> str:
    """An SVG that shows the values of each treatment by trial number, for the first MOST_SHOWN treatments with values.
    `values`: for each treatment, the numbers of its trials in the experiment, from 0, and their values.
    """
    shown = [(row, *pair) for row, pair in zip(rows, values, strict=True) if pair[1].size][:MOST_SHOWN]
    many = sum(each.size for _, _, each in shown)
    low = min((float(each.min()) for _, _, each in shown), default=0.0)
    high = max((float(each.max()) for _, _, each in shown), default=1.0)
    margin = 0.05 * (high - low) or 1.0

    def draw(axes: Any, number: int) -> None:
        row, at, each = shown[number]
        color = RED if row.questionable is not None else FIXED
        size = 4.0 if each.size < 100 else 2.4 if each.size < 1000 else 1.4
        axes.plot(at + 1, each, ".", color=color, markersize=size, markeredgewidth=0, rasterized=many > MOST_VECTORS)
        axes.set_title(shortened(row.name, 30), fontsize=8)
        if np.isfinite(margin):
            axes.set_ylim(low - margin, high + margin)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=3)
        axes.tick_params(labelsize=8)
        plain(axes, label.value if number % 4 == 0 else "")
        if number % 4:
            axes.tick_params(labelleft=False)

    return panel_grid(key, len(shown), draw, across=4, height=1.55)


def means(key: str, panels: Sequence[Panel]) -> str:
    """An SVG with the means and intervals of the first MOST_SHOWN treatments, one panel per response. See spans() for
    the scales.
    """
    down = len(panels)
    with figure(key, down, 1, 0.7 + 2.2 * down) as (svg, every):
        for axes, (name, rows, label), extent in zip(every, panels, spans(panels), strict=True):
            low, high = _extent(rows)
            span = 1.12 * extent or abs(low) * 0.02 or 1.0
            middle = low + (high - low) / 2
            known = [row.mean for row in rows if row.mean is not None]
            if known:
                mean = float(np.mean(known))
                axes.axhline(mean, color=GREY, linewidth=0.8, linestyle="--", label="mean of all treatments")
            _means(axes, rows[:MOST_SHOWN], span)
            if np.isfinite(span) and np.isfinite(middle):
                axes.set_ylim(middle - span / 2, middle + span / 2)
            treatments(axes, rows[:MOST_SHOWN], label)
            axes.set_title(shortened(name, 60))
            plain(axes, label.value)
        legend(every[0])
    return str(svg[0])


def spans(panels: Sequence[Panel]) -> list[float]:
    """The span of each panel's axis, in the response's unit. Panels with the same unit share a scale; panels without a
    unit have separate scales.
    """
    extents = [_extent(rows) for _, rows, _ in panels]
    own = [(label.unit, high - low) for (_, _, label), (low, high) in zip(panels, extents, strict=True)]
    return [max(each for of, each in own if of == unit) if unit else span for unit, span in own]


def _extent(rows: Sequence[SampleResult]) -> tuple[float, float]:
    ends = [row.mean for row in rows if row.mean is not None]
    ends += [end for row in rows for interval in (row.bca_mid, row.t) for end in interval or ()]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def _means(axes: Any, rows: Sequence[SampleResult], span: float) -> None:
    """Draw the means with their intervals."""
    by_method = (("BCa", [row.bca_mid for row in rows], FIXED, -0.12), ("t", [row.t for row in rows], RANDOM, 0.12))
    for words, intervals, color, shift in by_method:
        shown = False
        for place, interval in enumerate(intervals):
            if interval is None or interval[1] - interval[0] < span / PIXELS:
                continue
            axes.plot([place + shift] * 2, interval, color=color, linewidth=2.2, solid_capstyle="butt")
            shown = True
        if shown:
            axes.plot([], [], color=color, linewidth=2.2, label=f"interval by {words}")
    for place, row in enumerate(rows):
        if row.mean is not None:
            color = RED if row.questionable is not None else DARK
            axes.plot([place], [row.mean], "o", color=color, markersize=4)


def treatments(axes: Any, rows: Sequence[SampleResult], label: AxisNames) -> None:
    """Label the places 0, 1, ... with the treatments' levels."""
    names = [[shortened(each, 12) for each in label.levels[row.treatment]] for row in rows]
    if ticks(axes, range(len(rows)), names):
        axes.set_xlabel(
            shortened(" / ".join(label.factors), 80) + (" (top to bottom)" if len(label.factors) > 1 else "")
        )
    else:
        axes.set_xlabel(shortened(" ".join(label.factors), 80))
    for text, row in zip(axes.get_xticklabels(), rows, strict=True):
        text.set_color(RED if row.questionable is not None else DARK)
    axes.set_xlim(-0.6, max(len(rows), 1) - 0.4)
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)


def ticks(axes: Any, places: Sequence[float], names: Sequence[Sequence[str]], width: float = BROAD) -> bool:
    """Label places, with the parts of a name below each other. If the labels would touch, slant them, with each name on
    one line, and return False.
    """
    slot = 72 * (width - 1.1) / (max(places) - min(places) + 1 if places else 1.0)
    fits = max((len(each) for parts in names for each in parts), default=0) * LETTER + 4 <= slot
    if fits:
        axes.set_xticks(places, ["\n".join(parts) for parts in names])
    else:
        texts = [shortened(" ".join(parts), 24) for parts in names]
        axes.set_xticks(places, texts, rotation=40, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    return fits


def plain(axes: Any, name: str) -> None:
    """Label the value axis with `name` and with complete numbers, without an offset that the reader must add."""
    axes.ticklabel_format(axis="y", useOffset=False)
    if name:
        axes.set_ylabel(shortened(name, 24))


def legend(axes: Any) -> None:
    """Add a legend of the labeled lines in `axes` above the panels, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize=8)


def panel_grid(key: str, many: int, draw: Callable[[Any, int], None], across: int = 3, height: float = 2.1) -> str:
    """An SVG with `many` panels, at most `across` in a row. `draw`: draws a panel, given its axes and its number from
    0.
    """
    across = min(across, max(1, many))
    down = max(1, -(-many // across))
    width = BROAD if across > 1 else 5.6
    with figure(key, down, across, 0.3 + height * down, width) as (svg, every):
        for number, axes in enumerate(every):
            axes.set_visible(number < many)
            if number < many:
                draw(axes, number)
    return str(svg[0])
