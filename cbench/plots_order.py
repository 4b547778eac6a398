"""The figures of an order-dependence report, as SVG texts; matplotlib is only needed for these.

As in D. Duplyakin et al., "Avoiding the Ordering Trap in Systems Performance Measurement", USENIX ATC 2023: p-values
and effect sizes sorted (figures 2 and 3), differences sorted (4), intervals by case (5), bars of cases (6). Beyond it:
position, predecessors, drift. Of many tests each is a point in one path, so that large studies stay light.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cbench.plots import pyplot
from cbench.stats.order.data import Trials

Row = Mapping[str, Any]
FIXED, RANDOM, PLAIN, LINE = "#1b6ca8", "#d1495b", "#3d4451", "#8a8f98"
WIDTH = 7.2
MOST_INTERVALS, MOST_DETAILS, MOST_CELLS, MOST_POINTS = 40, 6, 30, 4000


def p_values(made: Row) -> str:
    """The p-values in increasing order, with the level of one test and that of the family."""
    found = np.sort([max(each["p"], 1e-300) for each in made["tests"].values() if each["p"] is not None])

    def draw(axes: Any) -> None:
        _points(axes, np.arange(1, found.size + 1), found)
        axes.set_yscale("log")
        axes.axhline(made["alpha"], color=LINE, linestyle="--", linewidth=1)
        axes.axhline(made["alpha_bonferroni"], color=RANDOM, linestyle="--", linewidth=1)
        axes.annotate(f"{made['alpha']:g}", (1, made["alpha"]), xycoords=("axes fraction", "data"), color=LINE)
        axes.annotate(
            f"{made['alpha_bonferroni']:.2g}",
            (1, made["alpha_bonferroni"]),
            xycoords=("axes fraction", "data"),
            color=RANDOM,
        )
        axes.set(xlabel="tests, sorted", ylabel="p (Kruskal-Wallis)")

    return svg(draw)


def effects(made: Row) -> str:
    """Effect sizes in increasing order."""
    found = np.sort([each["epsilon2"] for each in made["tests"].values() if each["epsilon2"] is not None])

    def draw(axes: Any) -> None:
        _points(axes, np.arange(1, found.size + 1), found)
        axes.set(xlabel="tests, sorted", ylabel="effect size ε² = H/(n - 1)", ylim=(-0.02, 1.02))

    return svg(draw)


def deltas(made: Row) -> str:
    """Differences of the medians in increasing order, those that are significant in colour."""
    known = [each for each in made["tests"].values() if each["delta_pct_median"] is not None]
    known.sort(key=lambda each: each["delta_pct_median"])
    values = np.array([each["delta_pct_median"] for each in known])
    yes = np.array([each["significant"] for each in known], dtype=bool)
    places = np.arange(1, len(known) + 1)

    def draw(axes: Any) -> None:
        axes.axhline(0, color=LINE, linewidth=1)
        _points(axes, places[~yes], values[~yes], color=LINE, label="no difference shown")
        _points(axes, places[yes], values[yes], color=RANDOM, label="significant")
        axes.set(xlabel="tests, sorted", ylabel="Δ of the medians, %")
        axes.legend(frameon=False)

    return svg(draw)


def intervals(made: Row) -> str:
    """The medians' intervals of both orders in % of the fixed median, the smallest p-values first."""
    tests = [(name, each) for name, each in made["tests"].items() if each["median_fixed"] and each["ci_fixed"]]
    tests = [(name, each) for name, each in tests if each["ci_random"]]
    tests = sorted(tests, key=lambda item: item[1]["p"])[:MOST_INTERVALS][::-1]

    def draw(axes: Any) -> None:
        for place, (_, each) in enumerate(tests):
            base = abs(each["median_fixed"]) / 100
            for order, color, shift in (("fixed", FIXED, 0.15), ("random", RANDOM, -0.15)):
                low, high = ((end - each["median_fixed"]) / base for end in each[f"ci_{order}"])
                middle = (each[f"median_{order}"] - each["median_fixed"]) / base
                axes.plot([low, high], [place + shift] * 2, color=color, linewidth=2, solid_capstyle="butt")
                axes.plot([middle], [place + shift], "o", color=color, markersize=4)
        axes.set_yticks(range(len(tests)), [f"{shortened(name)}  {each['case']}" for name, each in tests])
        axes.plot([], [], color=FIXED, label="fixed order")
        axes.plot([], [], color=RANDOM, label="random order")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.6 / max(len(tests), 2)), ncols=2)
        axes.set(xlabel="% of the fixed order's median; the case stands behind the name")
        axes.margins(y=0.03)

    return svg(draw, height=1.2 + 0.32 * max(len(tests), 1))


