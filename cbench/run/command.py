"""The commands `cbench run`, `cbench list` and `cbench explain`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import MEASURE, Detach, Json
from cbench.console import interruptible, show
from quiet import UsageError

if TYPE_CHECKING:
    from cbench.external.options import ExternalOptions


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run", rich_help_panel=MEASURE)(run)
    app.command("list", rich_help_panel=MEASURE)(list_command)
    app.command("explain", rich_help_panel=MEASURE)(explain_command)


def list_command(*, as_json: Json = False) -> None:
    """List the workloads and the counters, one line each."""
    from cbench.run import table
    from cbench.run.catalogue import catalogue

    show(catalogue(), as_json, table.catalogue)


def explain_command(
    name: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A workload or a counter from `cbench list`.")],
    *,
    as_json: Json = False,
) -> None:
    """Explain a workload or a counter.

    Shows a workload's parameters, their defaults and the expected cost, or a counter's unit, availability and method.
    """
    from cbench.run import table
    from cbench.run.catalogue import explained

    show(explained(name), as_json, table.explained)


def run(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD... | -- CMD...",
            help="A name from `cbench list`, FILE.c:FUNCTION, or LIB.so:FUNCTION; or a command after --.",
        ),
    ] = None,
    *,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command", metavar="'CMD...'", help="A command to measure, quoted; several are measured in alternation."
        ),
    ] = None,
    shell: Annotated[bool, typer.Option("--shell", help="Run commands with /bin/sh; the time includes it.")] = False,
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'CMD...'", help="Shell command before each trial of a command; give one, or one per command."
        ),
    ] = None,
    setup: Annotated[str, typer.Option(metavar="'CMD...'", help="Shell command before the first trial.")] = "",
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", help="Measure commands whose exit code is not 0.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials of each workload (1000, with --quick 200) or command (as many as fit in 3 s)."),
    ] = None,
    cpu: Annotated[
        list[str] | None,
        typer.Option(help="CPU to measure on, or a list like 0,2; several are shown side by side."),
    ] = None,
    warmup: Annotated[
        str, typer.Option(metavar="auto|N", help="Trials to discard first; auto: until settled.")
    ] = "auto",
    counter: Annotated[str, typer.Option(help="Counter that measures a trial; `cbench list` has the names.")] = "auto",
    events: Annotated[
        str, typer.Option(metavar="auto|none|A,B", help="Other events to count, such as branch-misses,l2-misses.")
    ] = "auto",
    until_clean: Annotated[
        int | None,
        typer.Option(metavar="K", help="Measure until K trials of each process are clean; see also --trials."),
    ] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="Measure in N processes, one after the other.")] = 1,
    vary: Annotated[
        str,
        typer.Option(metavar="all|A,B", help="Randomize for each process: aslr, environment, stack, offset, pages."),
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of --vary and of the order of commands.")] = 1,
    aslr: Annotated[bool, typer.Option("--aslr", help="Randomize addresses. Default: fixed where permitted.")] = False,
    environment: Annotated[int, typer.Option(metavar="BYTES", help="Enlarge the environment by BYTES.")] = 0,
    stack: Annotated[int, typer.Option(metavar="BYTES", help="Shift the stack down by BYTES.")] = 0,
    subtract: Annotated[
        bool,
        typer.Option("--subtract-overhead", help="Subtract the lowest value of an empty region from each trial."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Store each trial in FILE as it is measured."),
    ] = None,
    in_kernel: Annotated[
        bool, typer.Option("--in-kernel", help="Measure in the kernel with interrupts off; needs root and `make kmod`.")
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
        typer.Option(metavar="S", help="Stop a workload when no trial ends within S seconds (60; commands: never)."),
    ] = None,
    no_trace: Annotated[
        bool,
        typer.Option(
            "--no-trace",
            help="Detect causes from counters only. By default the kernel's trace names them (needs root), "
            "which lengthens each interruption.",
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all figures, and the warm-up of the first trials.")
    ] = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Run workloads or commands and report what interrupted them. Each trial gives one number."""
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if detach:
        from cbench.console import write_json
        from cbench.study import detached

        if not (words or commands or workloads):
            raise UsageError("nothing to measure: name a workload from `cbench list`, or a command after --")
        if output is None:
            raise UsageError("--detach needs -o FILE, the store for the trials")
        job = detached.start_again(output)
        if as_json:
            write_json(job)
        return
    if words or commands:
        if len(workloads or []) > len(words):
            raise UsageError("workloads and commands cannot be measured together: omit one of them")
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
        _only(given, "is for workloads; omit it for a command")
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
        raise UsageError("nothing to measure: name a workload from `cbench list`, or a command after --")
    for_commands = {"--shell": shell, "--prepare": bool(prepare), "--setup": bool(setup)}
    _only({**for_commands, "--ignore-failure": ignore_failure}, "is for a command: write the command after --")
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
    """Raise UsageError for the first option that is given."""
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
