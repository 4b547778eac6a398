"""Plot a memory sweep like figure 4-3 of the thesis (see measure.py): cost of an access and spread by working set."""

from __future__ import annotations

from typing import Any

from cbench.report import figures
from cbench.sweep.result import SweepResult
from cbench.sweep.sizes import binary

COLOURS = {"cache": "0.35", "tlb": "tab:red"}


def sweep(result: SweepResult, path: str) -> None:
    """Draw a sweep to `path`, an SVG or PNG file."""
    cells = result.measured()
    unit = result.counter.unit
    with figures.figure(path, 2) as (cost, spread):
        for accesses in sorted({cell.accesses for cell in cells}):
            mine = [cell for cell in cells if cell.accesses == accesses]
            sizes = [cell.size for cell in mine]
            (line,) = cost.plot(
                sizes, [c.median_per_access for c in mine], marker="o", ms=3, label=f"{accesses:,} accesses"
            )
            cost.plot(sizes, [c.floor_per_access for c in mine], ls=":", color=line.get_color())
            # points with a range of 0 have no place on a logarithmic axis and are omitted
            some = [c for c in mine if c.range_pct > 0]
            spread.plot([c.size for c in some], [c.range_pct for c in some], marker="o", ms=3)
        cost.set(yscale="log", ylabel=f"{unit} per access", title=_title(result))
        cost.legend(title="median (dotted: floor)", loc="upper left")
        spread.set(yscale="log", ylabel="range, % of the floor", xlabel="working set")
        spread.set_xscale("log", base=2)
        _marks(result, cost, spread, [cell.size for cell in cells])


def _title(result: SweepResult) -> str:
    where = "isolated" if result.host.quiet else "not isolated"
    return f"{result.workload} on CPU {result.cpu} ({where}), {result.trials:,} trials each: {result.host.cpu}"


def _marks(result: SweepResult, cost: Any, spread: Any, sizes: list[int]) -> None:
    low, high = min(sizes), max(sizes)
    inside = [mark for mark in result.marks if low <= mark.size <= high]
    for mark in inside:
        for axis in (cost, spread):
            axis.axvline(mark.size, color=COLOURS[mark.kind], lw=0.8, ls="--" if mark.kind == "tlb" else "-")
        spread.text(
            mark.size, 0.98, f" {mark.name}", transform=spread.get_xaxis_transform(), rotation=90,
            va="top", ha="right", fontsize=7, color=COLOURS[mark.kind],
        )  # fmt: skip
    ticks = [1 << power for power in range((low - 1).bit_length(), high.bit_length(), 2)]
    spread.set_xticks(ticks, [binary(tick) for tick in ticks], rotation=45)
    spread.minorticks_off()
    for axis in (cost, spread):
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
