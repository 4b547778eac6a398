"""Turn arms into executable programs: find or build them, and copy A.

A' is a copy of A's executable with a separate inode, so that its pages lie elsewhere in the page cache; a hard link
would share the pages. The paths of A and A' have the same length, because even the length of a program's path shifts
its stack and may change its speed (T. Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!",
ASPLOS 2009).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab import revisions
from cbench.ab.layouts import ARM, PROGRAM, build_program, draw, placeholder
from cbench.ab.options import COPY, AbOptions, Arm
from cbench.external.measure import Show
from cbench.external.options import SHELL, ExternalCommand, program, split_command
from quiet import UsageError


@dataclass(frozen=True, slots=True)
class StagedArms:
    """A, A' and the other arms in one layout, with the SHA-256 of their executables.

    `not_copied`: the reason why A' is A itself, "" if A' is a copy.
    """

    commands: tuple[ExternalCommand, ...]
    digests: tuple[str, ...]
    not_copied: str

    def without_copy(self, why: str) -> StagedArms:
        """These arms, with A itself instead of A'."""
        first, copy, *others = self.commands
        return replace(self, commands=(first, replace(copy, path=first.path), *others), not_copied=why)


def stage_layouts(options: AbOptions, folder: Path, show: Show, tell: Callable[[str], None]) -> tuple[StagedArms, ...]:
    """Build all arms in each layout, and copy A. Raises UsageError as stage() does, and if all builds of an arm with
    {program} in its command are the same program.
    """
    layouts = []
    for number in range(options.layouts):
        if options.layouts > 1:
            show(f"building {options.layouts} layouts", number, options.layouts)
        place = folder / f"layout{number:03}"  # paths of all layouts have the same length
        place.mkdir(exist_ok=True)
        layouts.append(stage(options, place, _silent if number else tell, number))
    first, _, *others = digests_of(layouts)
    for arm, digests in zip(options.arms, (first, *others), strict=True):
        if arm.is_program and len(set(digests)) < min(2, options.layouts):
            raise UsageError(
                f"{arm.name}: all {options.layouts} builds are the same program byte for byte: pass "
                f"{placeholder(options.preset)} to the compiler or linker in --build"
            )
    return tuple(layouts)


def digests_of(layouts: Sequence[StagedArms]) -> tuple[tuple[str, ...], ...]:
    """The digests of each arm's layouts, A and A' first."""
    return tuple(zip(*(staged.digests for staged in layouts), strict=True))


def _silent(_line: str) -> None:
    """Discard a message: only the first layout reports its steps."""


def stage(options: AbOptions, folder: Path, tell: Callable[[str], None], number: int = 0) -> StagedArms:
    """Build layout `number` (from 0) of all arms in `folder`, and copy A there. Raises UsageError if an arm cannot be
    built or has no program.
    """
    layout = draw(options.preset, options.seed, number)
    every, written = list[ExternalCommand](), list[str]()
    announced = set[Path]()
    for at, arm in enumerate(options.arms):
        shared = arm.revision and ARM not in options.build  # arms of one revision share its build
        place = folder / (f"revision-{arm.revision[:12]}" if shared else f"arm{at:02}")
        target = place / "program"
        build = layout.command(options.build, target, arm.name)
        where = Path(options.folder)
        if arm.revision:
            if place not in announced:
                tell(f"{arm.name}: revision {arm.revision[:12]}{', building' if build else ''}")
            announced.add(place)
            where = revisions.checked_out(options.repository, arm.revision, build, options.prefix, place, os.environ)
        elif arm.is_program and not (place / revisions.BUILT).exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            build_program(build, f"{arm.name}, {layout.text}", options.folder, target)
            (place / revisions.BUILT).touch()
        command = _command(replace(arm, text=arm.text.replace(PROGRAM, shlex.quote(str(target)))), options, str(where))
        every.append(command)
        written.append(str(target) if arm.is_program else command.path)
    first = every[0]
    copy = replace(first, text=f"{first.text} {COPY}")
    why = "it runs in a shell"
    if not options.shell:
        target = folder / "copy" / Path(first.path).name
        why = _copied(Path(first.path), target)
        if not why:
            copy = replace(copy, path=str(target))
    commands = [first, copy, *every[1:]]
    digests = tuple(_digest(path) for path in (written[0], copy.path, *written[1:]))
    longest = max(len(os.fsencode(each.path)) for each in commands)
    return StagedArms(tuple(replace(each, path=_of_length(each.path, longest)) for each in commands), digests, why)


def _command(arm: Arm, options: AbOptions, folder: str) -> ExternalCommand:
    argv = split_command(arm.text, options.shell, arm.name)
    path = SHELL
    if not options.shell:
        try:
            path = program(argv[0], {**os.environ, **dict(arm.environment)}.get("PATH"), folder)
            path = os.path.join(folder, path)
        except UsageError as error:
            raise UsageError(f"{arm.name}: {error}" if arm.name != arm.text else str(error)) from None
    return ExternalCommand(arm.name, path, tuple(argv), options.prepare, folder, arm.environment)


def _copied(source: Path, target: Path) -> str:
    """Copy an executable. Returns "" on success, otherwise the reason for the failure."""
    try:
        mode = source.stat().st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID) or "security.capability" in os.listxattr(source):
            return "a copy would lose the privileges of the program"
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)
        target.chmod(stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IXUSR)
    except OSError as error:
        return f"the program cannot be copied: {error.strerror}"
    return ""


def _digest(path: str) -> str:
    """The SHA-256 of a file's content; "" if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _of_length(path: str, length: int) -> str:
    """An equivalent path, padded to `length` bytes with repeated slashes, which the kernel treats as one."""
    head, _, name = path.rpartition("/")
    return f"{head}/{'/' * (length - len(os.fsencode(path)))}{name}"
