"""`cbench screen`: screening experiments."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from cbench import cli_screen_analyze, cli_screen_validate

screen = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Screening experiments: which factors matter, and does it matter in practice?",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
File = Annotated[str, typer.Argument(metavar="SCREEN.toml")]
Data = Annotated[str, typer.Argument(metavar="DATA")]


@screen.command("init")
def init_command(path: Annotated[str, typer.Argument(metavar="FILE")] = "screen.toml") -> None:
    """Write an example of an experiment's file, with every key explained."""
    from cbench import commands_screen_run

    commands_screen_run.init(path)


@screen.command("plan")
def plan_command(path: File, *, as_json: Json = False) -> None:
    """What would run, and what that could test. Runs nothing."""
    from cbench import commands_screen_run

    made = commands_screen_run.plan(path)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")
    else:
        from cbench import render_study

        render_study.planned(made)


@screen.command("run")
def run_command(
    path: File,
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The experiment's store (SCREEN.db).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run an experiment: every trial is stored before the next begins, and `resume` goes on after whatever ends it."""
    from cbench import commands_screen_run, render_study

    start = commands_screen_run.Start(path, output)
    with render_study.Bar() as bar:
        made = start.run(bar.show)
    _say(made, as_json, render_study.finished(made, "screen"))


@screen.command("resume")
def resume_command(data: Data, *, as_json: Json = False) -> None:
    """Go on with an experiment that was interrupted, at its next trial."""
    from cbench import commands_screen_run, render_study

    resume = commands_screen_run.Resume(data)
    with render_study.Bar() as bar:
        made = resume.run(bar.show)
    _say(made, as_json, render_study.finished(made, "screen"))


@screen.command("status")
def status_command(data: Data, *, as_json: Json = False) -> None:
    """How far an experiment is; from another terminal too."""
    from cbench import commands_screen_run, render_study

    made = commands_screen_run.status(data)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")
    else:
        render_study.status(made, "screen")


def _say(made: object, as_json: bool, line: str) -> None:
    if as_json:
        sys.stdout.write(json.dumps(made) + "\n")
    else:
        sys.stderr.write(f"cbench: {line}\n")


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    cli_screen_analyze.add_to(screen)
    cli_screen_validate.add_to(screen)
    app.add_typer(screen, name="screen")
