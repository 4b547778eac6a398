"""The command `cbench layout`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import MEASURE, Json
from cbench.console import TrialBar, interruptible, show, tell


def layout_command(
    *,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Method that varies the layout: alignment, lld, mold, go, link-order, environment, free.",
        ),
    ] = "free",
    build: Annotated[
        str, typer.Option(metavar="'CMD'", help="Shell command that writes {program}; see docs/layout.md.")
    ] = "",
    run: Annotated[
        str, typer.Option(metavar="'CMD'", help="Command to measure (default: {program} without arguments).")
    ] = "",
    objects: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="File to link, for preset link-order; repeatable.")
    ] = None,
    builds: Annotated[int, typer.Option(metavar="N", help="Number of layouts to build.")] = 10,
    effect: Annotated[
        str, typer.Option(metavar="SHARE", help="Report the number of builds that a claim of this size needs.")
    ] = "1%",
    budget: Annotated[float, typer.Option(metavar="S", help="Measuring time in seconds, without the builds.")] = 30,
    blocks: Annotated[int | None, typer.Option(metavar="N", help="Measure N blocks, each with all builds.")] = None,
    cpu: Annotated[list[str] | None, typer.Option(help="CPU to measure on, or a list like 0,2.")] = None,
    profile: Annotated[str, typer.Option(metavar="P", help="Measure within `quiet run --profile P`.")] = "",
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="End a run after S seconds (default: never).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the layouts and the orders.")] = 1,
    as_json: Json = False,
) -> None:
    """Measure the effect of a program's memory layout on its time.

    Builds the program in many layouts and reports the number of builds that a claim needs.
    """
    from cbench.compare.result import share
    from cbench.layout import result, table
    from cbench.layout.options import LayoutOptions

    options = LayoutOptions(
        preset=preset,
        build=build,
        run=run,
        objects=tuple(objects or ()),
        builds=builds,
        effect=share(effect, "--effect"),
        budget_s=budget,
        blocks=blocks,
        cpus=tuple(cpu or ()),
        profile=profile,
        timeout=timeout,
        seed=seed,
    )
    with interruptible(), TrialBar() as bar:
        found = result.run(options, bar.show, tell)
    show(found, as_json, table.result)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("layout", rich_help_panel=MEASURE)(layout_command)
