"""The command line of cbench: parsing and printing only; what is heavy is imported when a command runs."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated, Any

import typer

from quiet.errors import QuietError

TRIALS = 1000
QUICK_TRIALS = 200

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure C code to the cycle, and say of every trial what came between.",
)


@app.callback()
def _commands() -> None:
    """Keeps `run` and `list` as subcommands."""


@app.command("list")
def list_command(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """The workloads with what they stress and their parameters, and the counters of this host."""
    from cbench import catalogue

    content = catalogue.content()
    if as_json:
        sys.stdout.write(json.dumps(content) + "\n")
        return
    from cbench import render

    render.catalogue(content)


@app.command()
def run(
    workloads: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="hash, sieve, memory, FILE.c:FUNCTION, LIB.so:FUNCTION")
    ],
    trials: Annotated[int | None, typer.Option(help="Trials of each workload.  [default: 1000; 200 with --quick]")] = None,
    cpu: Annotated[
        list[str] | None, typer.Option(help="CPU to measure on, or a list like 0,2; several: side by side.")
    ] = None,
    warmup: Annotated[str, typer.Option(metavar="auto|N", help="Trials to discard first; auto: until settled.")] = "auto",
    counter: Annotated[str, typer.Option(help="What to count, see `cbench list`.")] = "auto",
    param: Annotated[list[str] | None, typer.Option(metavar="K=V", help="A workload's parameter, such as n=1000.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small parameters and fewer trials.")] = False,
    timeout: Annotated[float, typer.Option(metavar="S", help="End a workload of which no trial ends for S seconds.")] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")] = False,
) -> None:
    """Run workloads, one number a trial, each with its provenance."""
    report = _measured(workloads, trials, cpu or [], warmup, counter, param or [], quick, timeout)
    for line in report["host"]["missing"]:
        _tell(line)
    if as_json:
        sys.stdout.write(json.dumps(report) + "\n")
        return
    from cbench import render

    render.results(report)


def _measured(
    names: list[str],
    trials: int | None,
    cpus: list[str],
    warmup: str,
    counter: str,
    settings: list[str],
    quick: bool,
    timeout: float,
) -> dict[str, Any]:
    import tempfile
    from pathlib import Path

    from cbench import batch, host, render, report
    from cbench import workloads as known
    from cbench.choice import choose_cpus
    from quiet.placement import isolated_cpus

    options = batch.options(_default(trials, quick), warmup, counter, timeout)
    isolated = isolated_cpus()
    chosen_cpus = choose_cpus(cpus, isolated)
    wanted = known.parse_settings(settings)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        workloads = batch.find(names, Path(cache), _tell)
        known.check_settings(workloads, wanted)
        params = [known.parameters(workload, wanted, quick) for workload in workloads]
        for workload, chosen in zip(workloads, params, strict=True):
            batch.check_memory(workload, chosen)
        with render.Bar() as bar:
            results = batch.measure(workloads, params, chosen_cpus, isolated, options, bar.show)
    described = host.describe(chosen_cpus, isolated)
    return report.run_dict(results, {**described, "missing": host.missing(results)})


def _default(trials: int | None, quick: bool) -> int:
    return trials if trials is not None else QUICK_TRIALS if quick else TRIALS


def _tell(line: str) -> None:
    print(f"cbench: {line}", file=sys.stderr)  # noqa: T201 - messages go to stderr


def main() -> None:
    """Entry point: every error is one line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(prog_name="cbench", standalone_mode=True)
    except QuietError as error:
        _tell(f"error: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _tell("interrupted")
        sys.exit(130)
