"""The commands `cbench run` and `cbench list`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import Detach, Json
from cbench.console import interruptible, show
from quiet import UsageError

if TYPE_CHECKING:
    from cbench.external.options import ExternalOptions


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
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD... | -- CMD...",
            help="A name from `cbench list`, FILE.c:FUNCTION, or LIB.so:FUNCTION; or after -- a command.",
        ),
    ] = None,
    *,
    commands: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="'CMD...'", help="A command to measure, quoted; several take turns."),
    ] = None,
    shell: Annotated[
        bool, typer.Option("--shell", help="Execute commands by /bin/sh, whose time is included.")
    ] = False,
    prepare: Annotated[
        list[str] | None,
        typer.Option(metavar="'CMD...'", help="Shell command before each trial of a command; once, or one for each."),
    ] = None,
    setup: Annotated[str, typer.Option(metavar="'CMD...'", help="Shell command before the first trial.")] = "",
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", help="Measure commands whose exit code is not 0.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials of each workload (1000, with --quick 200) or command (what 3 s are enough for)."),
    ] = None,
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
    seed: Annotated[int, typer.Option(help="For what --vary draws, and for the order of commands.")] = 1,
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
        float | None,
        typer.Option(metavar="S", help="End a workload of which no trial ends for S seconds (60; commands: never)."),
    ] = None,
    no_trace: Annotated[
        bool,
        typer.Option(
            "--no-trace",
            help="Causes from the counters alone. Else the kernel's trace names them, where it can be used (as root); "
            "that makes each interruption longer, and nothing else.",
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the table of all figures, and how the first trials settled.")
    ] = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Run workloads or commands: one number a trial, each with what is known to have come between."""
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if detach:
        from cbench.console import write_json
        from cbench.study import detached

        if not (words or commands or workloads):
            raise UsageError("nothing to measure: name a workload of `cbench list`, or a command after --")
        if output is None:
            raise UsageError("--detach: name the file that keeps every trial: -o FILE")
        job = detached.start_again(output)
        if as_json:
            write_json(job)
        return
    if words or commands:
        if len(workloads or []) > len(words):
            raise UsageError("workloads and commands cannot be measured together: leave one of them away")
        given = {
            "--events": events != "auto",
            "--until-clean": until_clean is not None,
            "--processes": processes != 1,
            "--vary": bool(vary),
            "--aslr": aslr,
            "--environment": bool(environment),
            "--stack": bool(stack),
            "--subtract-overhead": subtract,
            "--in-kernel": in_kernel,
            "--stop-machine": stop_machine,
            "--param": bool(param),
            "--no-trace": no_trace,
        }
        _only(given, "is for workloads; leave it away for a command")
        from cbench.external.options import external_options

        _commands(
            external_options(
                words,
                commands or [],
                shell=shell,
                prepare=prepare or [],
                setup=setup,
                trials=trials,
                warmup=warmup,
                quick=quick,
                counter=counter,
                cpus=cpu or [],
                ignore_failure=ignore_failure,
                timeout=timeout,
                seed=seed,
                output=output,
                command_line=sys.argv,
                environment=os.environ,
            ),
            as_json,
        )
        return
    if not workloads:
        raise UsageError("nothing to measure: name a workload of `cbench list`, or a command after --")
    for_commands = {"--shell": shell, "--prepare": bool(prepare), "--setup": bool(setup)}
    _only({**for_commands, "--ignore-failure": ignore_failure}, "is for a command: write it after --")
    from cbench.measure.shortcomings import shortcomings
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
        timeout=60 if timeout is None else timeout,
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
    show(result, as_json, table.tables if verbose else table.results)
    if shortcomings(result.results):
        raise typer.Exit(1)


def _only(given: dict[str, bool], why: str) -> None:
    """UsageError for the first option that was given."""
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"{name} {why}")


def _commands(options: ExternalOptions, as_json: bool) -> None:
    """Measure commands and show the result."""
    from cbench.console import TrialBar, tell
    from cbench.external import table
    from cbench.external.measure import measure
    from cbench.external.result import commands_result

    with interruptible(kept=options.output is not None), TrialBar() as bar:
        measured = measure(options, bar.show, tell)
    show(commands_result(measured), as_json, table.results)
