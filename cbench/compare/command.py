"""The commands on what was stored: `cbench export` and `cbench compare`."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A file of `cbench run --output`, or the store of a study or a screen.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="csv|parquet|pyperf", help="A row a trial, or the JSON that pyperf's commands read."
    ),
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to (stdout).")]
CleanOnly = Annotated[bool, typer.Option("--clean-only", help="Without the polluted trials.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Side = "A file of `cbench run --output`, or one of pyperf's; FILE:TEST for one workload of it."
Headline = Annotated[
    str,
    typer.Option(
        metavar="auto|median|floor|min|mean",
        help="What stands for a process; auto: the floor of cycle-exact data, else the median.",
    ),
]


def export_command(
    data: Data,
    *,
    kind: Format,
    output: Output = None,
    clean_only: CleanOnly = False,
    as_json: Json = False,
) -> None:
    """Write the stored trials as CSV, Parquet, or for pyperf: stats, hist, check, compare_to and show read that."""
    from cbench.export.export import export
    from quiet.errors import UsageError

    if as_json and output is None:
        raise UsageError("--json: only with --output FILE: the data themselves go to stdout")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    made = export(data, kind, output, clean_only)
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")


def compare_command(
    a: Annotated[str, typer.Argument(metavar="A", help=Side)],
    b: Annotated[str, typer.Argument(metavar="B", help=Side)],
    *,
    headline: Headline = "auto",
    level: Annotated[float, typer.Option(metavar="PERCENT", help="Level of the intervals.")] = 95,
    margin: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Call B the same if it is within this of A, such as 1%.")
    ] = None,
    clean_only: CleanOnly = False,
    as_json: Json = False,
) -> None:
    """Is B faster than A, slower, or the same? With the interval of the ratio and a test, process by process."""
    from cbench.compare import result

    found = result.compared(a, b, result.options(headline, level, margin, clean_only))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        from cbench.compare import table

        table.comparisons(found)


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    app.command("export")(export_command)
    app.command("compare")(compare_command)
