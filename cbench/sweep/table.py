"""Tables and text charts of the sweeps for people, from their results."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.sweep.result import FailedCell, Mark, MeasuredCell, SweepResult
from cbench.sweep.sizes import binary

CHART = 44


def sweep(made: SweepResult) -> None:
    """A table for each number of accesses, and a chart of the largest."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 100)
    counter, unit = made.counter, made.counter.unit
    head = f"{made.workload} on CPU {made.cpu}: {unit} per access ({counter.name}, {made.trials:,} trials"
    console.print(escape(f"{head}, cells in random order, seed {made.seed})"), style="bold", soft_wrap=True)
    console.print(escape(f"TLB reach {made.tlb.source}"), soft_wrap=True)
    if not made.caches:
        console.print("cache sizes not known: this host shows none in sysfs")
    numbers = sorted({cell.accesses for cell in made.cells})
    for accesses in numbers:
        console.print()
        console.print(_table(made, accesses))
    if not all(cell.floor_repeats for cell in made.measured()):
        console.print("* no value repeats: the minimum instead of the floor")
    console.print()
    _chart(console, made, numbers[-1])


def _between(made: SweepResult, below: int, size: int) -> list[Mark]:
    """The marks that a step from one working set to the next one passes."""
    return [mark for mark in made.marks if below < mark.size <= size]


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
        for mark in _between(made, cell.size - 1, after.size - 1 if after else cell.size):
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


def _chart(console: Console, made: SweepResult, accesses: int) -> None:
    """Bars on a logarithmic scale: the median of an access by working set, caches and TLBs between them."""
    cells = made.measured(accesses)
    if not cells:
        return
    console.print(f"{made.counter.unit} per access, median of {accesses:,} accesses (logarithmic)")
    values = [max(cell.median_per_access, 1e-3) for cell in cells]
    low, high = min(values) / 1.5, max(values)
    for cell, value, after in zip(cells, values, [*cells[1:], None], strict=True):
        bar = "█" * max(round(CHART * math.log(value / low) / math.log(high / low)), 1)
        console.print(f"{binary(cell.size):>9} {bar} {value:,.2f}")
        for mark in _between(made, cell.size - 1, after.size - 1 if after else cell.size):
            console.print(f"{'':>9} ┄┄ {mark.name} ┄┄", style="dim")
