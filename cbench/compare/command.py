"""The command `cbench compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import Json
from cbench.console import show

Side = "A file of `cbench run --output`, or one of pyperf's; FILE:TEST for one workload of it."
Headline = Annotated[
    str,
    typer.Option(
        metavar="auto|median|floor|min|mean",
        help="What stands for a process; auto: the floor of cycle-exact data, else the median.",
    ),
]


def compare_command(
    a: Annotated[str, typer.Argument(metavar="A", help=Side)],
    b: Annotated[str, typer.Argument(metavar="B", help=Side)],
    *,
    headline: Headline = "auto",
    level: Annotated[float, typer.Option(metavar="PERCENT", help="Level of the intervals.")] = 95,
    margin: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Call B the same if it is within this of A, such as 1%.")
    ] = None,
    clean_only: Annotated[bool, typer.Option("--clean-only", help="Without the polluted trials.")] = False,
    as_json: Json = False,
) -> None:
    """Is B faster than A, slower, or the same? With the interval of the ratio and a test, process by process."""
    from cbench.compare import result, table

    compared = result.compare(a, b, headline=headline, level=level, margin=margin, clean_only=clean_only)
    show(compared, as_json, table.comparisons)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compare")(compare_command)
