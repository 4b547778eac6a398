"""The command `cbench compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import COMPARE, Json
from cbench.console import show, tell

Side = (
    "Results: a file written by `cbench run --output` or by another benchmark program (docs/formats.md), or a "
    "directory of such files, one per process; FILE:TEST selects one test."
)
Headline = Annotated[
    str,
    typer.Option(
        metavar="auto|median|floor|min|mean|center",
        help="Value that represents a process; auto: the center of calibrated cycles (with several processes per "
        "side), the floor of cycle-exact data, else the median.",
    ),
]


def compare_command(
    old: Annotated[str, typer.Argument(metavar="OLD", help=Side)],
    new: Annotated[
        list[str],
        typer.Argument(
            metavar="NEW...",
            help="Results, specified like OLD; each is compared with OLD. For several processes of each build, give "
            "two directories, not a glob of files.",
        ),
    ],
    *,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Smallest relevant change, such as 1%; a test shown to change by less counts as the same.",
        ),
    ] = None,
    headline: Headline = "auto",
    level: Annotated[float, typer.Option(metavar="PERCENT", help="Level of the intervals and of all claims.")] = 95,
    clean_only: Annotated[bool, typer.Option("--clean-only", help="Leave out polluted trials.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also compare values in different units, such as ticks and cycles.")
    ] = False,
    better: Annotated[
        str | None,
        typer.Option(
            metavar="higher|lower",
            help="Which values are better, for units other than time (default: by the unit; for rates, higher).",
        ),
    ] = None,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a summary for a pull request to this file.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print a table and a verdict for each test.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Report which tests are faster, slower, or the same.

    Exits with 1 on a regression, and with 2 if no test can be judged.
    """
    from cbench.compare import result, table
    from cbench.compare.markdown import summary
    from cbench.compare.pairs import file_of
    from cbench.store.kind import check_not_lost
    from quiet import check_savable, save

    if markdown is not None:
        check_savable(markdown, "--markdown")
        check_not_lost(markdown, "--markdown", *(file_of(each)[0] for each in (old, *new)))
    compared = result.compare(
        old,
        *new,
        headline=headline,
        level=level,
        threshold=threshold,
        clean_only=clean_only,
        force=force,
        better=better,
    )
    if markdown is not None:
        save(markdown, summary(compared), "--markdown")
    show(compared, as_json, table.detailed if verbose or len(compared.comparisons) == 1 else table.suite)
    if why := compared.unjudged:
        tell(f"error: nothing can be judged: {why}")
    if compared.exit_code:
        raise typer.Exit(compared.exit_code)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare", rich_help_panel=COMPARE)(compare_command)
