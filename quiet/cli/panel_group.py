"""Format the `--help` of both commands, with panels of subcommands."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class PanelGroup(TyperGroup):
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
