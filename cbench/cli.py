"""Assemble the command line of cbench. Heavy imports are deferred until a command runs."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Collection
from typing import Annotated

import typer

from cbench.ab import command as ab
from cbench.compare import command as compare
from cbench.doctor import command as doctor
from cbench.export import command as export
from cbench.fleet import command as fleet
from cbench.gate import command as gate
from cbench.interfere import command as interfere
from cbench.jobs import command as jobs
from cbench.knobs import command as knobs
from cbench.layout import command as layout
from cbench.order import command as order
from cbench.run import command as run
from cbench.screen import command as screen
from cbench.sweep import command as sweep
from cbench.validate import command as validate
from quiet import PanelGroup, UsageError, __version__, emit, enter

FIRST_STEPS = """\
cbench: Measure programs and C code, and report what interrupted each trial.

Start with:
  cbench run -- ./mybench      measure a command
  cbench ab -- ./old ./new     compare two commands
  cbench doctor                report the smallest difference this machine can detect

`cbench --help` lists all commands; `cbench COMMAND --help` explains one.
"""

app = typer.Typer(
    cls=PanelGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure programs and C code, and report what interrupted each trial.",
)

for feature in (run, ab, gate, layout, doctor, export, compare, sweep, interfere, order, screen, jobs, fleet):
    feature.add_to(app)
for part in (validate, knobs):
    part.add_to(screen.screen)


def _version(wanted: bool) -> None:
    if wanted:
        emit(f"cbench {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _first_steps(*_arguments: object, **_options: object) -> int:
    """Handle `cbench` without arguments, which is a usage error."""
    emit(FIRST_STEPS)
    return 2


def _command(*arguments: object, **options: object) -> object:
    """Run the command line. Reject non-ASCII digits, which int() and float() would accept."""
    own = (
        sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    )  # the rest belongs to another program
    for word in own:
        if not word.isascii() and re.fullmatch(r"(-.*=)?[-+\d_.eE]+", word):
            raise UsageError(f"{word}: contains a digit other than 0 to 9")
    return app(*arguments, **options)


def _trim(words: Collection[str]) -> None:
    """Reduce each command that is not in `words` to its name and help, because Typer inspects every option of every
    command.
    """
    for command in app.registered_commands:
        function = command.callback
        if function is None or (command.name or function.__name__) in words:
            continue

        def nothing() -> None:
            pass

        nothing.__name__, nothing.__doc__ = function.__name__, function.__doc__
        command.callback = nothing
    for group in app.registered_groups:
        instance = group.typer_instance
        if instance and group.name not in words and instance.info.name not in words:
            instance.registered_commands, instance.registered_groups = [], []


def _terminated(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Install the signal handlers and run the command line."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup, for example
            signal.signal(number, _terminated)
    if "_CBENCH_COMPLETE" in os.environ:  # a shell that completes a line needs every option
        from typer._completion_classes import completion_init

        completion_init()
        enter(_command, "cbench")
        return
    _trim(sys.argv[1:])
    enter(_command if sys.argv[1:] else _first_steps, "cbench")
