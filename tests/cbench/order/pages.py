"""Synthetic studies, their analysis, and their pages."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import numpy as np

from cbench.order import page
from cbench.order.page_study import StudyFacts
from cbench.order.result import OrderResult
from cbench.order.stats.analysis import AnalysisRules, analyze
from cbench.order.summarize import summarize
from cbench.stats.trials import Trials
from cbench.tables.columns import trials

NASTY = (
    "<script>alert('x')</script>",
    "a & b < c",
    "x" * 300,
    "größe-测试-🚀",
    'quote"\'s id="p-title"',
    "$\\alpha$ {x}",
)
VOID = {"meta", "link", "br", "img", "hr", "input"}


def study(names: Sequence[str], n: int = 12, shift: float = 0.05, orders: Sequence[str] = ("fixed", "random")) -> Any:
    """Columns: `n` runs of each order; every third test is slower in random order, the first one after the second."""
    draw = np.random.default_rng(5)
    columns: dict[str, list[Any]] = {key: [] for key in ("test", "order", "run", "position", "value")}
    for run in range(n * len(orders)):
        order = orders[run % len(orders)]
        which = draw.permutation(len(names)) if order == "random" else np.arange(len(names))
        for position, test in enumerate(which):
            value = (10 + test) * (1 + 0.02 * draw.standard_exponential())
            value *= 1 + shift if order == "random" and test % 3 == 0 else 1
            value *= 1.2 if position and test == 0 and which[position - 1] == 1 else 1
            for key, each in zip(columns, (names[test], order, run, position, float(f"{value:.6g}")), strict=True):
                columns[key].append(each)
    return columns


def analysed(columns: Any, **changes: Any) -> tuple[OrderResult, Trials]:
    found, warnings = trials(columns)
    return summarize(found, analyze(found, AnalysisRules(**changes)), warnings, 1.0), found


def paged(columns: Any, name: str = "study", **changes: Any) -> str:
    made, found = analysed(columns, **changes)
    return page.page(StudyFacts(name), made, found)


class Outline(HTMLParser):
    """The content of a page; AssertionError where an element is not closed, or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.tags.append((tag, dict(attrs)))
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src", "srcset", "action", "data", "poster"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def text(self, tag: str = "") -> str:
        return "\n".join(data for inside, data in self.texts if inside == tag or (not tag and inside != "style"))
