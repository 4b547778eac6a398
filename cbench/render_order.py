"""An analysis of order dependence for people; everything shown comes from order/shape.py's plain objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]
MOST = 60
"""Of more tests only those with the smallest p-values are in the table."""


def analysis(made: Row) -> None:
    """The verdict, then a table of the tests."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 150)
    for line in made["verdict"]:
        console.print(escape(line), soft_wrap=True, style="bold" if line is made["verdict"][0] else None)
    console.print()
    tests = list(made["tests"].items())
    shown = tests if len(tests) <= MOST else sorted(tests, key=_by_p)[:MOST]
    console.print(_table(shown))
    if len(tests) > len(shown):
        console.print(f"the {len(shown)} tests with the smallest p of {len(tests):,}; all of them with --json")
    for line in _legend(made):
        console.print(escape(line), soft_wrap=True)


def _table(tests: list[tuple[str, Row]]) -> Table:
    table = Table()
    table.add_column("test")
    for name in ("n", "p", "", "ε²", "Δ median", "Δ mean", "median fixed", "median random", "case"):
        table.add_column(name, justify="right")
    for name in ("p position", "p predecessor", "p drift"):
        table.add_column(name, justify="right")
    for name, each in tests:
        table.add_row(
            escape(name),
            f"{each['n_fixed']:,} + {each['n_random']:,}",
            chance(each["p"]),
            "●" if each["significant"] else "○",
            number(each["epsilon2"], "{:.3f}"),
            number(each["delta_pct_median"], "{:+.2f} %"),
            number(each["delta_pct_mean"], "{:+.2f} %"),
            _median(each, "fixed"),
            _median(each, "random"),
            number(each["case"], "{}"),
            *(_marked(each, key) for key in ("position", "predecessor", "drift")),
        )
    return table


def chance(p: float | None) -> str:
    """A p-value with two digits that mean something."""
    if p is None:
        return "-"
    return f"{p:.2g}" if p < 0.0995 else f"{p:.2f}"


def corrected_by(made: Row) -> str:
    """The name of the correction for the number of tests."""
    names = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini and Hochberg"}
    return names.get(made["correction"], str(made["correction"]))


def number(value: float | None, shape: str) -> str:
    return "-" if value is None else shape.format(value)


def _marked(each: Row, key: str) -> str:
    return chance(each[f"{key}_p"]) + (" ●" if each[f"{key}_significant"] else "")


def _by_p(item: tuple[str, Row]) -> float:
    return 2.0 if item[1]["p"] is None else float(item[1]["p"])


def _median(each: Row, order: str) -> str:
    value, interval = each[f"median_{order}"], each[f"ci_{order}"]
    if value is None:
        return "-"
    if interval is None:
        return f"{value:,.6g}, no interval below n = {each['ci_needs']}"
    return f"{value:,.6g} [{interval[0]:,.6g}, {interval[1]:,.6g}]"


def _legend(made: Row) -> list[str]:
    rule = made["intervals"]
    corrected = {"bonferroni": f"p < {made['alpha_bonferroni']:.3g}", "none": f"p < {made['alpha']:g}, not corrected"}
    which = corrected.get(made["correction"], f"p < {made['alpha']:g} after {made['correction']}")
    decided = " by permutation" if made["null"] == "permutation" else ""
    return [
        f"● {which}{decided}; Kruskal-Wallis, fixed against random order. Δ: (fixed - random)/fixed.",
        f"intervals of the median by {rule['rule']} ranks at {100 * rule['level']:.4g} %, cases by the rule "
        f"{rule['case']!r}; position and predecessor: within the random runs, drift: over all runs.",
    ]
