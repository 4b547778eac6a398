"""Options of the command line that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
Cpu = Annotated[str | None, typer.Option(help="CPU to measure on.")]
Counter = Annotated[str, typer.Option(help="Counter to read; `cbench list` has the names.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller measurements.")]
Timeout = Annotated[float, typer.Option(metavar="S", help="Stop a measurement when no trial ends within S seconds.")]
Seed = Annotated[int, typer.Option(help="Seed of the random order.")]
Detach = Annotated[bool, typer.Option("--detach", help="Measure detached from the terminal; see `cbench status`.")]

MEASURE, COMPARE, STUDY = "Measure", "Compare and report", "Study"


class SectionGroup(TyperGroup):
    """A group whose `--help` lists the commands by their panels, each with a complete one-line help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                row = (name, command.get_short_help_str(limit=500))
                panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(row)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)
