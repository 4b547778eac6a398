"""The tables of `cbench compare`."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from cbench.compare.result import ComparedSide, ComparedTest, CompareResult
from cbench.compare.verdict import amount, percent
from cbench.console import table_console


def comparisons(result: CompareResult) -> None:
    """A table and a verdict for each test, then what was left out."""
    console = table_console(120)
    for side, file in (("A", result.a), ("B", result.b)):
        console.print(escape(f"{side}: {file}"), soft_wrap=True)
    for row in result.comparisons:
        console.print()
        console.print(escape(f"{row.test} ({row.unit or 'unknown unit'})"), style="bold", soft_wrap=True)
        console.print(_table(row))
        console.print(escape(row.verdict), soft_wrap=True)
        for note in row.notes:
            console.print(escape(f"  note: {note}"), soft_wrap=True)
    others = [
        ("not compared", result.skipped),
        ("compared with nothing, other units or counters", result.other_units),
        ("only in A", result.only_in_a),
        ("only in B", result.only_in_b),
    ]
    left = [f"{what}: {', '.join(lines)}" for what, lines in others if lines]
    if left:
        console.print()
    for line in left:
        console.print(escape(line), soft_wrap=True)
    if len(result.comparisons) > 1:
        level = f"{100 * result.level:g} %"
        console.print(f"\n{len(result.comparisons)} comparisons, each at {level} by itself", soft_wrap=True)


def _table(row: ComparedTest) -> Table:
    table = Table()
    table.add_column("")
    for side in ("A", "B"):
        table.add_column(side, justify="right")
    sides = (row.a, row.b)
    many = max(side.processes for side in sides) > 1
    of = " of the processes" if row.by == "process" else ""
    table.add_row("processes", *(f"{side.processes:,}" for side in sides))
    table.add_row("trials", *(f"{side.trials:,}" for side in sides))
    if any(side.polluted for side in sides):
        table.add_row("polluted trials", *(f"{side.polluted:,}" for side in sides))
    table.add_row(f"{row.headline}{of}", *(amount(side.headline) for side in sides))
    if many:
        table.add_row("spread between processes", *(_spread(side) for side in sides))
    table.add_row("B / A, median of all pairs", "", percent(row.ratio))
    if row.interval and row.interval_level is not None:
        low, high = row.interval
        table.add_row(f"interval at {100 * row.interval_level:.4g} %", "", f"{percent(low)} to {percent(high)}")
    if row.p is not None:
        table.add_row("Mann-Whitney U", "", f"p = {row.p:.3g} ({row.p_from})")
    return table


def _spread(side: ComparedSide) -> str:
    if side.between_processes is None:
        return "unknown"
    if not side.headline:
        return amount(side.between_processes)
    return f"{amount(side.between_processes)} ({100 * side.between_processes / side.headline:.3g} %)"
