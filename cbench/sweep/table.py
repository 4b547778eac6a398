"""Tables of the sweeps for people, from their results."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.sweep.result import FailedCell, MeasuredCell, SweepResult
from cbench.sweep.sizes import binary


def sweep(made: SweepResult) -> None:
    """A table for each number of accesses."""
    console = table_console(100)
    counter, unit = made.counter, made.counter.unit
    head = f"{made.workload} on CPU {made.cpu}: {unit} per access ({counter.name}, {made.trials:,} trials"
    console.print(escape(f"{head}, cells in random order, seed {made.seed})"), style="bold", soft_wrap=True)
    console.print(escape(f"TLB reach {made.tlb.source}"), soft_wrap=True)
    if not made.caches:
        console.print("cache sizes not known: this host shows none in sysfs")
    for accesses in sorted({cell.accesses for cell in made.cells}):
        console.print()
        console.print(_table(made, accesses))
    if not all(cell.floor_repeats for cell in made.measured()):
        console.print("* no value repeats: the minimum instead of the floor")


def _table(made: SweepResult, accesses: int) -> Table:
    table = Table(title=f"{accesses:,} accesses", title_justify="left")
    for name in ("working set", "floor", "median", "range, % of floor", "of clean trials", "polluted"):
        first = name == "working set"
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    table.add_column("pages")
    cells = [cell for cell in made.cells if cell.accesses == accesses]
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if isinstance(cell, FailedCell):
            table.add_row(binary(cell.size), escape(cell.failed))
        else:
            table.add_row(*_cells(cell))
        for mark in made.marks:
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
