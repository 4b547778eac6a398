"""The command `cbench ab`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cbench.command import COMPARE, Detach, Json
from cbench.console import TrialBar, interruptible, show, tell, write_json
from quiet import UsageError, parse_seconds


def ab_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARM ARM...", help="A command for each arm; quote one that has arguments."),
    ] = None,
    *,
    arm: Annotated[
        list[str] | None, typer.Option("--arm", metavar="NAME='CMD'", help="An arm with a name; repeatable.")
    ] = None,
    revision: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=REV", help="An arm built from a git revision, in a clone; repeatable."),
    ] = None,
    build: Annotated[str, typer.Option(metavar="'CMD'", help="Shell command that builds an arm.")] = "",
    run: Annotated[str, typer.Option(metavar="'CMD'", help="Command to measure in each revision or environment.")] = "",
    env_file: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="NAME=VALUE lines for an arm's environment; a new NAME adds an arm."),
    ] = None,
    effect: Annotated[
        str, typer.Option(metavar="SHARE", help="Measure until a difference of this size can be detected.")
    ] = "1%",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Measure no longer than S, in seconds or as in 500ms (default: 3 s per arm, at least 10 blocks).",
        ),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(metavar="N", help="Measure N blocks, each with one run of every arm.")
    ] = None,
    layouts: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Build each arm N times, each time with a different {seed}; blocks rotate through the builds.",
        ),
    ] = 1,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Meaning of {layout} in --build: alignment, lld, mold, go.")
    ] = "free",
    seed: Annotated[int, typer.Option(help="Seed of the layouts and the random orders.")] = 1,
    profile: Annotated[str, typer.Option(metavar="P", help="Measure within `quiet run --profile P`.")] = "",
    cpu: Annotated[list[str] | None, typer.Option(help="CPU to measure on, or a list like 0,2.")] = None,
    shell: Annotated[bool, typer.Option("--shell", help="Run arms in /bin/sh; the shell's time is included.")] = False,
    prepare: Annotated[str, typer.Option(metavar="'CMD'", help="Shell command before each run of an arm.")] = "",
    ignore_failure: Annotated[
        bool, typer.Option("--ignore-failure", help="Measure arms whose exit code is not 0.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(metavar="S", help="End a run after S seconds (default: never).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Store every block in this file.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Resume an interrupted comparison, or show a finished one again."),
    ] = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Compare commands in random blocks, against a noise floor. A copy of the first command measures the noise floor.

    Exits with 1 if an arm differs from the first, and with 2 if the blocks were too few to compare an arm.
    """
    from cbench.ab import run as measuring
    from cbench.ab import table
    from cbench.ab.options import AbOptions, ab_options
    from cbench.study import detached

    if resume is not None:
        others = [
            word
            for word in sys.argv[2:]
            if word.startswith("-") and word.partition("=")[0] not in ("--resume", "--json", "--detach")
        ]
        if words or others:
            raise UsageError(
                f"--resume takes the options of the stored comparison: omit {(others or words or [''])[0]}"
            )
        if detach:
            job = detached.start_again(resume)
            if as_json:
                write_json(job)
            return
        with interruptible(kept=True), TrialBar() as bar:
            result = measuring.resume(resume, bar.show, tell)
    else:
        options = ab_options(
            words or [],
            arms=arm or [],
            revisions=revision or [],
            environments=env_file or [],
            run=run,
            effect=effect,
            base=AbOptions(
                arms=(),
                folder=os.getcwd(),
                build=build,
                budget=None if budget is None else parse_seconds(budget, "--budget"),
                blocks=blocks,
                seed=seed,
                layouts=layouts,
                preset=preset,
                profile=profile,
                cpus=tuple(cpu or []),
                shell=shell,
                prepare=prepare,
                ignore_failure=ignore_failure,
                timeout=timeout,
            ),
        )
        if detach:
            if output is None:
                raise UsageError("--detach needs -o FILE, which stores every block")
            job = detached.start_again(output)
            if as_json:
                write_json(job)
            return
        with interruptible(), TrialBar() as bar:
            result = measuring.start(options, output, bar.show, tell)
    show(result, as_json, table.result)
    if result.differs or result.undecided:
        raise typer.Exit(1 if result.differs else 2)


def add_to(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("ab", rich_help_panel=COMPARE)(ab_command)
