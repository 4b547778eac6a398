"""The command `cbench export`."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from cbench.command import COMPARE, Json
from cbench.console import show, tell


def _formats() -> str:
    """The choices of --format. Typer evaluates the annotation for this command only, so other commands load no
    exporter.
    """
    from cbench.export.export import EXPORTERS

    return "|".join(each.name for each in EXPORTERS)


def export_command(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A file of `cbench run --output`, the store of a study or a screen, or results of another benchmark "
            "program (docs/formats.md), or a directory of such results.",
        ),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            metavar=_formats(),
            help="csv, parquet: one row per trial; markdown: one row per test; others: another program's format.",
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Output file (default: stdout).")
    ] = None,
    clean_only: Annotated[bool, typer.Option("--clean-only", help="Leave out polluted trials.")] = False,
    as_json: Json = False,
) -> None:
    """Write results as a table or in another program's format. Examples are pyperf, hyperfine and benchstat."""
    from cbench.export.export import ExportOptions, export
    from quiet import UsageError

    if as_json and output is None:
        raise UsageError("--json needs --output FILE, because the data would otherwise go to stdout")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    result = export(ExportOptions(data, kind, output, clean_only))
    if result.omitted:
        tell(f"note: the table omits {result.omitted}; {data} contains them")
    if as_json:
        show(result, as_json, lambda _: None)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("export", rich_help_panel=COMPARE)(export_command)
