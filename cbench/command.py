"""Options of the command line that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Cpu = Annotated[str | None, typer.Option(help="CPU to measure on.")]
Counter = Annotated[str, typer.Option(help="What to count, see `cbench list`.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller measurements.")]
Timeout = Annotated[float, typer.Option(metavar="S", help="End a measurement of which no trial ends for S seconds.")]
Seed = Annotated[int, typer.Option(help="Of the random order.")]
Detach = Annotated[bool, typer.Option("--detach", help="Measure detached from the terminal; see `cbench status`.")]
