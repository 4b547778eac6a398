"""The parts of a result's table that not every measurement has: processes, settling, further counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]
OWN = ("process", "trials", "floor", "median", "clean", "clean_range")
"""What a process's row has beside the levels of its factors."""
SHOWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)
"""Which of the discarded trials are shown; the last one too."""


def count(row: Row | None) -> str:
    """Least, median and most of what was counted beside the value, "-" where it was not."""
    if row is None:
        return "-"
    least, middle, most = row["min"], row["median"], row["max"]
    return f"{least:,}" if least == most else f"{least:,} .. {middle:,.0f} .. {most:,}"


def settling(console: Console, group: Sequence[Row]) -> None:
    """How the first, discarded trials came down to what followed (thesis, figure 3-13)."""
    for result in group:
        values, missed = result["settling"]["values"], result["settling"]["mispredictions"]
        if not values:
            continue
        shown = [n for n in SHOWN if n < len(values)] + [len(values)]
        done = {True: "settled", False: "NOT settled", None: "too few to have settled"}[result["settled"]]
        line = "  ".join(f"{n}: {values[n - 1]:,}{_missed(missed, n)}" for n in shown)
        console.print(escape(f"CPU {result['cpu']}: {done}, {len(values):,} discarded trials; {line}"), soft_wrap=True)


def _missed(missed: Sequence[int], number: int) -> str:
    return f" ({missed[number - 1]:,} mispredicted)" if len(missed) >= number else ""


def processes(console: Console, group: Sequence[Row]) -> None:
    """A row a process, and the spread within and between them, where there are several."""
    for result in group:
        found = result["processes"]
        rows = found["each"]
        if len(rows) < 2:
            continue
        names = [name for name in rows[0] if name not in OWN and len({row[name] for row in rows}) > 1]
        table = Table("process", *(escape(name) for name in names))
        for name in ("floor", "median", "clean", "clean range"):
            table.add_column(name, no_wrap=True)
        for row in rows:
            lowest = "no value repeats" if row["floor"] is None else f"{row['floor']:,}"
            width = "-" if row["clean_range"] is None else f"{row['clean_range']:,}"
            levels = [f"{row[name]:,}" for name in names]
            table.add_row(str(row["process"]), *levels, lowest, f"{row['median']:,.0f}", f"{row['clean']:,}", width)
        console.print(table)
        unit = result["counter"]["unit"]
        if found["floor_range"] is None:
            line = f"not in each process a value repeats; their lowest: range {found['lowest_range']:,} {unit}"
        else:
            line = f"floors of {len(rows)} processes: range {found['floor_range']:,} {unit}"
            line += f" ({found['floor_range_pct']:.4f} %)"
        if spread := found["spread"]:
            line += (
                f"; clean trials: standard deviation {spread['within']:,.1f} within a process, "
                f"{spread['between']:,.1f} between them ({100 * spread['share_between']:.0f} % of the variance)"
            )
        console.print(escape(f"CPU {result['cpu']}: {line}"), soft_wrap=True)
        for name, levels in found["by_level"].items():
            if levels:
                each = ", ".join(f"{name}={level}: {value:,.0f}" for level, value in levels.items())
                console.print(escape(f"  median of the lowest values by {name}: {each}"), soft_wrap=True)
