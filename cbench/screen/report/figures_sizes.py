"""Draw Pareto plots and half-normal plots of a screening experiment's effects, and its residuals over time.

C. Daniel, "Use of half-normal plots in interpreting factorial two-level experiments", Technometrics 1 (1959) 311-341.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from cbench.report.svg import DARK, FAINT, FIXED, GREY, RANDOM, shortened
from cbench.screen.analysis.result import EffectResult, LenthResult, ResponseResult
from cbench.screen.data.data import ResponseSeries
from cbench.screen.report.figures import MOST_VECTORS, figure, plain

MOST_BARS = 20
NAMED = 6
LONGEST = 28


def by_size(row: ResponseResult) -> list[tuple[str, EffectResult]]:
    """The tested effects with an estimate, the largest magnitude first."""
    known = [item for item in row.every_effect if item[1].effect is not None and item[1].p is not None]
    return sorted(known, key=lambda item: -abs(item[1].fair))


def pareto(key: str, row: ResponseResult, unit: str) -> str:
    """A Pareto plot as SVG: the magnitudes of the MOST_BARS largest effects, with intervals, the largest on top.
    Significant effects have a stronger color.
    """
    shown = by_size(row)[:MOST_BARS]
    with figure(key, 1, 1, 0.9 + 0.22 * len(shown)) as (svg, axes):
        for place, (_, each) in enumerate(shown):
            color = RANDOM if each.significant else FIXED
            size = abs(each.fair)
            axes[0].barh(place, size, color=color, alpha=0.85 if each.significant else 0.35, height=0.7)
            if each.interval is not None:
                turn = 1 if each.fair >= 0 else -1
                ends = sorted(turn * end for end in each.interval)
                axes[0].plot(ends, [place, place], color=DARK, linewidth=1.2)
        axes[0].axvline(0, color=GREY, linewidth=0.8)
        axes[0].set_yticks(range(len(shown)), [shortened(name, LONGEST) for name, _ in shown])
        axes[0].invert_yaxis()
        axes[0].set_xlabel(shortened(unit, 24))
        axes[0].ticklabel_format(axis="x", useOffset=False)
        axes[0].grid(axis="x", color=FAINT, linewidth=0.5)
        axes[0].set_axisbelow(True)
    return str(svg[0])


def half_normal(key: str, lenth: LenthResult, unit: str, alpha: float) -> str:
    """A half-normal plot as SVG: the magnitudes of contrasts against the magnitudes expected of inert contrasts. The
    slope of the line is Lenth's pseudo standard error.
    """
    ordered = sorted(lenth.contrasts, key=lambda each: abs(each.estimate))
    many = len(ordered)
    expected = [NormalDist().inv_cdf(0.5 + 0.5 * (at + 0.5) / many) for at in range(many)]
    sizes = [abs(each.estimate) for each in ordered]
    with figure(key, 1, 1, 3.4, 5.6) as (svg, axes):
        axes[0].plot([0, expected[-1]], [0, lenth.pse * expected[-1]], color=GREY, linewidth=1, linestyle="--")
        for each, x, y in zip(ordered, expected, sizes, strict=True):
            axes[0].plot([x], [y], "o", color=RANDOM if each.p_family < alpha else FIXED, markersize=4.5)
        for each, x, y in [*zip(ordered, expected, sizes, strict=True)][-NAMED:]:
            axes[0].annotate(shortened(each.name, LONGEST), (x, y), (-5, 3), textcoords="offset points", ha="right")
        axes[0].set_xlabel("half-normal quantile")
        axes[0].margins(0.12)
        plain(axes[0], unit)
    return str(svg[0])


def residuals(key: str, series: ResponseSeries, numbers: Sequence[int], unit: str) -> str:
    """An SVG that shows each value minus its treatment's mean, in the order of the trials. `numbers`: the numbers of
    the treatments to include.
    """
    at, left = [], []
    for number in numbers:
        sequence, values = series.timed(number)
        at.append(sequence + 1)
        left.append(values - values.mean())
    x, y = np.concatenate(at), np.concatenate(left)
    with figure(key, 1, 1, 2.6) as (svg, axes):
        size = 4.0 if x.size < 200 else 1.6
        rasterized = x.size > MOST_VECTORS
        axes[0].plot(x, y, ".", color=FIXED, markersize=size, markeredgewidth=0, rasterized=rasterized)
        axes[0].axhline(0, color=GREY, linewidth=0.8)
        axes[0].set_xlabel("trial")
        axes[0].xaxis.set_major_formatter("{x:,.0f}")
        plain(axes[0], unit)
    return str(svg[0])
