"""The command `cbench gate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cbench.command import COMPARE, Json
from cbench.console import TrialBar, interruptible, show, tell


def gate_command(
    file: Annotated[
        Path, typer.Argument(metavar="gate.toml", help="File that describes the comparison (docs/gate.md).")
    ] = Path("gate.toml"),
    *,
    old: Annotated[str | None, typer.Option(metavar="REV|CMD", help="Use this instead of `old` in the file.")] = None,
    new: Annotated[str | None, typer.Option(metavar="REV|CMD", help="Use this instead of `new` in the file.")] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="P", help="Run the gate within `quiet run --profile P`; overrides `profile` in the file."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a summary for a pull request to FILE.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML to FILE.")] = None,
    artifacts: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the raw results of every run in DIR.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare old with new for CI. Exits with 0 without a regression, 1 with a regression, and 2 if it cannot judge."""
    from cbench.gate import config, report, result, table
    from quiet import QuietError, UsageError, check_savable, save

    taken = {os.path.realpath(file): str(file)}
    for path, option in ((markdown, "--markdown"), (junit, "--junit"), (artifacts, "--artifacts")):
        if path is not None:
            if (other := taken.setdefault(os.path.realpath(path), option)) != option:
                raise UsageError(f"{option} {path}: the same file as {other}; choose another path")
            if path is not artifacts:
                check_savable(str(path), option)

    def save_error(message: str) -> None:
        if junit is not None:
            save(str(junit), report.junit_error(message), "--junit")
        if markdown is not None and markdown.is_file():  # the summary of an earlier run
            save(str(markdown), report.markdown_error(message), "--markdown")

    save_error("the gate did not finish: it was killed, or its profile could not be applied")
    try:
        gate = config.load(file, old, new, profile)
        with interruptible(kept=artifacts is not None), TrialBar() as bar:
            judged = result.run(gate, artifacts, bar.show, tell)
    except QuietError as error:
        save_error(str(error))
        raise
    unwritten: QuietError | None = None
    for path, text, option in ((junit, report.junit, "--junit"), (markdown, report.markdown, "--markdown")):
        if path is not None:
            try:
                save(str(path), text(judged), option)
            except QuietError as error:
                unwritten = error
    show(judged, as_json, table.result)
    if unwritten:
        raise unwritten
    if judged.exit_code:
        raise typer.Exit(judged.exit_code)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("gate", rich_help_panel=COMPARE)(gate_command)
