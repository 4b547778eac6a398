"""The series of a frequency step for people, from its plain object."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

GROUPS = 12
WIDTH = 40


def step(made: Mapping[str, Any]) -> None:
    """A table of both sides, a chart of the trials' times in order, and the verdict."""
    console = Console(highlight=False)
    unit, policy = made["counter"]["unit"], made["policy"]
    head = f"{made['workload']} on CPU {made['cpu']}: one frequency step ({policy['driver']}), restored afterwards"
    console.print(escape(head), style="bold", soft_wrap=True)
    table = Table("", "before", "after")
    sides = (made["before"], made["after"])
    table.add_row("frequency set", *(f"{made[key] / 1000:g} MHz" for key in ("from_khz", "to_khz")))
    table.add_row("frequency seen", *("unknown" if k is None else f"{k / 1000:g} MHz" for k in made["seen_khz"]))
    table.add_row("trials", *(f"{side['count']:,}" for side in sides))
    table.add_row(f"floor, {unit}", *(f"{s['floor']:,}{'' if s['floor_repeats'] else '*'}" for s in sides))
    table.add_row(f"median, {unit}", *(f"{side['median']:,.0f}" for side in sides))
    table.add_row("median time", *(f"{side['median_ns'] / 1e3:,.1f} us" for side in sides))
    console.print(table)
    if not all(side["floor_repeats"] for side in sides):
        console.print("* no value repeats: the minimum instead of the floor")
    console.print("median time of a trial, in order:")
    _chart(console, made)
    console.print(escape(made["verdict"]), soft_wrap=True)


def _chart(console: Console, made: Mapping[str, Any]) -> None:
    times, at = made["trials_ns"], made["written_after"]
    groups = [*_groups(0, at), *_groups(at, len(times))]
    highest = max(median(times[low:high]) for low, high in groups)
    for low, high in groups:
        if low == at:
            console.print("           ── frequency written ──", style="dim")
        middle = median(times[low:high])
        console.print(f"{low + 1:>6,}.. {'█' * max(round(WIDTH * middle / highest), 1)} {middle / 1e3:,.1f} us")


def _groups(start: int, end: int) -> list[tuple[int, int]]:
    size = max(-(-(end - start) // GROUPS), 1)
    return [(low, min(low + size, end)) for low in range(start, end, size)]
