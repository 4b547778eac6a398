"""Draw the random values of each build's layout from a seed, and pass these values to the build command.

`cbench layout` measures the effect of layouts; `cbench ab` and `cbench gate` measure successive blocks in successive
layouts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cbench.stats.random_draws import Stream
from cbench.study.process.run_command import CommandError, run_checked
from quiet import UsageError

PROGRAM, SEED, LAYOUT, OBJECTS, ARM = "{program}", "{seed}", "{layout}", "{objects}", "{arm}"
MOST_LAYOUTS = 200
LONGEST_PADDING = 4096
"""The size of the environment grows by less than this many bytes: one page, after which the stack's offset repeats."""
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128)
FREE, ENVIRONMENT, LINK_ORDER = "free", "environment", "link-order"
PRESETS = {
    "alignment": "-falign-functions, -falign-loops and -falign-jumps of gcc or clang, in {layout}",
    "lld": "the order of all sections, by options of lld in {layout}; compile with -ffunction-sections",
    "mold": "the order of all sections, by options of mold in {layout}; compile with -ffunction-sections",
    "go": "the order of functions, by an option of Go's linker in {layout}",
    LINK_ORDER: "the order of --objects, in {objects}",
    ENVIRONMENT: "the size of the environment, which moves the stack; nothing is built",
    FREE: "whatever the build command does with {seed}",
}
"""A description of the randomized property, by preset."""
FOR_ARMS = tuple(preset for preset in PRESETS if preset not in (LINK_ORDER, ENVIRONMENT))
"""The presets that need only a build command."""
BUILD_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class DrawnLayout:
    """One layout: its description, and the values for the build command. `padding`: the number of bytes added to the
    environment.
    """

    text: str
    seed: int = 0
    flags: str = ""
    objects: tuple[str, ...] = ()
    padding: int = 0

    def command(self, build: str, program: Path, arm: str = "") -> str:
        """The shell command that builds this layout. `program`: the executable to write."""
        for name, value in (
            (PROGRAM, shlex.quote(str(program))),
            (SEED, str(self.seed)),
            (LAYOUT, self.flags),
            (OBJECTS, shlex.join(self.objects)),
            (ARM, shlex.quote(arm)),
        ):
            build = build.replace(name, value)
        return build


def draw(preset: str, seed: int, number: int, objects: Sequence[str] = ()) -> DrawnLayout:
    """The layout of build `number` (from 0), which depends only on the preset, the seed, the number and the objects."""
    stream = Stream(seed, f"layout {number}")
    own = stream.below(2**31 - 1) + 1
    if preset == ENVIRONMENT:
        padding = stream.below(LONGEST_PADDING)
        return DrawnLayout(f"{padding} bytes of environment", padding=padding)
    flags = _flags(preset, own, stream)
    order = stream.shuffled(objects) if objects else ()
    return DrawnLayout(flags or " ".join(order) or f"seed {own}", own, flags, order)


def placeholder(preset: str) -> str:
    """The placeholder that a build command must contain; without it all builds are the same."""
    return {LINK_ORDER: OBJECTS, FREE: SEED}.get(preset, LAYOUT)


def build_program(command: str, text: str, folder: str, target: Path) -> None:
    """Run a build command that must write the executable `target`. Raises UsageError if the command fails or writes no
    executable file; `text` names the build in the message.
    """
    try:
        run_checked(command, folder, os.environ, BUILD_S, bound=True)
    except CommandError as error:
        raise UsageError(f"--build ({text}): {error}") from None
    if not os.access(target, os.X_OK):
        raise UsageError(f"--build ({text}): wrote no executable file to {PROGRAM}")


def _flags(preset: str, seed: int, stream: Stream) -> str:
    if preset == "alignment":
        names = ("functions", "loops", "jumps")
        return " ".join(f"-falign-{name}={ALIGNMENTS[stream.below(len(ALIGNMENTS))]}" for name in names)
    return {
        "lld": f"-fuse-ld=lld -Wl,--shuffle-sections=*={seed}",
        "mold": f"-fuse-ld=mold -Wl,--shuffle-sections={seed}",
        "go": f"-ldflags=-randlayout={seed}",
    }.get(preset, "")
