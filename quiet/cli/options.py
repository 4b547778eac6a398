"""Define the options that several commands of `quiet` share, and the panels of its `--help`."""

from __future__ import annotations

from typing import Annotated

import typer

MEASURE, SETTINGS, REBOOT, HOST = "Measure", "Change and restore settings", "Across reboots", "Look up and record"

Profile = Annotated[
    str, typer.Option("--profile", "-p", help="A bundled profile (as-is, bench, strict), or the path of a .toml file.")
]
Named = Annotated[str | None, typer.Option("--profile", "-p", help="A profile. Default: the applied one, else bench.")]
Cpus = Annotated[
    str | None, typer.Option("--cpus", help="The CPUs to isolate, such as 2-3,8. Default: selected automatically.")
]
Root = Annotated[
    str, typer.Option("--root", metavar="DIR", help="The tree of a recorded machine, instead of this host.")
]
All = Annotated[bool, typer.Option("--all", help="List every change, and every setting left alone with its reason.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]

Duration = Annotated[str | None, typer.Option("--duration", metavar="S", help="Measure for S seconds. Default: 10.")]
Threshold = Annotated[
    str | None,
    typer.Option("--threshold", metavar="TIME", help="Shortest gap to report, such as 100ns. Default: 3 loop periods."),
]
MaxLost = Annotated[
    str | None,
    typer.Option(
        "--max-lost", metavar="PCT", help="The largest share of lost time that counts as quiet, such as 0.1%."
    ),
]
MaxGap = Annotated[
    str | None, typer.Option("--max-gap", metavar="TIME", help="The longest gap that counts as quiet, such as 50us.")
]
MaxInterrupts = Annotated[
    str | None,
    typer.Option("--max-interrupts", metavar="N", help="The most interrupts per second that count as quiet."),
]
Timeline = Annotated[
    str | None,
    typer.Option("--timeline", metavar="FILE.html", help="Write a figure of the gaps over time, colored by cause."),
]
