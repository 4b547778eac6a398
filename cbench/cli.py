"""The command line of cbench: parsing and printing only; what is heavy is imported when a command runs."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from cbench import cli_sweep
from quiet.entry import enter
from quiet.errors import QuietError


class StoppedError(QuietError):
    """Ctrl-C, with the exit code that shells give it."""

    exit_code = 128 + signal.SIGINT


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure C code to the cycle, and say of every trial what came between.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Workloads = Annotated[
    list[str],
    typer.Argument(metavar="WORKLOAD...", help="hash, sieve, memory, FILE.c:FUNCTION, LIB.so:FUNCTION"),
]
Trials = Annotated[int | None, typer.Option(help="Trials of each workload (1000, with --quick 200).")]
Cpus = Annotated[
    list[str] | None,
    typer.Option(help="CPU to measure on, or a list like 0,2; several are shown side by side."),
]
Warmup = Annotated[str, typer.Option(metavar="auto|N", help="Trials to discard first; auto: until settled.")]
Params = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A workload's parameter, such as n=1000.")]
Timeout = Annotated[float, typer.Option(metavar="S", help="End a workload of which no trial ends for S seconds.")]

NoTrace = Annotated[
    bool,
    typer.Option(
        "--no-trace",
        help="Causes from the counters alone. Else the kernel's trace names them, where it can be used (as root); "
        "that makes each interruption longer, and nothing else.",
    ),
]


@app.command("list")
def list_command(*, as_json: Json = False) -> None:
    """The workloads with what they stress and their parameters, and the counters of this host."""
    from cbench import commands

    content = commands.listing()
    _about_to_print()
    if as_json:
        sys.stdout.write(json.dumps(content) + "\n")
    else:
        commands.show_listing(content)


@app.command()
def run(
    workloads: Workloads,
    *,
    trials: Trials = None,
    cpu: Cpus = None,
    warmup: Warmup = "auto",
    counter: Annotated[str, typer.Option(help="What to count, see `cbench list`.")] = "auto",
    param: Params = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small parameters and fewer trials.")] = False,
    timeout: Timeout = 60,
    no_trace: NoTrace = False,
    as_json: Json = False,
) -> None:
    """Run workloads: one number a trial, each with what is known to have come between."""
    from cbench import commands

    request = commands.Request(
        workloads=workloads,
        trials=trials,
        cpus=cpu or [],
        warmup=warmup,
        counter=counter,
        params=param or [],
        quick=quick,
        timeout=timeout,
        trace=not no_trace,
    )
    try:
        made = commands.measure(request)
    except KeyboardInterrupt:
        raise StoppedError("interrupted, nothing was kept") from None
    _about_to_print()
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")
    else:
        commands.show_measured(made)


cli_sweep.add_to(app)


def _about_to_print() -> None:
    """From here on a reader that leaves early ends the command without a word, as it ends others."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _terminated(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def main() -> None:
    """The entry point."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _terminated)
    enter(app, "cbench")
