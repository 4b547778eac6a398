"""Build a program in several layouts, and measure the builds in random blocks."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cbench.ab.layouts import ENVIRONMENT, PROGRAM, DrawnLayout, build_program, draw
from cbench.ab.workspace import workspace
from cbench.external.measure import CommandSeries, Show, seldom, session
from cbench.external.options import ExternalCommand, ExternalOptions, program, split_command
from cbench.layout.options import FEWEST_BLOCKS, LayoutOptions
from cbench.model import Trial
from cbench.stats.random_draws import Stream

PADDING = "CBENCH_LAYOUT"
USE_SHELL = "use sh -c '...'"


@dataclass(frozen=True, slots=True)
class MeasuredBuild:
    """A build, its trials in the order of the blocks, and the first 12 hex digits of the SHA-256 of its program."""

    layout: DrawnLayout
    sha256: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class MeasuredLayouts:
    """All measured builds. `seconds`: the measuring time, excluding the builds."""

    builds: tuple[MeasuredBuild, ...]
    seconds: float


def measure(options: LayoutOptions, show: Show, tell: Callable[[str], None]) -> MeasuredLayouts:
    """Build and measure all layouts. Raises QuietError if a build or a run fails."""
    with workspace(None, resumed=False) as folder:
        made = [_built(options, number, folder, show) for number in range(options.builds)]
        commands = tuple(command for command, _, _ in made)
        external = ExternalOptions(
            commands=commands,
            counter="wall",
            cpus=options.cpus,
            on_failure="",
            timeout=options.timeout,
            seed=options.seed,
            pad=options.preset != ENVIRONMENT,
        )
        with session(external, tell) as here:
            every = [CommandSeries(command) for command in commands]
            for series in every:
                here.runner.run(series)  # warm up each build
            seconds = _blocks(options, every, here.runner.run, seldom(show))
    return MeasuredLayouts(
        tuple(
            MeasuredBuild(layout, digest, tuple(series.trials))
            for (_, layout, digest), series in zip(made, every, strict=True)
        ),
        seconds,
    )


def _built(options: LayoutOptions, number: int, folder: Path, show: Show) -> tuple[ExternalCommand, DrawnLayout, str]:
    """Build the program in one layout. Returns the command that runs it, the layout, and the digest of the program.
    Raises UsageError if the build fails.
    """
    show(f"building {options.builds} layouts", number, options.builds)
    place = folder / f"build{number:04}"
    place.mkdir()
    target = place / "program"
    layout = draw(options.preset, options.seed, number, options.objects)
    if options.build:
        build_program(layout.command(options.build, target), layout.text, os.getcwd(), target)
    text = (options.run or PROGRAM).replace(PROGRAM, shlex.quote(str(target)))
    argv = split_command(text, False, "--run", USE_SHELL)
    path = program(argv[0], os.environ.get("PATH"), use_shell=USE_SHELL)
    environment = ((PADDING, "x" * layout.padding),) if options.preset == ENVIRONMENT else ()
    command = ExternalCommand(f"build {number}", path, tuple(argv), environment=environment)
    return command, layout, _digest(target if options.build else Path(path))


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _blocks(
    options: LayoutOptions, every: list[CommandSeries], run: Callable[[CommandSeries], Trial], show: Show
) -> float:
    """Run blocks, each with one run of every build in random order, until the requested number is reached or the time
    budget is used. Returns the duration in seconds.
    """
    order, begin, done = Stream(options.seed, "order"), time.monotonic(), 0
    while True:
        spent = time.monotonic() - begin
        if options.blocks is not None:
            if done == options.blocks:
                return spent
        elif done >= FEWEST_BLOCKS and spent + spent / done > options.budget_s:
            return spent
        for series in order.shuffled(every):
            series.trials.append(run(series))
        done += 1
        show("blocks", done, options.blocks or max(done, int(done * options.budget_s / (time.monotonic() - begin))))
