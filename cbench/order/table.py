"""Print an order analysis on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.order.result import ORDERS, WITHIN, CarryOver, OrderResult, OrderTest, Within
from cbench.order.verdict import by_itself, digits
from cbench.report.svg import shortened
from cbench.report.text import marked, number

MOST = 60
"""The maximum number of tests in the table, which shows those with the smallest p-values."""
MOST_RUNS = 10
INTERVALS = 0.95
"""The level of the intervals of Δ."""
LONGEST_NAME = 60
"""The maximum length of a name on a terminal; files and pipes contain whole names."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers, omitted if `known` is False. `within`: whether the column moves to a second table if one
    table does not fit.
    """

    name: str
    cell: Callable[[OrderTest], str]
    known: bool = True
    within: bool = False


def analysis(result: OrderResult, runs: bool = False) -> None:
    """Print the verdict, then a table of the tests; if it does not fit, two tables, with fewer columns if necessary.
    `runs`: whether to show the number of runs required to detect the requested shift.
    """
    console = table_console()
    for number_of_line, line in enumerate(result.verdict):
        _say(console, line, None if number_of_line else "bold")
    tests = list(result.tests.items())
    shown = tests if len(tests) <= MOST else result.by_p()[:MOST]
    if result.suite and result.suite.carry_over:
        console.print(_fitting(console, _carry_over(result.suite.carry_over, result.tests)))
    for table in _tables(console, result, shown):
        console.print(table)
    if result.hosts:
        console.print(_fitting(console, _hosts(result.by_p())))
    if len(tests) > len(shown):
        _say(console, f"shown: the {len(shown)} tests with the smallest p of {len(tests):,}; --json lists all")
    if runs:
        _say(console, _runs(result))
    for line in _legend(result):
        _say(console, line)


def _carry_over(tests: Sequence[CarryOver], of: Mapping[str, OrderTest]) -> Table:
    """A table that compares tests in separate processes and in one shared process, the largest difference first."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    head, unit = _units(list(of.values()))
    for name in ("test", f"isolated{head}", f"in-process{head}", "ratio", "p adjusted", "changed most by"):
        table.add_column(name, overflow="fold", justify="left" if name in ("test", "changed most by") else "right")
    for each in sorted(tests, key=lambda each: -abs(log(each.times or 1)))[:MOST]:
        medians = (_digits(median, unit(of[each.test])) for median in (each.isolated, each.in_process))
        p = marked(each.p_adjusted, each.significant)
        table.add_row(escape(each.test), *medians, number(each.times, "{:.3g}"), p, escape(each.after or "-"))
    return table


