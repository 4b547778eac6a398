"""Draw the effects of a screening experiment, and the interval widths of samples of different sizes.

The figures are those of D. Flater, NIST Technical Note 1855 (2014), sections 4.6 and 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbench.report.svg import BROAD, DARK, FAINT, FIXED, GREY, RANDOM, shortened
from cbench.screen.analysis.result import InteractionResult, NoMateriality, ResponseResult
from cbench.screen.report.figures import LEVELS, RED, SHAPES, figure, legend, panel_grid, plain, ticks
from cbench.screen.stats.blockplot import BlockPlot, Box
from cbench.screen.stats.practical_significance import Materiality, StudiedSize

MOST_PAIRS = 9
MOST_FACTORS = 6
MOST_BOXES = 40
PANEL = 175
"""The width in points of a panel inside its axes, with three panels in a row."""
MOST_LEGEND = 5
"""The maximum number of levels that are named in a panel."""


def main_effects(key: str, row: ResponseResult, unit: str, factors: Mapping[str, Sequence[str]]) -> str:
    """An SVG with the mean at each level of each factor, on one axis. The place of a level without values is blank."""
    names = list(row.effects)
    every = [each.mean for name in names for each in row.effects[name].levels if each.mean is not None]
    with figure(key, 1, 1, 2.9) as (svg, axes):
        places: list[float] = []
        labels: list[list[str]] = []
        place = 0.0
        whole = [each.mean for each in row.treatments if each.mean is not None]
        if whole:
            axes[0].axhline(float(np.mean(whole)), color=GREY, linewidth=0.8, linestyle="--")
        for number, name in enumerate(names):
            by_level = {each.level: each.mean for each in row.effects[name].levels}
            x = [place + at for at in range(len(factors[name]))]
            y = [by_level.get(level) for level in factors[name]]
            pairs = [(a, b) for a, b in zip(x, y, strict=True) if b is not None]
            color = LEVELS[number % len(LEVELS)]
            axes[0].plot(
                [a for a, _ in pairs],
                [b for _, b in pairs],
                f"{SHAPES[number % len(SHAPES)]}-",
                color=color,
                markersize=5,
            )
            places += x
            labels += [[shortened(f"{name}={level}", 22)] for level in factors[name]]
            place = x[-1] + 1.8
        ticks(axes[0], places, labels)
        if every:
            axes[0].margins(y=0.15)
        plain(axes[0], unit)
        axes[0].grid(axis="y", color=FAINT, linewidth=0.5)
    return str(svg[0])


def interactions(key: str, rows: Sequence[InteractionResult], unit: str) -> str:
    """An SVG with a panel for each pair of factors that drawable() returns, all with the same scale. Lines that are not
    parallel show an interaction.
    """
    shown = drawable(rows)
    means = [mean for each in shown for line in each.cells for mean in line if mean is not None]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    margin = 0.08 * (high - low) or 1.0

    def draw(axes: Any, number: int) -> None:
        each = shown[number]
        first, second = each.levels
        for at, level in enumerate(second):
            line = [(place, cells[at]) for place, cells in enumerate(each.cells) if cells[at] is not None]
            style = {"color": LEVELS[at % len(LEVELS)], "markersize": 4.5, "linewidth": 1.2}
            label = f"{each.factors[1]}={level}" if at < MOST_LEGEND else None
            axes.plot(
                [x for x, _ in line], [y for _, y in line], f"{SHAPES[at % len(SHAPES)]}-", label=_short(label), **style
            )
        sign = {True: " ●", False: " ○"}[each.significant] if each.p is not None else ""
        axes.set_title(shortened(each.name, 26) + sign)
        names = [[shortened(f"{each.factors[0]}={level}", 22)] for level in first]
        ticks(axes, range(len(first)), names, BROAD / 3)
        axes.set_xlim(-0.3, len(first) - 0.7)
        axes.set_ylim(low - margin, high + margin)
        axes.tick_params(labelsize=8)
        plain(axes, unit if number % 3 == 0 else "")
        axes.legend(fontsize=7, handlelength=1.2, loc="best", framealpha=0.7, frameon=True, edgecolor="none")

    return panel_grid(key, len(shown), draw, height=2.4)


def drawable(rows: Sequence[InteractionResult]) -> list[InteractionResult]:
    """The interactions with an estimate; if there are more than MOST_PAIRS, only those with the smallest p-values."""
    known = [each for each in rows if each.effect is not None]
    if len(known) > MOST_PAIRS:
        known.sort(key=lambda each: (2.0 if each.p is None else each.p, -(each.magnitude or 0.0)))
    return known[:MOST_PAIRS]


def _short(label: str | None) -> str | None:
    return None if label is None else shortened(label, 16)


def block_plots(key: str, plots: Mapping[str, BlockPlot | None], unit: str) -> str:
    """An SVG with a panel for each of the first MOST_FACTORS primary factors, all with the same scale. Each combination
    of the other factors' levels (the first MOST_BOXES of them) has a box that contains the means at the primary
    factor's levels.
    """
    shown = [(name, each) for name, each in plots.items() if each][:MOST_FACTORS]
    means = [mean for _, each in shown for box in each.boxes for mean in box.means if mean is not None]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    margin = 0.08 * (high - low) or 1.0

    def draw(axes: Any, number: int) -> None:
        name, each = shown[number]
        for place, box in enumerate(each.boxes[:MOST_BOXES]):
            _box(axes, place, box, margin)
        named = [_short(f"{name}={level}") or "" for level in each.levels[:MOST_LEGEND]]
        columns = max(1, min(3, int(PANEL / (max(map(len, named)) * 4.1 + 22))))
        axes.set_title(f"{shortened(name, 30)}\n{_told(each)}", pad=6 + 12 * -(-len(named) // columns))
        for at, label in enumerate(named):
            style = {"color": LEVELS[at % len(LEVELS)], "markersize": 4.5}
            axes.plot([], [], SHAPES[at % len(SHAPES)], label=label, **style)
        axes.set_xticks([])
        axes.set_xlim(-0.7, min(len(each.boxes), MOST_BOXES) - 0.3)
        axes.set_ylim(low - margin, high + margin)
        axes.tick_params(labelsize=8)
        plain(axes, unit if number % 3 == 0 else "")
        axes.legend(
            fontsize=7,
            ncols=columns,
            loc="lower left",
            bbox_to_anchor=(0, 0.99),
            handlelength=0.8,
            columnspacing=0.8,
            borderpad=0.1,
        )

    return panel_grid(key, len(shown), draw, height=2.5)


def _box(axes: Any, place: int, box: Box, margin: float) -> None:
    known = [(at, mean) for at, mean in enumerate(box.means) if mean is not None]
    if not known:
        return
    bottom, top = min(mean for _, mean in known) - margin / 3, max(mean for _, mean in known) + margin / 3
    axes.plot(
        [place - 0.3, place + 0.3, place + 0.3, place - 0.3, place - 0.3],
        [bottom, bottom, top, top, bottom],
        color=FAINT if box.missing else GREY,
        linewidth=0.8,
        linestyle=":" if box.missing else "-",
    )
    for at, mean in known:
        style = {"color": LEVELS[at % len(LEVELS)], "markersize": 4.5}
        if box.questionable[at]:
            style |= {"markeredgecolor": RED, "markeredgewidth": 1.8, "markersize": 6.5}
        axes.plot([place], [mean], SHAPES[at % len(SHAPES)], **style)


def _told(each: BlockPlot) -> str:
    if not each.n:
        return "no box has all levels"
    if each.consistent:
        return f"same order in all {each.n}, chance {each.chance:.2g}"
    return f"same order in {each.agreeing} of {each.n}"


def sizes(key: str, row: ResponseResult, unit: str, confidence: float) -> str:
    """An SVG with two panels by sample size: the widths of intervals, with lines at the median and the largest main
    effect, and the share of intervals that contain the mean. `unit`: the unit of the widths, "" for none.
    """
    studies = row.studies
    middle = studies[len(studies) // 2]

    def draw(axes: Any, number: int) -> None:
        for method, color, shape, shift in (("BCa", FIXED, "o", 0.97), ("t", RANDOM, "D", 1.03)):
            if number == 0:
                _widths(axes, [each for each in middle.sizes if each.method == method], (method, color, shape), shift)
            else:
                for study in studies:
                    mine = [each for each in study.sizes if each.method == method]
                    label = method if study is middle else None
                    x = [each.n * shift for each in mine]
                    y = [100 * each.coverage for each in mine]
                    axes.plot(x, y, f"{shape}-", color=color, markersize=3.5, linewidth=1, label=label)
        if number == 0:
            for at, (magnitude, words, style) in enumerate(_lines(row.material)):
                axes.axhline(magnitude, color=DARK, linewidth=1, linestyle=style, label=words, zorder=0 - at)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
            axes.yaxis.set_minor_formatter(lambda _value, _place: "")
            axes.set(ylabel=shortened(f"width, {unit}" if unit else "width", 24))
        else:
            axes.axhline(100 * confidence, color=GREY, linewidth=1, linestyle="--")
            axes.set(ylabel="intervals with the mean, %")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(lambda _value, _place: "")
        axes.set(xlabel="values in a sample", title="widths" if number == 0 else "coverage")
        if number == 0:
            legend(axes)

    return panel_grid(key, 2, draw, across=2, height=2.9)


def _widths(axes: Any, mine: Sequence[StudiedSize], how: tuple[str, str, str], shift: float) -> None:
    """Draw the median of the widths, with its quartiles."""
    method, color, shape = how
    known = [(each.n * shift, each.width_quartiles) for each in mine if each.width_quartiles[1]]
    axes.plot(
        [n for n, _ in known],
        [quartiles[1] for _, quartiles in known],
        f"{shape}-",
        color=color,
        markersize=4,
        linewidth=1.2,
        label=f"interval by {method}, quartiles",
    )
    for n, quartiles in known:
        if quartiles[0]:
            axes.plot([n, n], [quartiles[0], quartiles[2]], color=color, linewidth=1)


def _lines(material: Materiality | NoMateriality | None) -> list[tuple[float, str, str]]:
    if not isinstance(material, Materiality) or not material.largest_effect:
        return []
    lines = [(material.largest_effect, "largest main effect", ":")]
    if material.median_effect:
        lines.append((material.median_effect, "median main effect", "--"))
    return lines
