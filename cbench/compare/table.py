"""Print the tables of `cbench compare`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.compare.result import CompareResult
from cbench.compare.single import ComparedSide, ComparedTest
from cbench.compare.suite import SAME
from cbench.compare.verdict import amount, change, limits, percent
from cbench.console import table_console

NAME_WIDTH = 12
"""The minimum width of the column of names, in which long names fold. All other columns keep their widths."""
WIDEST_NAME = 160
"""The longest name that stays on one line if the output is not a terminal."""
GAP = 2


def suite(result: CompareResult) -> None:
    """Print a line per test, regressions first, the skipped tests, and the summary."""
    console = table_console(max(120, 80 + min(max(map(len, result.tests)), WIDEST_NAME)))
    within = "" if result.margin is None else f" within {100 * result.margin:g} %"
    header = ("change %", f"{100 * result.level:g} % interval", "adjusted p", "n", "outcome")
    rows = [
        (
            change(test.delta_pct, test.interval_pct),
            limits(test.interval_pct),
            "" if test.claim_p is None else f"{test.claim_p:.2g}",
            f"{test.n[0]}, {test.n[1]}",
            test.outcome + (within if test.outcome == SAME else ""),
        )
        for test in result.tests.values()
    ]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    others = sum(widths) + GAP * len(widths)
    console.width = max(console.width, others + NAME_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    table.add_column("test", overflow="fold", max_width=console.width - others)
    for name, width in zip(header, widths, strict=True):
        table.add_column(name, justify="left" if name == "outcome" else "right", no_wrap=True, width=width)
    for name, cells in zip(result.tests, rows, strict=True):
        style = "bold red" if name in result.regressions else "green" if name in result.improvements else ""
        table.add_row(escape(name), *map(escape, cells), style=style)
    console.print(table)
    console.print()
    if result.remarks:
        console.print("A is OLD, B is NEW", soft_wrap=True)
    for line in result.remarks:
        console.print(escape(line), soft_wrap=True)
    _left_out(result, console)
    if result.too_few:
        console.print(result.too_few, soft_wrap=True)
    console.print(escape(result.counted), soft_wrap=True)


def detailed(result: CompareResult) -> None:
    """Print a table and a verdict for each test, then the skipped tests."""
    console = table_console(120)
    several = len(result.new) > 1
    for side, file in (("A (OLD)", result.a), *(() if several else (("B (NEW)", result.b),))):
        console.print(escape(f"{side}: {file}"), soft_wrap=True)
    for row in result.comparisons:
        console.print()
        if several:
            console.print(escape(f"B (NEW): {row.new}"), soft_wrap=True)
        console.print(escape(f"{row.test} ({row.unit or 'unknown unit'})"), style="bold", soft_wrap=True)
        console.print(_table(row))
        console.print(escape(row.verdict), soft_wrap=True)
        for note in row.notes:
            console.print(escape(f"  note: {note}"), soft_wrap=True)
    _left_out(result, console, "\n")
    if len(result.comparisons) > 1:
        console.print(escape(f"\n{result.counted}"), soft_wrap=True)


def _left_out(result: CompareResult, console: Console, before: str = "") -> None:
    """Print the tests that were not compared, that failed, that only one file has, or that may be renamed. Then print
    the differences between the hosts, and the interruptions. `before`: a prefix of the first line.
    """
    renamed = [f"{each.old} is now {each.new}" for each in result.possible_renames]
    others = [
        ("not compared", result.skipped, ", "),
        ("not compared: different units or counters (--force compares them)", result.other_units, ", "),
        ("failed", result.failed, "; "),
        ("only in OLD", result.only_in_old, ", "),
        ("only in NEW", result.only_in_new, ", "),
        ("possibly renamed (compare OLD:NAME with NEW:NAME)", renamed, "; "),
        ("hosts differ", result.hosts_differ, "; "),
    ]
    for what, lines, between in others:
        if lines:
            console.print(escape(f"{before}{what}: {between.join(lines)}"), soft_wrap=True)
            before = ""
    for line in result.interrupted:
        console.print(escape(f"{before}{line}"), soft_wrap=True)
        before = ""


def _table(row: ComparedTest) -> Table:
    table = Table()
    table.add_column("")
    for side in ("A", "B"):
        table.add_column(side, justify="right")
    sides = (row.a, row.b)
    many = max(side.processes for side in sides) > 1
    table.add_row("processes", *(f"{side.processes:,}" for side in sides))
    table.add_row("trials", *(f"{side.trials:,}" for side in sides))
    if any(side.polluted for side in sides):
        table.add_row("polluted trials", *(f"{side.polluted:,}" for side in sides))
    table.add_row(f"{row.headline} of the processes", *(amount(side.headline) for side in sides))
    if many:
        table.add_row("spread between processes (highest - lowest)", *(_spread(side) for side in sides))
    table.add_row("B / A, median of all pairs", "", percent(row.ratio))
    if row.interval and row.interval_level is not None:
        low, high = row.interval
        table.add_row(f"interval at {100 * row.interval_level:.4g} %", "", f"{percent(low)} to {percent(high)}")
    if row.p is not None:
        table.add_row("Mann-Whitney U", "", f"p = {row.p:.3g} ({row.p_from})")
    if row.p_holm is not None and row.p_holm != row.p:
        table.add_row("adjusted for all comparisons", "", f"p = {row.p_holm:.3g} (Holm)")
    if row.p_same_holm is not None:
        table.add_row("for a difference beyond the threshold", "", f"p = {row.p_same_holm:.3g}")
    return table


def _spread(side: ComparedSide) -> str:
    if side.between_processes is None:
        return "unknown"
    if not side.headline:
        return amount(side.between_processes)
    return f"{amount(side.between_processes)} ({100 * side.between_processes / side.headline:.3g} %)"
