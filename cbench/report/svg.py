"""Render figures as SVG elements for one HTML page: small, deterministic, with unique ids."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from cbench.report.figures import pyplot

WIDTH, BROAD = 5.6, 9.6  # inches: figures in two columns, figures over the whole page
DARK, GREY, FAINT = "#1d232b", "#6b7280", "#c9ced6"
FIXED, RANDOM = "#0072b2", "#d55e00"  # distinct for color-blind readers (Okabe and Ito); shapes also differ
LONGEST_NAME = 28
STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "text.parse_math": False,  # a test may have a $ in its name
    "axes.unicode_minus": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.06,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "legend.handletextpad": 0.5,
}
TAG, ID, LINK = re.compile(r"<[^<>]+>"), re.compile(r' id="([^"]*)"'), re.compile(r'(?:href="#|url\(#)([^")]+)')
LONG = re.compile(r"(\.\d\d)\d+")


def svg(key: str, draw: Callable[[Any], None], height: float = 2.6, width: float = WIDTH) -> str:
    """One pair of axes as an SVG element. `key`: prefix of its ids, unique in the page. Sizes are in inches."""
    with drawn(key, 1, 1, width, height) as (found, axes):
        draw(axes[0])
    return found[0]


def panels(
    key: str, panel: Callable[[Any, str], None], names: Sequence[str], legend: bool = False, height: float = 2.1
) -> str:
    """An SVG element with a panel for each name, at most three in a row. `legend`: whether to place the first panel's
    legend above all panels; `height`: the height of a panel in inches.
    """
    across = min(3, max(1, len(names)))
    down = max(1, -(-len(names) // across))
    with drawn(key, down, across, BROAD if across > 1 else WIDTH, 0.3 + height * down) as (found, every):
        for axes, name in zip(every, names, strict=False):
            panel(axes, name)
        for axes in every[len(names) :]:
            axes.set_visible(False)
        if legend:
            handles, labels = every[0].get_legend_handles_labels()
            every[0].figure.legend(handles, labels, loc="outside upper left", ncols=2)
    return found[0]


@contextmanager
def drawn(key: str, rows: int, columns: int, width: float, height: float) -> Iterator[tuple[list[str], list[Any]]]:
    """A context with a list that receives the figure's SVG text at the end, and with the axes to draw on."""
    plt = pyplot()
    found: list[str] = []
    with plt.rc_context({**STYLE, "svg.hashsalt": key}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser uses its own fonts
        figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
        try:
            yield found, list(axes.flat)
            file = io.StringIO()
            nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            import_module("matplotlib.backends.backend_svg").FigureCanvasSVG(figure).print_svg(file, metadata=nothing)
        finally:
            plt.close(figure)
    found.append(embedded(file.getvalue(), key))


def embedded(text: str, key: str) -> str:
    """The SVG element of a file, prepared for a page: without styles that would affect the page, and only with ids that
    are used and unique.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", text)
    used = {name for tag in TAG.findall(text) for name in LINK.findall(tag)}

    def shorter(match: re.Match[str]) -> str:
        tag = ID.sub(lambda m: f' id="{key}-{m[1]}"' if m[1] in used else "", match[0])
        tag = LINK.sub(lambda m: m[0].replace(f"#{m[1]}", f"#{key}-{m[1]}"), tag)
        tag = tag.replace("xlink:href", "href").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
        return LONG.sub(r"\1", tag)

    return TAG.sub(shorter, text)


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """A name shortened for a figure; its end is kept, since names often differ only there."""
    name = "".join(each if each.isprintable() else " " for each in name)
    if len(name) <= most:
        return name
    tail = most // 3
    return f"{name[: most - tail - 1]}…{name[-tail:]}"


def dots(axes: Any, x: Any, y: Any, filled: bool, color: str = DARK, shape: str = "o", label: str = "") -> None:
    """Draw points of one kind, filled or hollow."""
    size = 5.5 if len(x) < 100 else 3
    inside = color if filled else "white"
    style = {"markerfacecolor": inside, "markeredgecolor": color, "markeredgewidth": 1.0 if size > 4 else 0.6}
    axes.plot(x, y, shape, markersize=size, label=label, **style)
