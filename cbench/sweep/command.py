"""The commands that measure under several conditions: sweep and interfere."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Cpu = Annotated[str | None, typer.Option(help="CPU to measure on.")]
Counter = Annotated[str, typer.Option(help="What to count, see `cbench list`.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller measurements.")]
Timeout = Annotated[float, typer.Option(metavar="S", help="End a measurement of which no trial ends for S seconds.")]
Seed = Annotated[int, typer.Option(help="Of the random order.")]

sweeps = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands to cbench's."""
    app.add_typer(sweeps, name="sweep", help="A workload over a range of sizes.")
    app.command()(interfere)


@sweeps.callback()
def _sweeps() -> None:
    """A workload over a range of sizes."""


@sweeps.command()
def memory(
    *,
    sizes: Annotated[str | None, typer.Option(help="Working sets: a list of sizes and ranges, 1K-2G.")] = None,
    half_steps: Annotated[bool, typer.Option("--half-steps", help="Also 1.5 times each power of two.")] = False,
    accesses: Annotated[str | None, typer.Option(help="Numbers of accesses in a trial, 1e4,1e5,1e6.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials of each cell (100, with --quick 20).")] = None,
    workload: Annotated[str, typer.Option(help="A workload that has a working set.")] = "memory",
    cpu: Cpu = None,
    counter: Counter = "auto",
    seed: Seed = 1,
    timeout: Timeout = 120,
    quick: Quick = False,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Plot, .svg or .png.")] = None,
    as_json: Json = False,
) -> None:
    """Cost and spread of a memory access by working set and number of accesses."""
    from cbench.sweep import run

    request = run.SweepRequest(
        sizes=sizes,
        half_steps=half_steps,
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
    made = _uninterrupted(lambda: run.measure(request))
    _print(made, as_json, run.show)
    if any(cell["failed"] for cell in made["cells"]):
        raise typer.Exit(1)


def interfere(
    workloads: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="As of `cbench run`: what is measured.")
    ],
    *,
    load: Annotated[
        list[str] | None, typer.Option(metavar="WORKLOAD", help="What disturbs, several times (hash and memory).")
    ] = None,
    period: Annotated[float | None, typer.Option(metavar="MS", help="Load in bursts, one every MS.")] = None,
    busy: Annotated[float | None, typer.Option(metavar="MS", help="How long a burst is.")] = None,
    cpu: Cpu = None,
    trials: Annotated[
        int | None, typer.Option(help="Trials of each condition, all rounds together (200, with --quick 40).")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="How often each condition is visited (5, with --quick 2).")] = None,
    counter: Counter = "auto",
    param: Annotated[list[str] | None, typer.Option(metavar="K=V", help="A workload's parameter, n=1000.")] = None,
    seed: Seed = 1,
    timeout: Timeout = 120,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """A workload with and without load: on a sibling thread, beside the same cache, on a far core, on another node."""
    from cbench.interfere import run as commands_interfere

    request = commands_interfere.InterfereRequest(
        workloads=workloads,
        loads=load or [],
        period_ms=period,
        busy_ms=busy,
        cpu=cpu,
        trials=trials,
        rounds=rounds,
        counter=counter,
        params=param or [],
        seed=seed,
        timeout=timeout,
        quick=quick,
    )
    made = _uninterrupted(lambda: commands_interfere.measure(request))
    _print(made, as_json, commands_interfere.show)
    if any(result["outputs"] > 1 for result in made["results"]):
        raise typer.Exit(1)


def _uninterrupted(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    from cbench.cli import StoppedError

    try:
        return measure()
    except KeyboardInterrupt:
        raise StoppedError("interrupted, nothing was kept") from None


def _print(made: Mapping[str, Any], as_json: bool, show: Callable[[Mapping[str, Any]], None]) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves early ends the command without a word
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")
    else:
        show(made)
