"""The commands `cbench status` and `cbench stop`, for the store of any measuring command."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import STUDY, Json
from cbench.console import show, tell

Stores = Annotated[list[str], typer.Argument(metavar="STORE...", help="Output files (-o) of measurements.")]


def status_command(
    stores: Stores,
    *,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Fail if another user can change a store, even if none exists yet.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Report the progress of measurements, including detached ones."""
    from pathlib import Path

    from cbench.jobs import table
    from cbench.jobs.status import status
    from cbench.store import trust

    for each in stores if trusted else []:
        trust.check(Path(each))
    show(table.Jobs(tuple(status(each) for each in stores)), as_json, table.jobs)


def stop_command(stores: Stores, *, as_json: Json = False) -> None:
    """Stop detached measurements.

    Settings that they changed are restored. Every trial that has ended is kept; a comparison keeps only
    complete blocks.
    """
    from pathlib import Path

    from cbench.jobs import table
    from cbench.jobs.status import status
    from cbench.study import detached

    for each in stores:
        status(each)
        detached.stop(Path(each))
    result = table.Jobs(tuple(status(each) for each in stores))
    if as_json:
        show(result, True, table.jobs)
        return
    for job in result.jobs:
        tell(f"{job.data}: {job.state}, {job.trials_done:,} trials are kept")


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("status", rich_help_panel=STUDY)(status_command)
    app.command("stop", rich_help_panel=STUDY)(stop_command)
