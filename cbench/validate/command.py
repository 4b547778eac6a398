"""The command `cbench screen validate`, which tests the instruments on work with a known answer."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import Json
from cbench.console import show


def validate_command(
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Store of the trials; an existing store is resumed.")
    ] = "validate.db",
    samples: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="Samples per workload and instrument (1000).")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="aliquot, competing, perfect, copy or etalon; repeatable (all)."),
    ] = None,
    instrument: Annotated[
        list[str] | None,
        typer.Option(metavar="READ", help="Instrument such as wall or samples:fp; repeatable (all available)."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Ten samples and small workloads: a few minutes.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the order of trials (1).")] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only report the results in the store.")] = False,
    as_json: Json = False,
) -> None:
    """Validate the instruments on work with a known answer. Exits with 1 if an instrument is at fault."""
    from cbench.study.table import study_progress
    from cbench.validate.plan import ValidateOptions
    from cbench.validate.run import validated

    chosen = tuple(workload or ()), tuple(instrument or ())
    options = ValidateOptions(output, samples, *chosen, quick, seed, not no_run)
    with study_progress() as progress:
        result = validated(options, progress)
    from cbench.validate.table import validation  # needs numpy; validated() reports if it is missing

    show(result, as_json, validation)
    if result.at_fault:
        raise typer.Exit(1)


def add_to(screen: typer.Typer) -> None:
    """Add the command to `cbench screen`."""
    screen.command("validate")(validate_command)