def cases(made: Row) -> str:
    """How many tests there are of each case, and without intervals."""
    names = ("1: apart", "2: both inside", "3: neither", "no interval")
    every = [each["case"] for each in made["tests"].values()]
    counts = [every.count(1), every.count(2), every.count(3), every.count(None)]

    def draw(axes: Any) -> None:
        bars = axes.barh(names[::-1], counts[::-1], color=[LINE, PLAIN, FIXED, RANDOM])
        axes.bar_label(bars, [f" {count:,} ({100 * count / max(len(every), 1):.0f} %)" for count in counts[::-1]])
        axes.set(xlabel="tests")
        axes.margins(x=0.15)

    return svg(draw, height=1.8)


def positions(made: Row, names: Sequence[str]) -> str:
    """Medians by the position in the random runs, in % of the median of these, a panel a test."""

    def panel(axes: Any, name: str) -> None:
        groups = made["tests"][name]["position"]["groups"]
        base = float(np.median([group["median"] for group in groups])) or 1.0
        places = [group["label"] + 1 for group in groups]
        axes.axhline(0, color=LINE, linewidth=1)
        axes.plot(places, [100 * (group["median"] / base - 1) for group in groups], "o-", color=FIXED, markersize=4)
        axes.set(xlabel="position in the run", ylabel="%")

    return panels(panel, [name for name in names if made["tests"][name]["position"]][:MOST_DETAILS])


def matrix(made: Row) -> str:
    """Which test disturbs which: the median after each predecessor against the rest, in %."""
    tests = list(dict.fromkeys(each["test"] for each in made["predecessors"]))[:MOST_CELLS]
    after = list(dict.fromkeys(each["after"] for each in made["predecessors"] if each["test"] in tests))[:MOST_CELLS]
    after.sort(key=lambda name: (name is not None, tests.index(name) if name in tests else len(tests)))
    cells = np.full((len(tests), len(after)), np.nan)
    marks = []
    for each in made["predecessors"]:
        if each["test"] in tests and each["after"] in after and each["delta_pct"] is not None:
            row, column = tests.index(each["test"]), after.index(each["after"])
            cells[row, column] = each["delta_pct"]
            marks += [(column, row)] if each["significant"] else []
    known = cells[~np.isnan(cells)]
    most = float(np.abs(known).max()) if known.size else 1.0

    def draw(axes: Any) -> None:
        image = axes.imshow(cells, cmap="RdBu_r", vmin=-(most or 1.0), vmax=most or 1.0, aspect="auto")
        for column, row in marks:
            axes.text(column, row, "●", ha="center", va="center")
        names = ["(begin of a run)" if name is None else shortened(name) for name in after]
        axes.set_xticks(range(len(after)), names, rotation=40, ha="right")
        axes.set_yticks(range(len(tests)), [shortened(name) for name in tests])
        axes.set(xlabel="ran right before", ylabel="is measured")
        axes.figure.colorbar(image, ax=axes, label="% against all others")

    return svg(draw, height=2.0 + 0.3 * len(tests))


def drift(trials: Trials, names: Sequence[str]) -> str:
    """Values over the runs in time, both orders, a panel a test."""
    rows = dict(zip(trials.names, trials.by_series(), strict=True))

    def panel(axes: Any, name: str) -> None:
        assert trials.run is not None
        mine = rows[name]
        mine = mine[:: max(1, mine.size // MOST_POINTS)]
        for random, color, label in ((False, FIXED, "fixed"), (True, RANDOM, "random")):
            some = mine[trials.random[mine] == random]
            _points(axes, trials.run[some] + 1, trials.value[some], color=color, label=label)
        axes.set(xlabel="run, in time")

    return panels(panel, list(names)[:MOST_DETAILS])


def panels(panel: Callable[[Any, str], None], names: Sequence[str]) -> str:
    """A panel for each test, two in a row."""
    plt = pyplot()
    rows = (len(names) + 1) // 2
    with plt.rc_context(STYLE):
        figure, every = plt.subplots(max(rows, 1), 2, figsize=(WIDTH, 2.1 * max(rows, 1)), squeeze=False)
        for axes, name in zip(every.flat, names, strict=False):
            panel(axes, name)
            axes.set_title(shortened(name), fontsize=9, loc="left")
        for axes in every.flat[len(names) :]:
            axes.set_visible(False)
        return _saved(figure)


def svg(draw: Callable[[Any], None], height: float = 2.6) -> str:
    """One figure."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height))
        draw(axes)
        return _saved(figure)


STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cbench",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def shortened(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _points(axes: Any, x: Any, y: Any, color: str = FIXED, label: str = "") -> None:
    """Points as one path, as a picture where there are very many."""
    axes.plot(x, y, ".", color=color, label=label, markersize=4 if len(x) < 500 else 2, rasterized=len(x) > MOST_POINTS)


def _saved(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot().close(figure)
    text = file.getvalue()
    return text[text.index("<svg") :]
