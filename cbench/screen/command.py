"""`cbench screen`: screening experiments."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from cbench.command import Json
from cbench.results import to_json
from cbench.screen import command_analyze

screen = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Screening experiments: which factors matter, and does it matter in practice?",
)

File = Annotated[str, typer.Argument(metavar="SCREEN.toml")]
Data = Annotated[str, typer.Argument(metavar="DATA")]


@screen.command("init")
def init_command(path: Annotated[str, typer.Argument(metavar="FILE")] = "screen.toml") -> None:
    """Write an example of an experiment's file, with every key explained."""
    from cbench.screen.config.example import EXAMPLE
    from cbench.study.lifecycle import write_example

    write_example(path, EXAMPLE, f"cbench screen plan {path}, then: cbench screen run {path}")


@screen.command("plan")
def plan_command(path: File, *, as_json: Json = False) -> None:
    """What would run, and what that could test. Runs nothing."""
    from cbench.screen import run
    from cbench.screen.config.plan import lines

    plan = run.plan(path)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdout.write((json.dumps(to_json(plan)) if as_json else "\n".join(lines(plan))) + "\n")


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
    from cbench.screen import run
    from cbench.study import table

    start = run.StartScreen(path, output)
    with table.StudyBar() as bar:
        reached = start.run(bar.show)
    _say(reached, as_json, table.finished(reached, "screen"))


@screen.command("resume")
def resume_command(data: Data, *, as_json: Json = False) -> None:
    """Go on with an experiment that was interrupted, at its next trial."""
    from cbench.screen import run
    from cbench.study import table

    resume = run.ResumeScreen(data)
    with table.StudyBar() as bar:
        reached = resume.run(bar.show)
    _say(reached, as_json, table.finished(reached, "screen"))


@screen.command("status")
def status_command(data: Data, *, as_json: Json = False) -> None:
    """How far an experiment is; from another terminal too."""
    from cbench.screen import run
    from cbench.study import table

    made = run.status(data)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(to_json(made)) + "\n")
    else:
        table.print_status(made, "screen")


def _say(made: object, as_json: bool, line: str) -> None:
    if as_json:
        sys.stdout.write(json.dumps(to_json(made)) + "\n")
    else:
        sys.stderr.write(f"cbench: {line}\n")


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    command_analyze.add_to(screen)
    app.add_typer(screen, name="screen")
