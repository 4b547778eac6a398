"""An analysis of order dependence for people; everything shown comes from order/shape.py's plain objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.report.svg import shortened

Row = Mapping[str, Any]
MOST = 60
"""Of more tests only those with the smallest p-values are in the table."""
MOST_RUNS = 10
LONGEST_NAME = 60
"""On a terminal; whole names are in files and pipes."""
WITHIN = ("position", "predecessor", "drift")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers. `known`: the key that is None in all tests where there is nothing to show."""

    name: str
    cell: Callable[[Row], str]
    known: str = ""


def analysis(made: Row, runs: bool = False) -> None:
    """The verdict, then a table of the tests; two tables of what is most important where one does not fit.

    `runs`: whether to say how many runs it takes to see the shift that was asked for.
    """
    console = Console(highlight=False)
    for line in made["verdict"]:
        _say(console, line, "bold" if line is made["verdict"][0] else None)
    tests = list(made["tests"].items())
    if len(tests) > MOST:
        shown = sorted(tests, key=lambda item: 2.0 if (p := deciding(made, item[1])) is None else p)[:MOST]
    else:
        shown = tests
    for table in _tables(console, made, shown):
        console.print(table)
    if len(tests) > len(shown):
        _say(console, f"the {len(shown)} tests with the smallest p of {len(tests):,}; all of them with --json")
    if runs:
        _say(console, _runs(made))
    for line in _legend(made):
        _say(console, line)


def _runs(made: Row) -> str:
    """Of more than MOST_RUNS tests those that take the most."""
    needed = [(name, each["runs_needed"]) for name, each in made["tests"].items()]
    shown = needed
    if len(needed) > MOST_RUNS:
        shown = sorted(needed, key=lambda item: 0 if item[1] is None else -item[1])[:MOST_RUNS]
    said = ", ".join(f"{shortened(name, LONGEST_NAME)} {'not known' if n is None else f'{n:,}'}" for name, n in shown)
    more = f" and {len(needed) - len(shown):,} more (all in --json)" if len(needed) > len(shown) else ""
    return f"runs of each order to see {made['power']['delta_pct']:g} %: {said}{more}"


def _say(console: Console, line: str, style: str | None = None) -> None:
    console.print(escape(line), style=style, soft_wrap=not console.is_terminal)


def _tables(console: Console, made: Row, tests: Sequence[tuple[str, Row]]) -> list[Table]:
    """What fits; into a file everything in one table, a test a line."""
    known = [
        each for each in _columns(made) if not each.known or any(test[each.known] is not None for _, test in tests)
    ]
    apart = [each for each in known if each.known.removesuffix("_p") in WITHIN]
    orders = [each for each in known if each not in apart]
    medians = [each for each in orders if each.name != "Δ mean"]
    brief = [each for each in medians if each.name != "interval"]
    if not console.is_terminal:
        whole = _table(tests, known)
        console.width = max(console.width, _width(console, whole))
        return [whole]
    short = [(shortened(name, LONGEST_NAME), each) for name, each in tests]
    tables = []
    for layout in ([known], [orders, apart], [medians, apart], [brief, apart]):
        tables = [_table(short, columns) for columns in layout if columns]
        if all(_width(console, table) <= console.width for table in tables):
            break
    return tables


def _width(console: Console, table: Table) -> int:
    """What it needs to have each test on one line."""
    return console.measure(table, options=console.options.update(width=100_000)).maximum


def _table(tests: Sequence[tuple[str, Row]], columns: Sequence[Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("test", overflow="fold")
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    for name, each in tests:
        table.add_row(escape(name), *(column.cell(each) for column in columns))
    return table


def _columns(made: Row) -> list[Column]:
    return [
        Column("n", lambda each: f"{each['n_fixed']:,} + {each['n_random']:,}"),
        Column("p", partial(_decision, made)),
        Column("ε²", lambda each: number(each["epsilon2"], "{:.3f}")),
        Column("Δ median", lambda each: number(each["delta_pct_median"], "{:+.2f} %")),
        Column("Δ mean", lambda each: number(each["delta_pct_mean"], "{:+.2f} %")),
        Column("fixed", lambda each: number(each["median_fixed"], "{:,.6g}")),
        Column("interval", lambda each: _interval(each["ci_fixed"]), "ci_fixed"),
        Column("random", lambda each: number(each["median_random"], "{:,.6g}")),
        Column("interval", lambda each: _interval(each["ci_random"]), "ci_random"),
        Column("case", lambda each: number(each["case"], "{}")),
        *(Column(f"p {key}", partial(_marked, key=key), f"{key}_p") for key in WITHIN),
    ]


def deciding(made: Row, each: Row) -> float | None:
    """The p-value of a test on which its significance rests, before the correction; None where it has none."""
    p = each["p"] if made["null"] == "chi2" else each["p_permutation"]
    return None if p is None else float(p)


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
    p = each[f"{key}_p"]
    return chance(p) + ("" if p is None else " ●" if each[f"{key}_significant"] else " ○")


def _decision(made: Row, each: Row) -> str:
    p = deciding(made, each)
    return chance(p) + ("" if p is None else " ●" if each["significant"] else " ○")


def _interval(ends: Sequence[float] | None) -> str:
    return "-" if ends is None else f"[{ends[0]:,.6g}, {ends[1]:,.6g}]"


def _legend(made: Row) -> list[str]:
    rule, tests = made["intervals"], made["tests"].values()
    level = f"p < {made['alpha']:g}"
    by = {"bonferroni": f"p < {made['alpha_bonferroni']:.3g} (Bonferroni)", "none": f"{level}, not corrected"}
    significant = by.get(made["correction"], f"{level} after {corrected_by(made)}")
    null = "chi-squared" if made["null"] == "chi2" else "permutation"
    lines = [
        f"● significant: {significant}; fixed against random order by Kruskal and Wallis, p by {null}. ε²: size of the "
        "effect, from 0 to 1. Δ: (fixed - random)/fixed."
    ]
    needs = [each["ci_needs"] for each in tests if each["ci_needs"] is not None]
    inside = "both medians" if rule["case"] == "algorithm" else "a median"
    if any(each["case"] for each in tests):
        lines.append(
            f"fixed, random: medians, with intervals at {100 * rule['level']:.4g} % by {rule['rule']} ranks. case 1: "
            f"these are apart; 2: they overlap with {inside} inside of the other's; 3: they overlap otherwise."
        )
    if needs:
        lines.append(
            f"no interval (-) at {100 * rule['level']:.4g} % with fewer than {max(needs):,} results in an order."
        )
    if any(each[f"{key}_p"] is not None for each in tests for key in WITHIN):
        lines.append("p position, predecessor: inside of the random runs; p drift: over all runs.")
    return lines
