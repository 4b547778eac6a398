"""An order analysis on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.order.result import WITHIN, OrderResult, OrderTest, Within
from cbench.report.svg import shortened
from cbench.report.text import marked, number

MOST = 60
"""Of more tests only those with the smallest p-values are in the table."""
MOST_RUNS = 10
LONGEST_NAME = 60
"""On a terminal; whole names are in files and pipes."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers; left out where `known` is False. `within`: of the second table where one does not fit."""

    name: str
    cell: Callable[[OrderTest], str]
    known: bool = True
    within: bool = False


def analysis(result: OrderResult, runs: bool = False) -> None:
    """The verdict, then a table of the tests; two tables of what is most important where one does not fit.

    `runs`: whether to say how many runs it takes to see the shift that was asked for.
    """
    console = table_console()
    for number_of_line, line in enumerate(result.verdict):
        _say(console, line, None if number_of_line else "bold")
    tests = list(result.tests.items())
    shown = tests if len(tests) <= MOST else result.by_p()[:MOST]
    for table in _tables(console, result, shown):
        console.print(table)
    if len(tests) > len(shown):
        _say(console, f"the {len(shown)} tests with the smallest p of {len(tests):,}; all of them with --json")
    if runs:
        _say(console, _runs(result))
    for line in _legend(result):
        _say(console, line)


def _runs(result: OrderResult) -> str:
    """Of more than MOST_RUNS tests those that take the most."""
    needed = [(name, test.runs_needed) for name, test in result.tests.items()]
    shown = needed
    if len(needed) > MOST_RUNS:
        shown = sorted(needed, key=lambda item: 0 if item[1] is None else -item[1])[:MOST_RUNS]
    said = ", ".join(f"{shortened(name, LONGEST_NAME)} {'not known' if n is None else f'{n:,}'}" for name, n in shown)
    more = f" and {len(needed) - len(shown):,} more (all in --json)" if len(needed) > len(shown) else ""
    return f"runs of each order to see {result.power.delta_pct:g} %: {said}{more}"


def _say(console: Console, line: str, style: str | None = None) -> None:
    console.print(escape(line), style=style, soft_wrap=not console.is_terminal)


def _tables(console: Console, result: OrderResult, tests: Sequence[tuple[str, OrderTest]]) -> list[Table]:
    """What fits; into a file everything in one table, a test a line."""
    known = [column for column in _columns(result, [test for _, test in tests]) if column.known]
    apart = [column for column in known if column.within]
    orders = [column for column in known if not column.within]
    medians = [column for column in orders if column.name != "Δ mean"]
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


def _table(tests: Sequence[tuple[str, OrderTest]], columns: Sequence[Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("test", overflow="fold")
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    for name, each in tests:
        table.add_row(escape(name), *(column.cell(each) for column in columns))
    return table


def _columns(result: OrderResult, tests: Sequence[OrderTest]) -> list[Column]:
    return [
        Column("n", lambda test: f"{test.n_fixed:,} + {test.n_random:,}"),
        Column("p", lambda test: marked(result.deciding_p(test), test.significant)),
        Column("ε²", lambda test: number(test.epsilon2, "{:.3f}")),
        Column("Δ median", lambda test: number(test.delta_pct_median, "{:+.2f} %")),
        Column("Δ mean", lambda test: number(test.delta_pct_mean, "{:+.2f} %")),
        Column("fixed", lambda test: number(test.median_fixed, "{:,.6g}")),
        Column("interval", lambda test: _interval(test.ci_fixed), any(test.ci_fixed for test in tests)),
        Column("random", lambda test: number(test.median_random, "{:,.6g}")),
        Column("interval", lambda test: _interval(test.ci_random), any(test.ci_random for test in tests)),
        Column("case", lambda test: number(test.case, "{}")),
        *(
            Column(f"p {effect}", partial(_effect, effect=effect), _any_p(tests, effect), within=True)
            for effect in WITHIN
        ),
    ]


def _any_p(tests: Sequence[OrderTest], effect: Within) -> bool:
    return any(test.within(effect)[0] is not None for test in tests)


def _effect(test: OrderTest, effect: Within) -> str:
    return marked(*test.within(effect))


def _interval(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None else f"[{ends[0]:,.6g}, {ends[1]:,.6g}]"


def _legend(result: OrderResult) -> list[str]:
    rule, tests = result.intervals, result.tests.values()
    significant, null, inside = f"p < {result.alpha_bonferroni:.3g} (Bonferroni)", "permutation", "both medians"
    if result.published:
        significant, null, inside = f"p < {result.alpha:g}, not corrected", "chi-squared", "a median"
    lines = [
        f"● significant: {significant}; fixed against random order by Kruskal and Wallis, p by {null}. ε²: size of the "
        "effect, from 0 to 1. Δ: (fixed - random)/fixed."
    ]
    needs = [test.ci_needs for test in tests if test.ci_needs is not None]
    if any(test.case for test in tests):
        lines.append(
            f"fixed, random: medians, with intervals at {100 * rule.level:.4g} % by {rule.rule} ranks. case 1: "
            f"these are apart; 2: they overlap with {inside} inside of the other's; 3: they overlap otherwise."
        )
    if needs:
        lines.append(f"no interval (-) at {100 * rule.level:.4g} % with fewer than {max(needs):,} results in an order.")
    if any(_any_p(list(tests), effect) for effect in WITHIN):
        lines.append("p position, predecessor: inside of the random runs; p drift: over all runs.")
    return lines
