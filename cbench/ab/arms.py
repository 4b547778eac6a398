"""From arms to programs that can be executed: found, built from revisions, and A copied.

A' is a copy of A's executable: another inode, so that its pages lie elsewhere in the page cache, under a path of the
same length. A hard link would share the pages. T. Mytkowicz et al., "Producing wrong data without doing anything
obviously wrong!", ASPLOS 2009: the place of a program in memory alone changes its speed, also by lengths of names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab import revisions
from cbench.ab.options import COPY, AbOptions, Arm
from cbench.external.options import SHELL, ExternalCommand, program, split_command
from quiet import UsageError


@dataclass(frozen=True, slots=True)
class StagedArms:
    """A, A' and the other arms as commands, with the SHA-256 of their executables. `not_copied`: why A' is A itself."""

    commands: tuple[ExternalCommand, ...]
    digests: tuple[str, ...]
    not_copied: str

    def without_copy(self, why: str) -> StagedArms:
        """The same, with A itself in the place of A'."""
        first, copy, *others = self.commands
        return replace(self, commands=(first, replace(copy, path=first.path), *others), not_copied=why)


def stage(options: AbOptions, folder: Path, tell: Callable[[str], None]) -> StagedArms:
    """Build and copy into this folder. Raises UsageError where an arm has no program."""
    built: dict[str, Path] = {}
    for arm in options.arms:
        if arm.revision and arm.revision not in built:
            tell(f"{arm.name}: revision {arm.revision[:12]}{', building' if options.build else ''}")
            where = folder / f"revision{len(built) + 1}"
            built[arm.revision] = revisions.checked_out(
                options.repository, arm.revision, options.build, options.prefix, where, os.environ
            )
    every = [_command(arm, options, built) for arm in options.arms]
    first = every[0]
    copy = replace(first, text=f"{first.text} {COPY}")
    why = "a shell runs it"
    if not options.shell:
        target = folder / "copy" / Path(first.path).name
        why = _copied(Path(first.path), target)
        if not why:
            copy = replace(copy, path=str(target))
    commands = [first, copy, *every[1:]]
    digests = tuple(_digest(each.path) for each in commands)
    longest = max(len(os.fsencode(each.path)) for each in commands)
    return StagedArms(tuple(replace(each, path=_of_length(each.path, longest)) for each in commands), digests, why)


def _command(arm: Arm, options: AbOptions, built: dict[str, Path]) -> ExternalCommand:
    folder = str(built[arm.revision]) if arm.revision else options.folder
    argv = split_command(arm.text, options.shell, arm.name)
    path = SHELL
    if not options.shell:
        name = argv[0] if "/" not in argv[0] else os.path.join(folder, argv[0])
        try:
            path = os.path.join(folder, program(name, {**os.environ, **dict(arm.environment)}.get("PATH")))
        except UsageError as error:
            raise UsageError(f"{arm.name}: {error}" if arm.name != arm.text else str(error)) from None
    return ExternalCommand(arm.name, path, tuple(argv), options.prepare, folder, arm.environment)


def _copied(source: Path, target: Path) -> str:
    """Copy an executable; why that cannot be, "" where it is done."""
    try:
        mode = source.stat().st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID) or "security.capability" in os.listxattr(source):
            return "a copy would lose its privileges"
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)
        target.chmod(stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IXUSR)
    except OSError as error:
        return f"it cannot be copied: {error.strerror}"
    return ""


def _digest(path: str) -> str:
    """Of the content; "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _of_length(path: str, length: int) -> str:
    """The same path, with so many bytes: slashes in a row are one."""
    head, _, name = path.rpartition("/")
    return f"{head}/{'/' * (length - len(os.fsencode(path)))}{name}"
