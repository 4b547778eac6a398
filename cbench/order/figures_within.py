"""The figures of an order-dependence report that look inside of the runs: position, predecessor, drift; SVG texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbench.order.result import OrderResult, OrderTest, Within
from cbench.report.svg import BROAD, DARK, FAINT, FIXED, GREY, RANDOM, dots, panels, shortened, svg
from cbench.report.text import mark
from cbench.stats.trials import Trials

MOST_PANELS = 6
MOST_CELLS = 30
"""Rows and columns of the matrix."""
MOST_WRITTEN = 14
"""... of one whose numbers stand in its cells."""
MOST_POINTS = 600
"""Points of one order in a panel."""
MOST_JOINED = 30


def positions(made: OrderResult, names: Sequence[str]) -> str:
    """Medians by the position in the random runs, in % of their own median; the first six names."""

    def panel(axes: Any, name: str) -> None:
        test = made.tests[name].position
        assert test is not None
        places = [group.label + 1 for group in test.groups if isinstance(group.label, int)]
        joined = len(places) == test.labels <= MOST_JOINED
        values, unit = relative([group.median for group in test.groups])
        axes.axhline(0, color=GREY, linewidth=0.8)
        if joined:
            axes.plot(places, values, "-", color=RANDOM, linewidth=1)
        dots(axes, places, values, True, RANDOM, "D")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="position in the run", ylabel=unit, title=_titled(name, made.tests[name], "position"))
        axes.margins(y=0.15)

    return panels("position", panel, names[:MOST_PANELS])


def relative(values: Sequence[float]) -> tuple[list[float], str]:
    """In % away from their median, and what that is; from 0 where this is 0."""
    base = float(np.median(values))
    if not base:
        return list(values), "median"
    return [100 * (value - base) / abs(base) for value in values], "%"


def matrix(made: OrderResult) -> str:
    """Which test disturbs which: the median after each predecessor against the rest, in %; clearest effects if many."""
    clearest = sorted(made.predecessors, key=lambda each: (each.p_holm, each.p))
    measured = set(list(dict.fromkeys(each.test for each in clearest))[:MOST_CELLS])
    tests = [name for name in made.tests if name in measured]
    inside = [each for each in clearest if each.test in measured]
    before = list(dict.fromkeys(each.after for each in inside))[:MOST_CELLS]
    place: dict[str, int] = {}
    for number, name in enumerate(made.tests):
        place.setdefault(name, number)
        place.setdefault(name.rpartition(":")[0], number)  # a metric's name stands behind that of its test
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
        axes.patch.set(facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0)  # seen where a cell is empty
        image = axes.imshow(cells, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="none")
        written = max(cells.shape) <= MOST_WRITTEN
        for (row, column), value in np.ndenumerate(cells):
            words = f"{round(value, 1) + 0.0:+.1f}" if written and not np.isnan(value) else ""
            words += " ●" if marks[row, column] else ""
            if words:
                color = "white" if abs(value) > 0.6 * most else DARK
                axes.text(column, row, words.strip(), ha="center", va="center", color=color, fontsize=8)
        names = ["(begin of a run)" if name is None else shortened(name, 22) for name in before]
        axes.set_xticks(range(len(before)), names, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(tests)), [shortened(name) for name in tests])
        axes.set(xlabel="ran right before", ylabel="is measured")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.figure.colorbar(image, ax=axes, label="%", pad=0.02)

    return svg("matrix", draw, 1.9 + 0.28 * max(len(tests), 3), BROAD)


def drift(made: OrderResult, trials: Trials, names: Sequence[str]) -> str:
    """Values over the runs in time, both orders; the first six names."""
    number = {name: each for each, name in enumerate(trials.names)}
    wanted = {number[name]: name for name in names[:MOST_PANELS]}
    rows = {wanted[at]: mine for at, mine in enumerate(trials.by_series()) if at in wanted}

    def panel(axes: Any, name: str) -> None:
        assert trials.run is not None
        mine = rows[name]
        mine = mine[~np.isnan(trials.value[mine])]
        for random, color, shape, label in ((False, FIXED, "o", "fixed order"), (True, RANDOM, "D", "random order")):
            some = mine[trials.random[mine] == random]
            some = some[:: -(-some.size // MOST_POINTS) or 1]
            dots(axes, trials.run[some] + 1, trials.value[some], not random, color, shape, label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.ticklabel_format(axis="y", useOffset=False)
        unit = made.tests[name].unit
        title = _titled(name, made.tests[name], "drift")
        axes.set(xlabel="run, in time", ylabel=shortened(unit, 12) if unit else "value", title=title)

    return panels("drift", panel, names[:MOST_PANELS], legend=True)


def _titled(name: str, test: OrderTest, effect: Within) -> str:
    p, significant = test.within(effect)
    return shortened(name) if p is None else f"{shortened(name)}\n{mark(significant)} p = {p:.2g}"
