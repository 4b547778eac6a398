"""The command `cbench export`."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from cbench.command import Json
from cbench.console import show


def _formats() -> str:
    """The choices of --format. Typer evaluates the annotation for this command only, so others load no exporter."""
    from cbench.export.export import EXPORTERS

    return "|".join(each.name for each in EXPORTERS)


def export_command(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A file of `cbench run --output`, or the store of a study or a screen."),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option("--format", metavar=_formats(), help="A row a trial, or the JSON that pyperf's commands read."),
    ],
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to (stdout).")] = None,
    clean_only: Annotated[bool, typer.Option("--clean-only", help="Without the polluted trials.")] = False,
    as_json: Json = False,
) -> None:
    """Write the stored trials as CSV, Parquet, or for pyperf: stats, hist, check, compare_to and show read that."""
    from cbench.export.export import ExportOptions, export
    from quiet import UsageError

    if as_json and output is None:
        raise UsageError("--json: only with --output FILE: the data themselves go to stdout")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    result = export(ExportOptions(data, kind, output, clean_only))
    if as_json:
        show(result, as_json, lambda _: None)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export")(export_command)
