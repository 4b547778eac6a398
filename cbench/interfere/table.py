"""Print the table of an interference measurement."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.interfere.result import (
    InterfereResult,
    LoadedCondition,
    MeasuredCondition,
    UnmeasuredCondition,
    WorkloadInterference,
)


def interfere(measured: InterfereResult) -> None:
    """Print a table and a verdict for each workload."""
    console = table_console(120)
    unit, visits = measured.counter.unit, f"{len(measured.order)} visits of {measured.trials:,} trials"
    order = f"in random order (seed {measured.seed}), the first and the last visit without load"
    head = f"CPU {measured.cpu}, {unit}; steady load; {visits} {order}"
    console.print(escape(head), style="bold", soft_wrap=True)
    for result in measured.results:
        console.print()
        console.print(_table(measured, result))
        if not all(row.floor_repeats for row in result.measured):
            console.print("* no value repeats, so the 5 % quantile is shown instead of the floor")
        console.print(escape(result.verdict), soft_wrap=True)


def _table(measured: InterfereResult, result: WorkloadInterference) -> Table:
    settings = " ".join(f"{key}={value:,}" for key, value in result.params.items())
    table = Table(title=escape(f"{result.workload} ({settings})"), title_justify="left")
    table.add_column("load")
    table.add_column("CPU", justify="right")
    changes = ("change\nin floor", "change in median,\n95 % interval")
    for name in ("floor", "median", *changes, "polluted", "load ran"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result.conditions:
        table.add_row(*(_row(row) if isinstance(row, MeasuredCondition) else _absent(row)))
    for place in measured.places:
        if place.cpu is None:
            table.add_row(escape(f"on {place.title}: {place.reason}"), "none", style="dim")
    return table


def _absent(row: UnmeasuredCondition) -> tuple[str, ...]:
    return escape(f"{row.condition}: {row.reason}"), str(row.load_cpu)


def _row(row: MeasuredCondition) -> tuple[str, ...]:
    floor, interval = "", ""
    if isinstance(row, LoadedCondition):
        floor = f"{row.diff_floor_pct:+.2f} %"
        interval = f"{row.diff_median_pct:+.2f} % [{row.diff_low_pct:+.2f}, {row.diff_high_pct:+.2f}]"
    busy = row.load_busy_pct
    return (
        escape(row.condition),
        str(row.load_cpu) if row.load is not None else "",
        f"{row.floor:,}{'' if row.floor_repeats else '*'}",
        f"{row.median:,.0f}",
        floor,
        interval,
        f"{row.polluted_pct:.0f} %",
        "" if busy is None else f"{busy:.0f} %",
    )
