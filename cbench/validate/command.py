"""`cbench screen validate`: whether the instruments are fit for use."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer


def validate_command(
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The store; one that is there is gone on with.")
    ] = "validate.db",
    samples: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="Of each workload by each instrument (1000).")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="aliquot, competing, perfect, copy or etalon; repeatable (all)."),
    ] = None,
    instrument: Annotated[
        list[str] | None, typer.Option(metavar="READ", help="Such as wall or samples:fp; repeatable (all there are).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Ten samples, and small workloads: a minute.")] = False,
    seed: Annotated[int | None, typer.Option(help="For the order of trials (1).")] = None,
    watch: Annotated[
        str, typer.Option(metavar="S,S,...", help="What a watch said that the etalon took, trial by trial.")
    ] = "",
    no_run: Annotated[bool, typer.Option("--no-run", help="Only say what is in the store already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")] = False,
) -> None:
    """Try the instruments on work whose answer is known. Ends with 1 where one is at fault, or the watch differs."""
    from cbench.results import to_json
    from cbench.study.table import StudyBar
    from cbench.validate.plan import ValidateOptions
    from cbench.validate.run import validated

    chosen = tuple(workload or ()), tuple(instrument or ())
    options = ValidateOptions(output, samples, *chosen, quick, seed, watch, not no_run)
    with StudyBar() as bar:
        result = validated(options, bar.show)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(to_json(result)) + "\n")
    else:
        from cbench.validate.table import validation

        validation(result)
    sys.stdout.flush()
    if result.at_fault or result.watch_differs:
        raise typer.Exit(1)


def add_to(screen: typer.Typer) -> None:
    """Give `cbench screen` this command."""
    screen.command("validate")(validate_command)
