"""The options of `cbench layout`, and the layouts that can be drawn."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from cbench.external.options import MOST_SECONDS
from cbench.stats.random_draws import Stream
from quiet import UsageError

PROGRAM, SEED, LAYOUT, OBJECTS = "{program}", "{seed}", "{layout}", "{objects}"
FEWEST_BUILDS, MOST_BUILDS = 3, 200
LONGEST_PADDING = 4096
"""Bytes of environment: a page, after which the stack begins at the same place in one again."""
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128)
FREE, ENVIRONMENT, LINK_ORDER = "free", "environment", "link-order"
PRESETS = {
    "alignment": "-falign-functions, -falign-loops and -falign-jumps in {layout}, of gcc or clang",
    "lld": "the order of all sections by lld, in {layout}; compile with -ffunction-sections",
    "mold": "the same by mold",
    "go": "the order of functions by Go's linker, in {layout}",
    LINK_ORDER: "the order of --objects, in {objects}",
    ENVIRONMENT: "the size of the environment, which moves the stack; nothing is built",
    FREE: "whatever the build command does with {seed}",
}
"""By name what is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOptions:
    """What to build, and how to measure it. `run` "": the program that is built. `effect`: of the claim, a share.

    `budget_s`: of measuring, without the builds. `blocks` None: as many as there is time for.
    """

    preset: str
    build: str
    run: str
    objects: tuple[str, ...]
    builds: int
    effect: float
    budget_s: float
    blocks: int | None
    cpus: tuple[str, ...]
    profile: str
    timeout: float | None
    seed: int

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise UsageError(f"--preset {self.preset!r}: one of {', '.join(PRESETS)}")
        if not FEWEST_BUILDS <= self.builds <= MOST_BUILDS:
            raise UsageError(f"--builds {self.builds}: from {FEWEST_BUILDS} to {MOST_BUILDS}")
        if not 0 < self.budget_s <= MOST_SECONDS:
            raise UsageError(f"--budget {self.budget_s:g}: a number of seconds above 0, at most {MOST_SECONDS:,}")
        if self.blocks is not None and not 2 <= self.blocks <= 1_000_000:
            raise UsageError(f"--blocks {self.blocks}: from 2 to 1,000,000")
        if self.preset == ENVIRONMENT:
            self._check_environment()
            return
        if not self.build:
            raise UsageError(f"--build is missing: a shell command that writes {PROGRAM}")
        if PROGRAM not in self.build:
            raise UsageError(f"--build has no {PROGRAM}: the path of the executable that it has to write")
        wanted = {LINK_ORDER: OBJECTS, FREE: SEED}.get(self.preset, LAYOUT)
        if wanted not in self.build:
            raise UsageError(f"--build has no {wanted}: without it, all builds of preset {self.preset} are the same")
        if (self.preset == LINK_ORDER) != bool(self.objects):
            raise UsageError(f"--objects: files for preset {LINK_ORDER}, at least two of them")

    def _check_environment(self) -> None:
        if self.build or self.objects:
            raise UsageError(f"--preset {ENVIRONMENT} builds nothing: leave --build and --objects out")
        if not self.run or PROGRAM in self.run:
            raise UsageError(f"--preset {ENVIRONMENT}: give the command to measure with --run")


@dataclass(frozen=True, slots=True)
class DrawnLayout:
    """One layout: for people, the shell command that builds it ("": none), and the bytes that its environment has."""

    text: str
    build: str = ""
    padding: int = 0


def draw(options: LayoutOptions, number: int, program: str) -> DrawnLayout:
    """The layout of one build, from 0. `program`: the path of its executable."""
    stream = Stream(options.seed, f"layout {number}")
    seed = stream.below(2**31 - 1) + 1
    if options.preset == ENVIRONMENT:
        padding = stream.below(LONGEST_PADDING)
        return DrawnLayout(f"{padding} bytes of environment", padding=padding)
    flags, text = _flags(options.preset, seed, stream), f"seed {seed}"
    objects: Sequence[str] = stream.shuffled(options.objects) if options.objects else ()
    if flags:
        text = flags
    elif objects:
        text = " ".join(objects)
    command = options.build
    for name, value in (
        (PROGRAM, shlex.quote(program)),
        (SEED, str(seed)),
        (LAYOUT, flags),
        (OBJECTS, shlex.join(objects)),
    ):
        command = command.replace(name, value)
    return DrawnLayout(text, command)


def _flags(preset: str, seed: int, stream: Stream) -> str:
    if preset == "alignment":
        names = ("functions", "loops", "jumps")
        return " ".join(f"-falign-{name}={ALIGNMENTS[stream.below(len(ALIGNMENTS))]}" for name in names)
    return {
        "lld": f"-fuse-ld=lld -Wl,--shuffle-sections=*={seed}",
        "mold": f"-fuse-ld=mold -Wl,--shuffle-sections={seed}",
        "go": f"-ldflags=-randlayout={seed}",
    }.get(preset, "")