def _hosts(tests: Sequence[tuple[str, OrderTest]]) -> Table:
    """A table of each host alone and all hosts combined, for the tests with the smallest p."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("test", "host", "n", "p", "Δ", "interval of Δ", "p effect", "p level", "level"):
        table.add_column(name, overflow="fold", justify="left" if name in ("test", "host") else "right")
    for name, test in tests:
        if test.hosts is None or (table.row_count and table.row_count + len(test.hosts.hosts) >= MOST):
            continue
        for each in test.hosts.hosts:
            p = (number(value, "{:.2g}") for value in (each.p, each.p_effect, each.p_level))
            alone, effect, level = p
            delta = number(each.delta_pct, "{:+.2f} %")
            table.add_row(
                *(escape(shortened(name, LONGEST_NAME)), escape(each.host), f"{each.n_fixed:,} + {each.n_random:,}"),
                *(alone, delta, _ends(each.interval), effect, level, number(each.level_pct, "{:+.3g} %")),
            )
        table.add_row(
            *(escape(shortened(name, LONGEST_NAME)), "all hosts", f"{test.n_fixed:,} + {test.n_random:,}"),
            *(number(test.hosts.p, "{:.2g}"), number(test.delta_pct_hl, "{:+.2f} %"), _ends(test.delta_pct_interval)),
            *(number(test.hosts.p_interaction, "{:.2g}"), "-", "-"),
            end_section=True,
        )
    return table


def _runs(result: OrderResult) -> str:
    """The required number of runs for each test, as text; if there are more than MOST_RUNS tests, only for those that
    require the most runs.
    """
    needed = [(name, test.runs_needed) for name, test in result.tests.items()]
    shown = needed
    if len(needed) > MOST_RUNS:
        shown = sorted(needed, key=lambda item: 0 if item[1] is None else -item[1])[:MOST_RUNS]
    said = ", ".join(f"{shortened(name, LONGEST_NAME)} {'unknown' if n is None else f'{n:,}'}" for name, n in shown)
    more = f" and {len(needed) - len(shown):,} more (all in --json)" if len(needed) > len(shown) else ""
    if not result.compares:
        return "--delta: not applicable: the number of runs is for a comparison of two orders, and no test was compared"
    return f"{result.counted_runs} to detect a shift of all values by {result.power.delta_pct:g} %: {said}{more}"


def _units(tests: Sequence[OrderTest]) -> tuple[str, Callable[[OrderTest], str]]:
    """The unit for a column's header, "" unless all tests have the same unit; and a function that returns the unit for
    a test's cell, "" if the header has it.
    """
    units = {test.unit or "" for test in tests}
    if len(units) == 1 and "" not in units:
        return f" ({escape(units.pop())})", lambda _: ""
    return "", lambda test: f" {escape(test.unit)}" if test.unit else ""


def _digits(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{digits(value)}{unit}"


def _say(console: Console, line: str, style: str | None = None) -> None:
    console.print(escape(line), style=style, soft_wrap=not console.is_terminal)


def _tables(console: Console, result: OrderResult, tests: Sequence[tuple[str, OrderTest]]) -> list[Table]:
    """The tables that fit the terminal; if the output is a file, one table with all columns, one test per line."""
    known = [column for column in _columns(result, [test for _, test in tests]) if column.known]
    apart = [column for column in known if column.within]
    orders = [column for column in known if not column.within]
    medians = [column for column in orders if column.name != "Δ mean"]
    brief = [each for each in medians if each.name not in ("interval", "Δ median", "ε²")]
    if not console.is_terminal:
        return [_fitting(console, _table(tests, known))]
    short = [(shortened(name, LONGEST_NAME), each) for name, each in tests]
    tables = []
    for layout in ([known], [orders, apart], [medians, apart], [brief, apart]):
        tables = [_table(short, columns) for columns in layout if columns]
        if all(_width(console, table) <= console.width for table in tables):
            break
    return tables


def _fitting(console: Console, table: Table) -> Table:
    """The table; if the output is a file, the console is widened so that each test fits on one line."""
    if not console.is_terminal:
        console.width = max(console.width, _width(console, table))
    return table


def _width(console: Console, table: Table) -> int:
    """The width in columns at which each test fits on one line."""
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
    head, unit = _units(tests)
    fixed = any(test.n_fixed or test.failed_fixed for test in tests)
    return [
        Column("n", lambda test: f"{test.n_fixed:,} + {test.n_random:,}" if fixed else f"{test.n_random:,}"),
        Column("p", lambda test: marked(test.p_decides, test.significant), result.compares),
        Column("ε²", lambda test: number(test.epsilon2, "{:.3f}"), result.compares),
        Column(
            "p spread", lambda test: marked(test.p_spread, test.spread_significant), _any_spread(tests), within=True
        ),
        Column(
            "Δ",
            lambda test: number(test.delta_pct_hl, "{:+.2f} %"),
            any(test.delta_pct_hl is not None for test in tests),
        ),
        Column("interval of Δ", _delta_interval, any(test.delta_pct_interval for test in tests)),
        Column("Δ median", lambda test: number(test.delta_pct_median, "{:+.2f} %"), result.compares),
        Column("Δ mean", lambda test: number(test.delta_pct_mean, "{:+.2f} %"), result.compares),
        Column(f"{result.arms[0]}{head}", lambda test: _digits(test.median_fixed, unit(test)), fixed),
        Column("interval", lambda test: _interval(test.ci_fixed), any(test.ci_fixed for test in tests)),
        Column(f"{result.arms[1]}{head}", lambda test: _digits(test.median_random, unit(test))),
        Column("interval", lambda test: _interval(test.ci_random), any(test.ci_random for test in tests)),
        Column("case", lambda test: number(test.case, "{}"), any(test.case for test in tests)),
        *(
            Column(f"p {effect}", partial(_effect, effect=effect), _any_p(tests, effect), within=True)
            for effect in WITHIN
        ),
    ]


def _any_p(tests: Sequence[OrderTest], effect: Within) -> bool:
    return any(test.within(effect)[0] is not None for test in tests)


def _effect(test: OrderTest, effect: Within) -> str:
    return marked(*test.within(effect))


def _any_spread(tests: Sequence[OrderTest]) -> bool:
    return any(test.p_spread is not None for test in tests)


def _delta_interval(test: OrderTest) -> str:
    return _ends(test.delta_pct_interval)


def _ends(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None else f"{ends[0]:+.2f} to {ends[1]:+.2f}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None else f"[{digits(ends[0])}, {digits(ends[1])}]"


def _levels(result: OrderResult) -> str:
    """The level of each column of p-values, with its correction, as text."""
    tests = list(result.tests.values())
    counts = {
        "p": sum(test.p is not None for test in tests),
        "p spread": sum(test.p_spread is not None for test in tests),
    }
    for effect in WITHIN:
        counts[f"p {effect}"] = sum(test.within(effect)[0] is not None for test in tests)
    counts = {name: many for name, many in counts.items() if many}
    pair = ("p position", "p predecessor")
    together = by_itself(result.tests) and all(name in counts for name in pair)
    if together:  # one family, see families.corrected_effects
        counts = {" and ".join(pair): sum(counts.pop(name) for name in pair), **counts}
    levels = {name: f"{result.alpha / many:.3g}" for name, many in counts.items()}
    if len(set(levels.values())) <= 1:
        over = "both columns together" if together else "the column"
        return f"p < {next(iter(levels.values()), f'{result.alpha:g}')} (Bonferroni over {over})"
    over = "the column, or over both columns together" if together else "the column"
    return f"{', '.join(f'{name} < {level}' for name, level in levels.items())} (Bonferroni over {over})"


def _pairs(result: OrderResult) -> str:
    """The number of pairs that have values, or its range over the tests."""
    counts = [test.pairs for test in result.tests.values() if test.pairs is not None]
    fewest, most = min(counts), max(counts)
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _legend(result: OrderResult) -> list[str]:
    rule, tests = result.intervals, result.tests.values()
    significant = _levels(result)
    inside = "each median is inside the other interval"
    fixed, random = result.arms
    how = f"{fixed} against {result.arm_labels[1]} by ranks, the larger p of the permutation and Brunner-Munzel tests"
    if result.design.pairs:
        a_run = "a fixed and a random" if result.arms == ORDERS else "an isolated and an in-process"
        how = f"{_pairs(result)} pairs of {a_run} run, by signed ranks"
    if result.hosts:
        how = f"within hosts ({how}), combined by van Elteren's weights"
    if result.published:
        significant, inside = f"p < {result.alpha:g}, not corrected", "a median is inside the other interval"
        how = f"{fixed} against {result.arm_labels[1]} by the Kruskal-Wallis test, p by chi-squared"
    lines = [f"● significant in this column alone: {significant}"]
    lines[0] += (
        f"; {how}. ε²: effect size, from 0 to 1. "
        f"Δ: ({fixed} - {random})/{fixed}, the Hodges-Lehmann estimate with its {100 * INTERVALS:g} % interval."
        if result.compares
        else "."
    )
    if lonely := sum(test.without_partner for test in tests):
        said = "1 value whose partner is" if lonely == 1 else f"{lonely:,} values whose partners are"
        lines.append(f"n, medians, means, Δ and p spread leave out {said} missing.")
    if result.suite and result.suite.carry_over:
        lines.append("p adjusted: p of the comparison of the two kinds of runs, multiplied by the number of tests.")
    if _any_spread(list(tests)):
        how = "van Elteren's test of distances from the medians" if result.hosts else "Fligner and Killeen's test"
        lines.append(
            f"p spread: {how} of equal spread in both {'orders' if result.arms == ORDERS else 'kinds of runs'}."
        )
    needs = [test.ci_needs for test in tests if test.ci_needs is not None]
    if any(test.case for test in tests):
        lines.append(
            f"{fixed}, {random}: medians, with intervals at {100 * rule.level:.4g} % by {rule.rule} ranks. case 1: "
            f"the intervals do not overlap; 2: they overlap, and {inside}; 3: they overlap otherwise."
        )
    if needs:
        lines.append(f"-: an order with fewer than {max(needs):,} results has no interval at {100 * rule.level:.4g} %.")
    if any(_any_p(list(tests), effect) for effect in WITHIN):
        lines.append(
            f"p position, p predecessor: tests within the {random} runs; only the direct predecessor counts. p drift: "
            "test of all runs for a correlation with time."
        )
    if result.hosts:
        lines.append(
            "Table of tests: medians and intervals are those of values aligned to one level of all hosts. Table of "
            "hosts, not corrected: p: fixed against random order on this host alone; p effect: the order's effect on "
            "this host against its effect on the other hosts (all hosts: test of equal effects); p level: this host's "
            "level (mean of the medians of both orders) against the levels of the other hosts."
        )
    return lines
