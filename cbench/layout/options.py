"""Define the options of `cbench layout`."""

from __future__ import annotations

from dataclasses import dataclass

from cbench.ab.layouts import ENVIRONMENT, LINK_ORDER, MOST_LAYOUTS, PRESETS, PROGRAM, placeholder
from cbench.external.options import MOST_SECONDS
from quiet import UsageError

FEWEST_BUILDS, FEWEST_BLOCKS = 3, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutOptions:
    """The program to build, and the options for measuring it. Raises UsageError for invalid options.

    `run`: the command to measure, "" for the program itself. `effect`: the claimed effect, a share. `budget_s`: time
    for measuring in seconds, excluding the builds. `blocks`: None for as many as the budget allows. `timeout`: the
    longest run in seconds, None for no limit.
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
            raise UsageError(f"--preset {self.preset!r}: must be one of {', '.join(PRESETS)}")
        if not FEWEST_BUILDS <= self.builds <= MOST_LAYOUTS:
            raise UsageError(f"--builds {self.builds}: must be from {FEWEST_BUILDS} to {MOST_LAYOUTS}")
        if not 0 < self.budget_s <= MOST_SECONDS:
            raise UsageError(f"--budget {self.budget_s:g}: must be above 0 and at most {MOST_SECONDS:,} seconds")
        if self.blocks is not None and not FEWEST_BLOCKS <= self.blocks <= 1_000_000:
            raise UsageError(f"--blocks {self.blocks}: must be from {FEWEST_BLOCKS} to 1,000,000")
        if self.timeout is not None and not 0 < self.timeout <= MOST_SECONDS:
            raise UsageError(f"--timeout {self.timeout:g}: must be above 0 and at most {MOST_SECONDS:,} seconds")
        if self.preset == ENVIRONMENT:
            self._check_environment()
            return
        if not self.build:
            raise UsageError(f"--build is missing: give a shell command that writes {PROGRAM}")
        if PROGRAM not in self.build:
            raise UsageError(f"--build has no {PROGRAM}: use it as the path of the executable that the command writes")
        wanted = placeholder(self.preset)
        if wanted not in self.build:
            raise UsageError(f"--build has no {wanted}: without it, all builds of preset {self.preset} are the same")
        if self.preset == LINK_ORDER and len(self.objects) < 2:
            raise UsageError(f"--objects: preset {LINK_ORDER} needs at least two files to link")
        if self.objects and self.preset != LINK_ORDER:
            raise UsageError(f"--objects applies only to --preset {LINK_ORDER}: omit --objects")

    def _check_environment(self) -> None:
        if self.build or self.objects:
            raise UsageError(f"--preset {ENVIRONMENT} builds nothing: omit --build and --objects")
        if not self.run:
            raise UsageError(f"--preset {ENVIRONMENT}: --run is missing: give the command to measure")
        if PROGRAM in self.run:
            raise UsageError(
                f"--run contains {PROGRAM}, but --preset {ENVIRONMENT} builds nothing: write the program's path"
            )
