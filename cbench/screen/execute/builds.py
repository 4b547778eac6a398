"""Build an experiment's artifacts: one build, in a separate directory, for each combination of levels with build
commands or flags.

The directories are next to the store: SCREEN.db.builds/0000 and so on. Their names have equal lengths, because a longer
name in the environment shifts the stack. For each directory, a file such as 0000.json records the build commands and a
digest of all files, so that a resume can detect changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cbench.results import JsonValue
from cbench.screen.config.model import BUILT, Level, Screen, Treatment
from cbench.study.process.run_command import CommandError, run_checked
from quiet import QuietError, Refused

VARIABLE = BUILT.removeprefix("$")
FLAGS = "CBENCH_FLAGS"
CHUNK = 1 << 20
OURS = re.compile(r"\d{4,}(\.json|\.new)?")


@dataclass(frozen=True, slots=True)
class Artefacts:
    """The directory of a build, and the first 16 digits of the digest of its content ("" before make())."""

    folder: Path
    digest: str


def place(data: Path) -> Path:
    """The directory of a store's artifacts."""
    return data.absolute().with_name(f"{data.name}.builds")


class Builds:
    """All artifacts of an experiment."""

    def __init__(
        self, screen: Screen, treatments: Sequence[Treatment], data: Path, environment: Mapping[str, str]
    ) -> None:
        self._screen, self._environment, self._root = screen, environment, place(data)
        self._factors = [
            factor.name
            for factor in screen.factors
            if any(level.build or level.flags is not None for level in factor.levels)
        ]
        combinations = dict.fromkeys(self._key(each) for each in treatments) if self._factors or screen.build else {}
        self._numbers = {key: number for number, key in enumerate(combinations)}
        self._digests: dict[tuple[str, ...], str] = {}

    def make(self, rebuild: bool, tell: Callable[[str], None]) -> None:
        """Build the missing combinations, or all of them if `rebuild` is set. Report progress to `tell`. Raises
        QuietError if a build command fails, and Refused if an earlier build is damaged or has changed, or if other
        files are in the way of a rebuild.
        """
        if rebuild and self._root.exists():
            self._remove()
        if not self._numbers:
            return
        self._root.mkdir(exist_ok=True)
        for key, number in self._numbers.items():
            folder, note = self._root / f"{number:04}", self._root / f"{number:04}.json"
            wanted = self._wanted(key)
            if note.exists():
                self._digests[key] = self._known(note, folder, wanted)
                continue
            if folder.exists():  # left by an interrupted build
                shutil.rmtree(folder)
            folder.mkdir()
            tell(f"building {number + 1} of {len(self._numbers)}: {self._name(key)}")
            self._build(key, folder)
            self._digests[key] = digest(folder)
            beside = note.with_suffix(".new")
            beside.write_text(json.dumps(wanted | {"digest": self._digests[key]}))
            os.sync()
            beside.replace(note)

    def _remove(self) -> None:
        """Remove the builds of an earlier experiment. Raises Refused if the directory has other content."""
        if self._root.is_symlink() or not self._root.is_dir():
            raise Refused(f"{self._root}: is not a directory; move it away, because builds are stored there")
        if others := [path for path in sorted(self._root.iterdir()) if not OURS.fullmatch(path.name)]:
            raise Refused(f"{others[0]}: not created by a build; move it away")
        shutil.rmtree(self._root)

    def of(self, treatment: Treatment) -> Artefacts | None:
        """The artifacts of a treatment; None if nothing is built for it."""
        key = self._key(treatment)
        if key not in self._numbers:
            return None
        return Artefacts(self._root / f"{self._numbers[key]:04}", self._digests.get(key, "")[:16])

    def _key(self, treatment: Treatment) -> tuple[str, ...]:
        return tuple(treatment.levels[factor] for factor in self._factors)

    def _name(self, key: tuple[str, ...]) -> str:
        return " ".join(f"{factor}={level}" for factor, level in zip(self._factors, key, strict=True)) or "once"

    def _levels(self, key: tuple[str, ...]) -> list[Level]:
        return [self._screen.level(factor, level) for factor, level in zip(self._factors, key, strict=True)]

    def _commands(self, key: tuple[str, ...]) -> list[str]:
        return [each for each in (self._screen.build, *(level.build for level in self._levels(key))) if each]

    def _flags(self, key: tuple[str, ...]) -> dict[str, str]:
        return {FLAGS: " ".join(level.flags for level in self._levels(key) if level.flags)}

    def _wanted(self, key: tuple[str, ...]) -> dict[str, JsonValue]:
        return {"levels": self._name(key), "commands": [*self._commands(key)], **self._flags(key)}

    def _build(self, key: tuple[str, ...], folder: Path) -> None:
        environment = {**self._environment, **self._flags(key), VARIABLE: str(folder)}
        for command in self._commands(key):
            try:
                run_checked(command, self._screen.folder, environment, self._screen.reset.timeout_s)
            except CommandError as error:
                raise QuietError(f"{self._name(key)} cannot be built: {error}") from None

    def _known(self, note: Path, folder: Path, wanted: Mapping[str, JsonValue]) -> str:
        try:
            said = json.loads(note.read_text())
            before = str(said.pop("digest"))
        except (OSError, ValueError, KeyError, AttributeError):
            raise Refused(f"{note}: damaged, so the build cannot be verified; start a new experiment") from None
        if said != wanted or before != digest(folder):
            raise Refused(
                f"{folder}: the files or the build commands have changed since the build, so further trials would run "
                "another program; start a new experiment"
            )
        return before


def digest(folder: Path) -> str:
    """A digest of the names, modes and contents of all files in a directory. Raises Refused if one cannot be read."""
    hashed = hashlib.sha256()
    try:
        for path in sorted(folder.rglob("*")):
            status = path.lstat()
            hashed.update(f"{path.relative_to(folder)}\0{status.st_mode:o}\0".encode(errors="surrogateescape"))
            if path.is_symlink():
                hashed.update(os.fsencode(os.readlink(path)))
            elif path.is_file():
                with path.open("rb") as file:
                    while more := file.read(CHUNK):
                        hashed.update(more)
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}") from None
    return hashed.hexdigest()
