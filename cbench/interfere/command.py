"""The command `cbench interfere`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import MEASURE, Counter, Cpu, Json, Quick, Seed, Timeout
from cbench.console import interruptible, show


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(rich_help_panel=MEASURE)(interfere)


def interfere(
    workloads: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="Workload to measure, as for `cbench run`.")
    ],
    *,
    load: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD", help="Built-in workload used as load; repeatable (default: hash and memory)."),
    ] = None,
    cpu: Cpu = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials of each condition in all rounds together (default: 200, with --quick 40)."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds, each with one visit to every condition (default: 5, with --quick 2).")
    ] = None,
    counter: Counter = "auto",
    param: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A workload's parameter, such as n=1000.")
    ] = None,
    seed: Seed = 1,
    timeout: Timeout = 120,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Measure a workload beside a load on other CPUs.

    Each load runs in turn on a sibling thread, a core with the same cache, a far core, and another node.
    """
    from cbench.interfere import run, table

    options = run.InterfereOptions(
        workloads,
        loads=load or run.LOADS,
        cpu=cpu,
        trials=trials,
        rounds=rounds,
        counter=counter,
        params=param or [],
        seed=seed,
        timeout=timeout,
        quick=quick,
    )
    with interruptible():
        measured = run.measure(options)
    show(measured, as_json, table.interfere)
    if any(result.outputs > 1 for result in measured.results):
        raise typer.Exit(1)
