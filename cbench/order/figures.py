"""Draw the figures of an order-dependence report as SVG.

The figures follow D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC
2023: sorted p-values and effect sizes (figures 2 and 3), sorted differences (4), intervals by case (5). Up to
MOST_NAMED tests have one named line each; more tests become points on a curve, which has at most MOST_POINTS points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cbench.order.result import ORDERS, OrderResult, OrderTest, Within
from cbench.order.stats.analysis import runs_by_host
from cbench.report.labels import labels
from cbench.report.svg import BROAD, DARK, FAINT, FIXED, GREY, RANDOM, dots, panels, shortened, svg
from cbench.report.text import mark
from cbench.stats.trials import Trials

MOST_NAMED = 30
"""The maximum number of tests that are drawn as named lines."""
MOST_POINTS = 1200
"""The maximum number of points of a curve; more would overlap at this size."""
LOWEST_P = 1e-300
MOST_PANELS = 6
MOST_CELLS = 30
"""The maximum number of rows and of columns of the matrix."""
MOST_WRITTEN = 14
"""The maximum number of rows and of columns of a matrix with numbers in its cells."""
MOST_PANEL_POINTS = 600
"""The maximum number of points of one order in a panel."""
MOST_JOINED = 30

Number = Callable[[OrderTest], float | None]


def p_values(result: OrderResult) -> str:
    """Plot the deciding p-values in increasing order, with the level of one test and the level of the family."""

    def levels(axes: Any, curve: bool) -> None:
        lines = axes.axhline if curve else axes.axvline
        lines(result.alpha, color=GREY, linestyle="--", linewidth=1, label=f"{result.alpha:g}, for one test")
        if result.alpha_bonferroni != result.alpha:
            label = f"{result.alpha_bonferroni:.2g}, for all (Bonferroni)"
            lines(result.alpha_bonferroni, color=DARK, linestyle=":", linewidth=1.4, label=label)
        (axes.set_ylim if curve else axes.set_xlim)(None, 1.6)
        axis = axes.yaxis if curve else axes.xaxis
        axis.set_major_formatter(lambda value, _place: f"{value:.0e}" if value < 0.01 else f"{value:g}")
        axis.set_minor_formatter(lambda _value, _place: "")

    return _sorted("p", result, lambda test: test.p_decides, "p (logarithmic)", levels, log=True)


def effects(result: OrderResult) -> str:
    """Plot effect sizes in increasing order."""
    most = max((test.epsilon2 for test in result.tests.values() if test.epsilon2 is not None), default=0.0)

    def limits(axes: Any, curve: bool) -> None:
        set_limits = axes.set_ylim if curve else axes.set_xlim
        set_limits(-0.02 * max(0.1, most), min(1.03, max(0.1, 1.08 * most)))

    return _sorted("effect", result, lambda test: test.epsilon2, "effect size ε²", limits)


def deltas(result: OrderResult) -> str:
    """Plot the differences between the orders in increasing order, with their intervals."""

    def zero(axes: Any, curve: bool) -> None:
        (axes.axhline if curve else axes.axvline)(0, color=GREY, linewidth=0.8)

    spans = {name: test.delta_pct_interval for name, test in result.tests.items() if test.delta_pct_interval}
    return _sorted("delta", result, _delta, "Δ with its interval, %", zero, spans=spans)


def _delta(test: OrderTest) -> float | None:
    return test.delta_pct_median if test.delta_pct_hl is None else test.delta_pct_hl


def intervals(result: OrderResult) -> str:
    """Plot the intervals of both orders' medians as differences in % from the fixed median, the smallest p-values
    first.
    """
    tests = with_intervals(result)[:MOST_NAMED][::-1]

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
        axes.plot([], [], "o-", color=FIXED, markersize=4.5, label=result.arm_labels[0])
        axes.plot([], [], "D-", color=RANDOM, markersize=4.5, label=result.arm_labels[1])
        axes.set(xlabel=f"median and interval, difference in % from the median in {result.arm_labels[0]}")
        _legend(axes)

    return svg("intervals", draw, 1.1 + 0.34 * max(len(tests), 1))


def hosts(result: OrderResult) -> str:
    """Plot the difference between the orders on each host and on all hosts combined, with intervals; a panel for each
    of the six tests with the smallest p.
    """
    shown = with_hosts(result)[:MOST_PANELS]

    def panel(axes: Any, name: str) -> None:
        test = result.tests[name]
        assert test.hosts is not None
        chosen = sorted(test.hosts.hosts, key=lambda each: 2.0 if each.p_effect is None else each.p_effect)[:MOST_NAMED]
        alone = [(each.host, each.delta_pct, each.interval) for each in test.hosts.hosts if each in chosen]
        rows = [("all hosts", test.delta_pct_hl, test.delta_pct_interval), *alone[::-1]]
        for place, (_, delta, ends) in enumerate(rows):
            color = DARK if place == 0 else RANDOM
            if ends is not None:
                axes.plot(ends, [place] * 2, color=color, linewidth=2, solid_capstyle="butt")
            if delta is not None:
                axes.plot([delta], [place], "D" if place == 0 else "o", color=color, markersize=4.5)
        axes.axvline(0, color=GREY, linewidth=1)
        axes.axhline(0.5, color=FAINT, linewidth=1)
        _names(axes, [host for host, _, _ in rows])
        axes.set(xlabel="Δ with its interval, %", title=shortened(name, 40))

    count = len(result.hosts.names) if result.hosts else 0
    return panels("hosts", panel, shown, height=1.1 + 0.2 * (min(count, MOST_NAMED) + 1))


def with_hosts(result: OrderResult) -> list[str]:
    """The tests that have results by host, in order of increasing p-value."""
    return [name for name, test in result.by_p() if test.hosts is not None]


def with_intervals(result: OrderResult) -> list[tuple[str, OrderTest]]:
    """The tests that the figure of intervals can show, the smallest p-values first."""
    return [(name, test) for name, test in result.by_p() if test.case and test.median_fixed]


def _sorted(
    key: str,
    result: OrderResult,
    number: Number,
    label: str,
    finish: Callable[[Any, bool], None],
    log: bool = False,
    spans: Mapping[str, tuple[float, float]] | None = None,
) -> str:
    """A plot of the known values in increasing order. `finish`: called with the axes, and whether this is a curve.
    `spans`: intervals, by the tests' names.
    """
    every = [(name, test, number(test)) for name, test in result.tests.items()]
    known = sorted(
        ((value, name, test.significant) for name, test, value in every if value is not None), key=lambda each: each[:2]
    )
    curve = len(known) > MOST_NAMED

    def draw(axes: Any) -> None:
        values = np.array([max(value, LOWEST_P) if log else value for value, _, _ in known], dtype=np.float64)
        yes = np.array([significant for _, _, significant in known], dtype=bool)
        places = np.arange(1, values.size + 1)
        if curve and places.size > MOST_POINTS:
            some = np.unique(np.linspace(0, places.size - 1, MOST_POINTS).round().astype(int))
            places, values, yes = places[some], values[some], yes[some]
        shown = [known[place - 1][1] for place in places.tolist()]
        if spans:  # one path with gaps, because thousands of separate lines take megabytes
            ends = [(at, end) for at, name in zip(places.tolist(), shown, strict=True) for end in _ends(spans, name)]
            across, along = np.array(ends, dtype=np.float64).reshape(-1, 2).T
            x, y = (across, along) if curve else (along, across - 1)
            axes.plot(x, y, color=FAINT if curve else GREY, linewidth=0.6 if curve else 1.4, zorder=1)
        for which, filled, word in ((~yes, False, "no difference shown"), (yes, True, "significant")):
            if which.any():
                x, y = (places[which], values[which]) if curve else (values[which], places[which] - 1)
                dots(axes, x, y, filled, DARK if filled else GREY, label=word)
        if curve:
            axes.set(xlabel="tests, sorted", ylabel=label)
            axes.set_yscale("log" if log else "linear")
            axes.xaxis.set_major_formatter("{x:,.0f}")
        else:
            _names(axes, [name for _, name, _ in known])
            axes.set(xlabel=label)
            axes.set_xscale("log" if log else "linear")
            axes.invert_yaxis() if log else None
        finish(axes, curve)
        _legend(axes)

    height = 2.8 if curve else 1.0 + 0.21 * max(len(known), 2)
    return svg(key, draw, height + 0.2 if log else height)


def _ends(spans: Mapping[str, tuple[float, float]], name: str) -> tuple[float, ...]:
    return (*spans[name], float("nan")) if name in spans else ()


def _names(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), labels(names))
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.figure.legend(loc="outside upper left", ncols=2, fontsize=8)


def positions(result: OrderResult, names: Sequence[str]) -> str:
    """Plot medians by position in the random runs, in % from the median of these medians, for the first six names."""

    def panel(axes: Any, name: str) -> None:
        test = result.tests[name].position
        assert test is not None
        places = [group.label + 1 for group in test.groups if isinstance(group.label, int)]
        joined = len(places) == test.labels <= MOST_JOINED
        values, unit = _relative([group.median for group in test.groups])
        axes.axhline(0, color=GREY, linewidth=0.8)
        if joined:
            axes.plot(places, values, "-", color=RANDOM, linewidth=1)
        dots(axes, places, values, True, RANDOM, "D")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="position in the run", ylabel=unit, title=_titled(name, result.tests[name], "position"))
        axes.margins(y=0.15)

    return panels("position", panel, names[:MOST_PANELS])


def _relative(values: Sequence[float]) -> tuple[list[float], str]:
    """The values as differences from their median in %, and the unit; unchanged if the median is 0."""
    base = float(np.median(values))
    if not base:
        return list(values), "median"
    return [100 * (value - base) / abs(base) for value in values], "%"


def matrix(result: OrderResult) -> str:
    """A heat map of predecessor effects: the difference in % between the median after each predecessor and the median
    after all others.
    """
    clearest = sorted(result.predecessors, key=lambda each: (each.p_holm, each.p))
    measured = set(list(dict.fromkeys(each.test for each in clearest))[:MOST_CELLS])
    tests = [name for name in result.tests if name in measured]
    inside = [each for each in clearest if each.test in measured]
    before = list(dict.fromkeys(each.after for each in inside))[:MOST_CELLS]
    place: dict[str, int] = {}
    for number, name in enumerate(result.tests):
        place.setdefault(name, number)
        place.setdefault(name.rpartition(":")[0], number)  # a metric's name follows its test's name
    before.sort(key=lambda name: (name is not None, place.get(name or "", len(place)), name or ""))
    cells = np.full((len(tests), len(before)), np.nan)
    rows, columns = ({name: number for number, name in enumerate(names)} for names in (tests, before))
    marks = np.zeros(cells.shape, dtype=bool)
    for each in inside:
        if each.after in columns and each.delta_pct is not None:
            at = rows[each.test], columns[each.after]
            cells[at], marks[at] = each.delta_pct, each.significant
    known = np.abs(cells[~np.isnan(cells)])
    most = float(known.max()) if known.size and known.max() else 1.0

    def draw(axes: Any) -> None:
        axes.patch.set(facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0)  # visible in empty cells
        image = axes.imshow(cells, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="none")
        written = max(cells.shape) <= MOST_WRITTEN
        for (row, column), value in np.ndenumerate(cells):
            words = f"{round(value, 1) + 0.0:+.1f}" if written and not np.isnan(value) else ""
            words += " ●" if marks[row, column] else ""
            if words:
                color = "white" if abs(value) > 0.6 * most else DARK
                axes.text(column, row, words.strip(), ha="center", va="center", color=color, fontsize=8)
        named = iter(labels([name for name in before if name is not None], 22))
        names = ["(start of a run)" if name is None else next(named) for name in before]
        axes.set_xticks(range(len(before)), names, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(tests)), labels(tests))
        axes.set(xlabel="direct predecessor", ylabel="measured test")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.figure.colorbar(image, ax=axes, label="%", pad=0.02)

    return svg("matrix", draw, 1.9 + 0.28 * max(len(tests), 3), BROAD)


def distributions(result: OrderResult, trials: Trials, names: Sequence[str]) -> str:
    """Plot the empirical distribution functions of both orders, for the first six names."""
    trials, slices = trials.grouped()
    rows_of = dict(zip(trials.names, slices, strict=True))
    titles = dict(zip(names, labels(names), strict=True))

    def panel(axes: Any, name: str) -> None:
        rows = rows_of[name]
        value, random = trials.value[rows], trials.random[rows]
        for which, color, style, label in (
            (~random, FIXED, "-", result.arm_labels[0]),
            (random, RANDOM, "--", result.arm_labels[1]),
        ):
            some = np.sort(value[which & ~np.isnan(value)])
            if some.size:
                at = np.unique(np.linspace(0, some.size - 1, min(some.size, MOST_PANEL_POINTS)).round().astype(int))
                axes.step(some[at], (at + 1) / some.size, where="post", color=color, linestyle=style, label=label)
        unit, p = result.tests[name].unit, result.tests[name].p_decides
        title = titles[name] if p is None else f"{titles[name]}\n{mark(result.tests[name].significant)} p = {p:.2g}"
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set(xlabel=shortened(unit, 12) if unit else "value", ylabel="share of values", title=title)

    return panels("ecdf", panel, names[:MOST_PANELS], legend=True)


def drift(result: OrderResult, trials: Trials, names: Sequence[str]) -> str:
    """Plot the values of both orders over time, for the first six names. With several hosts, there is a panel with its
    own time axis for each host of each test, at most six panels in total.
    """
    trials, slices = trials.grouped()
    rows_of = dict(zip(trials.names, slices, strict=True))
    times = runs_by_host(trials) if trials.host is not None else trials.run
    hosts: Sequence[str | None] = trials.hosts if trials.host is not None else (None,)
    shown = [(name, number) for name in names[:MOST_PANELS] for number in range(len(hosts))][:MOST_PANELS]

    def panel(axes: Any, place: str) -> None:
        assert times is not None
        name, number = shown[int(place)]
        rows = rows_of[name]
        known = ~np.isnan(trials.value[rows])
        if trials.host is not None:
            known &= trials.host[rows] == number
        arms = zip((False, True), (FIXED, RANDOM), "oD", result.arm_labels, strict=True)
        for random, color, marker, label in arms:
            some = rows.start + np.flatnonzero(known & (trials.random[rows] == random))
            some = some[:: -(-some.size // MOST_PANEL_POINTS) or 1]
            dots(axes, times[some] + 1, trials.value[some], not random, color, marker, label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.ticklabel_format(axis="y", useOffset=False)
        unit, host = result.tests[name].unit, hosts[number]
        title = _titled(name, result.tests[name], "drift") if host is None else shortened(f"{host}: {name}")
        axes.set(xlabel="run, in time", ylabel=shortened(unit, 12) if unit else "value", title=title)

    return panels("drift", panel, [str(place) for place in range(len(shown))], legend=True)


def _titled(name: str, test: OrderTest, effect: Within) -> str:
    p, significant = test.within(effect)
    return shortened(name) if p is None else f"{shortened(name)}\n{mark(significant)} p = {p:.2g}"
