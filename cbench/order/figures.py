"""The figures of an order-dependence report that compare fixed with random order, as SVG texts.

As in D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023: p-values
and effect sizes sorted (figures 2 and 3), differences sorted (4), intervals by case (5), bars of cases (6). A few tests
are named, one to a line; of more each is a point of a curve, and of very many only as many as can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cbench.order.result import ORDERS, OrderResult, OrderTest
from cbench.report.svg import DARK, FAINT, FIXED, GREY, RANDOM, dots, shortened, svg

MOST_NAMED = 30
"""Tests that have a line and their name each."""
MOST_POINTS = 1200
"""Points of a curve: more of them lie on top of each other at this size."""
LOWEST_P = 1e-300

Number = Callable[[OrderTest], float | None]


def p_values(made: OrderResult) -> str:
    """The p-values of the decision in increasing order, with the level of one test and that of the family."""

    def draw(axes: Any) -> None:
        curve = _sorted(axes, made, made.deciding_p, "p (logarithmic)", log=True)
        lines = axes.axhline if curve else axes.axvline
        lines(made.alpha, color=GREY, linestyle="--", linewidth=1, label=f"{made.alpha:g}, for one test")
        if made.alpha_bonferroni != made.alpha:
            label = f"{made.alpha_bonferroni:.2g}, for all (Bonferroni)"
            lines(made.alpha_bonferroni, color=DARK, linestyle=":", linewidth=1.4, label=label)
        (axes.set_ylim if curve else axes.set_xlim)(None, 1.6)
        axis = axes.yaxis if curve else axes.xaxis
        axis.set_major_formatter(lambda value, _place: f"{value:.0e}" if value < 0.01 else f"{value:g}")
        axis.set_minor_formatter(lambda _value, _place: "")
        _legend(axes)

    return svg("p", draw, 0.2 + _height(made, made.deciding_p))


def effects(made: OrderResult) -> str:
    """Effect sizes in increasing order, of the lowest p last."""

    def draw(axes: Any) -> None:
        most = max((number for _, _, number in _known(made, _epsilon2)), default=0)
        limits = (-0.02 * max(0.1, most), min(1.03, max(0.1, 1.08 * most)))
        set_limits = axes.set_ylim if _sorted(axes, made, _epsilon2, "effect size ε²") else axes.set_xlim
        set_limits(*limits)
        _legend(axes)

    return svg("effect", draw, _height(made, _epsilon2))


def deltas(made: OrderResult) -> str:
    """Differences of the medians in increasing order."""

    def draw(axes: Any) -> None:
        line = axes.axhline if _sorted(axes, made, _delta, "Δ of the medians, %") else axes.axvline
        line(0, color=GREY, linewidth=0.8)
        _legend(axes)

    return svg("delta", draw, _height(made, _delta))


def intervals(made: OrderResult) -> str:
    """The medians' intervals of both orders in % of the fixed median, the smallest p-values first."""
    tests = with_intervals(made)[:MOST_NAMED][::-1]

    def draw(axes: Any) -> None:
        for place, (_, test) in enumerate(tests):
            base = test.median_fixed or 1.0
            percent = abs(base) / 100
            for order, color, shape, shift in zip(ORDERS, (FIXED, RANDOM), "oD", (0.17, -0.17), strict=True):
                middle, ends = test.median(order)
                assert middle is not None
                assert ends is not None
                low, middle, high = ((each - base) / percent for each in (ends[0], middle, ends[1]))
                axes.plot([low, high], [place + shift] * 2, color=color, linewidth=2, solid_capstyle="butt")
                axes.plot([middle], [place + shift], shape, color=color, markersize=4.5)
            words = {1: "case 1: apart", 2: "case 2", 3: "case 3"}[test.case or 3]
            heavy = "bold" if test.case == 1 else "normal"
            axes.text(1.02, place, words, transform=axes.get_yaxis_transform(), va="center", weight=heavy)
        _names(axes, [name for name, _ in tests])
        axes.plot([], [], "o-", color=FIXED, markersize=4.5, label="fixed order")
        axes.plot([], [], "D-", color=RANDOM, markersize=4.5, label="random order")
        axes.set(xlabel="median and its interval, in % away from the fixed order's median")
        _legend(axes)

    return svg("intervals", draw, 1.1 + 0.34 * max(len(tests), 1))


def with_intervals(made: OrderResult) -> list[tuple[str, OrderTest]]:
    """The tests that the figure of intervals can show, the smallest p-values first."""
    return [(name, test) for name, test in made.by_p() if test.case and test.median_fixed]


def cases(made: OrderResult) -> str:
    """How many tests there are of each case, and without intervals."""
    every = [test.case for test in made.tests.values()]
    inside = "a median inside" if made.published else "both medians inside"
    names = {1: "1: intervals apart", 2: f"2: overlap, {inside}", 3: "3: overlap, otherwise", None: "no intervals"}
    shown = [case for case in (1, 2, 3, None) if case or every.count(None)][::-1]

    def draw(axes: Any) -> None:
        counts = [every.count(case) for case in shown]
        colors = [{1: DARK, None: FAINT}.get(case, GREY) for case in shown]
        bars = axes.barh([names[case] for case in shown], counts, color=colors, height=0.6)
        shares = [f"{count:,} ({100 * count / max(len(every), 1):.0f} %)" for count in counts]
        axes.bar_label(bars, shares, padding=4)
        axes.set(xlabel="tests")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.margins(x=0.25)

    return svg("cases", draw, 0.7 + 0.32 * len(shown))


def _epsilon2(test: OrderTest) -> float | None:
    return test.epsilon2


def _delta(test: OrderTest) -> float | None:
    return test.delta_pct_median


def _known(made: OrderResult, number: Number) -> list[tuple[str, OrderTest, float]]:
    """Names, tests and numbers, in increasing order."""
    every = [(name, test, number(test)) for name, test in made.tests.items()]
    found = [(name, test, value) for name, test, value in every if value is not None]
    return sorted(found, key=lambda item: (item[2], item[0]))


def _height(made: OrderResult, number: Number) -> float:
    many = len(_known(made, number))
    return 1.0 + 0.21 * max(many, 2) if many <= MOST_NAMED else 2.8


def _sorted(axes: Any, made: OrderResult, number: Number, label: str, log: bool = False) -> bool:
    """Draw what is known in increasing order; whether it is a curve, whose values are upwards."""
    known = _known(made, number)
    values = np.array([max(each, LOWEST_P) if log else each for _, _, each in known], dtype=np.float64)
    yes = np.array([test.significant for _, test, _ in known], dtype=bool)
    curve = len(known) > MOST_NAMED
    places = np.arange(1, values.size + 1)
    if curve and places.size > MOST_POINTS:
        some = np.unique(np.linspace(0, places.size - 1, MOST_POINTS).round().astype(int))
        places, values, yes = places[some], values[some], yes[some]
    for which, filled, word in ((~yes, False, "no difference shown"), (yes, True, "significant")):
        if which.any():
            x, y = (places[which], values[which]) if curve else (values[which], places[which] - 1)
            dots(axes, x, y, filled, DARK if filled else GREY, label=word)
    if curve:
        axes.set(xlabel="tests, sorted", ylabel=label)
        axes.set_yscale("log" if log else "linear")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    else:
        _names(axes, [name for name, _, _ in known])
        axes.set(xlabel=label)
        axes.set_xscale("log" if log else "linear")
        axes.invert_yaxis() if log else None
    return curve


def _names(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.figure.legend(loc="outside upper left", ncols=2, fontsize=8)
