"""The command `cbench sweep`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import MEASURE, Counter, Cpu, Json, Quick, Seed, Timeout
from cbench.console import interruptible, show

sweeps = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(sweeps, name="sweep", help="Measure a workload over a range of sizes.", rich_help_panel=MEASURE)


@sweeps.callback()
def _sweeps() -> None:
    """Measure a workload over a range of sizes."""


@sweeps.command()
def memory(
    *,
    sizes: Annotated[
        str | None,
        typer.Option(help="Working sets: sizes and ranges, such as 4K,1M-8M (default: 1K-2G, with --quick 1K-64M)."),
    ] = None,
    accesses: Annotated[
        str | None, typer.Option(help="Numbers of accesses per trial (default: 1e4,1e5,1e6, with --quick 1e4,1e5).")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Trials of each cell (default: 100, with --quick 20).")] = None,
    workload: Annotated[str, typer.Option(help="Workload with a working set: memory or chase.")] = "memory",
    cpu: Cpu = None,
    counter: Counter = "auto",
    seed: Seed = 1,
    timeout: Timeout = 120,
    quick: Quick = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write a plot (.svg or .png).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the cost of a memory access by working set size.

    Reports cost and spread for each working set and number of accesses.
    """
    from cbench.sweep import run, table
    from cbench.sweep.result import FailedCell

    options = run.SweepOptions(
        sizes=sizes,
        accesses=accesses,
        trials=trials,
        workload=workload,
        cpu=cpu,
        counter=counter,
        seed=seed,
        timeout=timeout,
        quick=quick,
        output=output,
    )
    with interruptible():
        swept = run.measure(options)
    show(swept, as_json, table.sweep)
    if any(isinstance(cell, FailedCell) for cell in swept.cells):
        raise typer.Exit(1)
