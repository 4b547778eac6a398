"""docs/reference-commands.md: the help of every command. `python -m tests.reference.commands` writes it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import typer

import cbench.cli
import quiet.cli.app
from tests import CHECKOUT

FILE = CHECKOUT / "docs" / "reference-commands.md"
APPS = {"quiet": quiet.cli.app.app, "cbench": cbench.cli.app}
WIDTH = 100


def helps(name: str, command: click.Command, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Each command below (and with) this one: its full name and its help."""
    context = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    yield context.command_path, command.get_help(context)
    groups: dict[str, click.Command] = getattr(command, "commands", {})  # typer may bring its own copy of click
    if groups:
        for each, below in groups.items():
            if not below.hidden:
                yield from helps(each, below, context)


def written() -> str:
    """The page as the code has it now."""
    pages = [each for name, app in APPS.items() for each in helps(name, typer.main.get_command(app))]
    contents = "".join(f"- [{name}](#{name.replace(' ', '-')})\n" for name, _ in pages)
    sections = "".join(
        f"\n## {name}\n\n```text\n" + "".join(f"{line.rstrip()}\n" for line in text.splitlines()) + "```\n"
        for name, text in pages
    )
    return (
        f"# Commands\n\nWhat `--help` prints, written by `python -m tests.reference.commands`.\n\n{contents}{sections}"
    )


if __name__ == "__main__":
    FILE.write_text(written())
