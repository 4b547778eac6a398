"""The commands `cbench run` and `cbench list`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cbench.command import Json
from cbench.console import interruptible, show


def add_to(app: typer.Typer) -> None:
    """Add the commands to cbench's."""
    app.command("list")(list_command)
    app.command()(run)


def list_command(*, as_json: Json = False) -> None:
    """The workloads with what they stress and their parameters, and the counters of this host."""
    from cbench.run import table
    from cbench.run.catalogue import catalogue

    show(catalogue(), as_json, table.catalogue)


def run(
    workloads: Annotated[
        list[str],
        typer.Argument(metavar="WORKLOAD...", help="A name from `cbench list`, FILE.c:FUNCTION, or LIB.so:FUNCTION."),
    ],
    *,
    trials: Annotated[int | None, typer.Option(help="Trials of each workload (1000, with --quick 200).")] = None,
    cpu: Annotated[
        list[str] | None,
        typer.Option(help="CPU to measure on, or a list like 0,2; several are shown side by side."),
    ] = None,
    warmup: Annotated[
        str, typer.Option(metavar="auto|N", help="Trials to discard first; auto: until settled.")
    ] = "auto",
    counter: Annotated[str, typer.Option(help="What gives a trial's number, see `cbench list`.")] = "auto",
    events: Annotated[
        str, typer.Option(metavar="auto|none|A,B", help="What to count beside it, such as branch-misses,l2-misses.")
    ] = "auto",
    until_clean: Annotated[
        int | None, typer.Option(metavar="K", help="Go on until K trials of each process are clean; see also --trials.")
    ] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="Measure in N processes, one after the other.")] = 1,
    vary: Annotated[
        str,
        typer.Option(metavar="all|A,B", help="What to draw for each process: aslr, environment, stack, offset, pages."),
    ] = "",
    seed: Annotated[int, typer.Option(help="For what --vary draws.")] = 1,
    aslr: Annotated[
        bool, typer.Option("--aslr", help="Random addresses; else they are fixed where that is permitted.")
    ] = False,
    environment: Annotated[int, typer.Option(metavar="BYTES", help="Make the environment so much larger.")] = 0,
    stack: Annotated[int, typer.Option(metavar="BYTES", help="Begin the stack so much lower.")] = 0,
    subtract: Annotated[
        bool,
        typer.Option("--subtract-overhead", help="Take the lowest value of an empty region off every trial's value."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep every trial in this file as it is measured."),
    ] = None,
    in_kernel: Annotated[
        bool, typer.Option("--in-kernel", help="Measure in the kernel, interrupts off; needs root and `make kmod`.")
    ] = False,
    stop_machine: Annotated[
        bool, typer.Option("--stop-machine", help="With --in-kernel: hold every other CPU during each trial.")
    ] = False,
    param: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A workload's parameter, such as n=1000.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small parameters and fewer trials.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="S", help="End a workload of which no trial ends for S seconds.")
    ] = 60,
    no_trace: Annotated[
        bool,
        typer.Option(
            "--no-trace",
            help="Causes from the counters alone. Else the kernel's trace names them, where it can be used (as root); "
            "that makes each interruption longer, and nothing else.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run workloads: one number a trial, each with what is known to have come between."""
    from cbench.measure.result import shortcomings
    from cbench.model import Layout
    from cbench.run import run as command
    from cbench.run import table

    options = command.RunOptions(
        workloads=workloads,
        trials=trials,
        cpus=cpu or [],
        warmup=warmup,
        counter=counter,
        params=param or [],
        quick=quick,
        timeout=timeout,
        trace=not no_trace,
        events=events,
        until_clean=until_clean,
        processes=processes,
        vary=vary,
        seed=seed,
        base=Layout(aslr, environment, stack),
        subtract=subtract,
        output=output,
        in_kernel=in_kernel,
        stop_machine=stop_machine,
        command=sys.argv,
    )
    with interruptible(kept=output is not None):
        result = command.measure(options)
    show(result, as_json, table.results)
    if shortcomings(result.results):
        raise typer.Exit(1)
