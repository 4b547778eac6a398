"""Print tables of sweeps."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.machine.counters import CALIBRATED
from cbench.sweep.result import FailedCell, MeasuredCell, SweepResult
from cbench.sweep.sizes import binary


def sweep(result: SweepResult) -> None:
    """Print a table for each number of accesses."""
    console = table_console(100)
    counter, unit = result.counter, result.counter.unit
    head = f"{result.workload} on CPU {result.cpu}: {unit} per access ({counter.name}, {result.trials:,} trials"
    console.print(escape(f"{head}, cells in random order, seed {result.seed})"), style="bold", soft_wrap=True)
    console.print(escape(f"TLB reach {result.tlb.source}"), soft_wrap=True)
    if not result.caches:
        console.print("cache sizes not known: this host reports none in sysfs")
    for accesses in sorted({cell.accesses for cell in result.cells}):
        console.print()
        console.print(_table(result, accesses))
    if not all(cell.floor_repeats for cell in result.measured()):
        instead = (
            "the center of the trials, or the minimum if there is no center"
            if counter.name == CALIBRATED
            else "the minimum, because no value repeats exactly"
        )
        console.print(f"* shown instead of the floor: {instead}")


def _table(result: SweepResult, accesses: int) -> Table:
    table = Table(title=f"{accesses:,} accesses", title_justify="left")
    for name in ("working set", "floor", "median", "range, % of floor", "range of clean trials", "polluted"):
        first = name == "working set"
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    table.add_column("pages")
    cells = [cell for cell in result.cells if cell.accesses == accesses]
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if isinstance(cell, FailedCell):
            table.add_row(binary(cell.size), escape(cell.failed))
        else:
            table.add_row(*_cells(cell))
        for mark in result.marks:
            if cell.size <= mark.size < (after.size if after else cell.size + 1):
                table.add_row(f"── {mark.name}", style="dim")
    return table


def _cells(cell: MeasuredCell) -> tuple[str, ...]:
    clean = cell.clean_range_pct
    return (
        binary(cell.size),
        f"{cell.floor_per_access:,.3f}{'' if cell.floor_repeats else '*'}",
        f"{cell.median_per_access:,.3f}",
        f"{cell.range_pct:,.3f} %",
        "none clean" if clean is None else f"{clean:,.3f} %",
        f"{cell.polluted_pct:.0f} %",
        cell.pages,
    )
