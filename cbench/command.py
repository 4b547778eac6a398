"""Define command-line options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Cpu = Annotated[str | None, typer.Option(help="CPU to measure on.")]
Counter = Annotated[str, typer.Option(help="Counter to read; `cbench list` has the names.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller measurements.")]
Timeout = Annotated[float, typer.Option(metavar="S", help="Stop a measurement when no trial ends within S seconds.")]
Seed = Annotated[int, typer.Option(help="Seed of the random order.")]
Detach = Annotated[bool, typer.Option("--detach", help="Measure detached from the terminal; see `cbench status`.")]

MEASURE, COMPARE, STUDY = "Measure", "Compare and report", "Study"
