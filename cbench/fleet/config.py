"""Read the table `[fleet]` of a study's file, and the kind of measurement that the file describes."""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cbench.screen.config import file as screen_file
from cbench.study import config as study_config
from cbench.study.toml_table import TomlTable, lines
from quiet import UsageError, load_profile

KINDS = ("ab", "run")


@dataclass(frozen=True, slots=True)
class FleetConfig:
    """The table `[fleet]` of a study's file. `begin`: the cbench arguments that start the study, in its directory on a
    node; `files`: additional files to push.

    `boot`: a profile whose boot parameters are applied with one reboot; `bin`: the directory of already installed
    programs on each node, "" to install them; `allocate`, `release`: shell commands on the controller.
    """

    path: Path
    begin: tuple[str, ...]
    files: tuple[str, ...] = ()
    boot: str = ""
    bin: str = ""
    allocate: str = ""
    release: str = ""

    @property
    def kind(self) -> str:
        return self.begin[0]

    def check_files(self) -> None:
        """Raises UsageError for a missing file."""
        if lacking := [name for name in self.files if not (self.path.parent / name).exists()]:
            raise UsageError(f"{self.path}: fleet.files: {lacking[0]}: no such file")

    def not_pushed(self) -> tuple[str, ...]:
        """The existing files beside the study's file that a text in it names but `files` does not contain."""
        folder = self.path.parent
        pushed = [folder / name for name in (self.path.name, *self.files)]
        study = tomllib.loads(self.path.read_bytes().decode())
        command = _words(study.pop("fleet", {}).get("command", ""))  # some of its words are commands themselves
        named = [word for text in _texts([study, command]) for word in _words(text)]
        lacking = {
            os.path.normpath(word): word
            for word in named
            if not Path(word).is_absolute()
            and os.path.isfile(folder / word)  # False also for words that cannot be a path
            and not any((folder / word).is_relative_to(each) for each in pushed)
        }
        return tuple(lacking.values())

    def stage(self, target: Path) -> None:
        """Replace the directory `target` with a copy of the files that nodes need. Raises UsageError for a missing
        file.
        """
        self.check_files()
        names = (self.path.name, *self.files)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in names:
            source = self.path.parent / name
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target / name, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target / name)


def load(path: Path) -> FleetConfig:
    """Read the configuration of a fleet. Raises UsageError, with the line and key where known, if it is invalid."""
    text = study_config.text_of(path, "order", "study")
    study_config.whole_of(text, str(path))  # reports invalid TOML, with its line
    table = tomllib.loads(text).get("fleet", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: fleet: must be a table")
    fleet = TomlTable(str(path), lines(text), ("fleet",), table)
    try:
        words = tuple(shlex.split(fleet.text("command", "")))
    except ValueError as error:
        raise fleet.error("command", str(error)) from None
    values = {key: fleet.text(key, "") for key in ("boot", "bin", "allocate", "release")}
    if values["boot"] and "/" not in values["boot"] and not values["boot"].endswith(".toml"):
        try:
            load_profile(values["boot"])
        except UsageError as error:
            raise fleet.error("boot", str(error)) from None
    files = fleet.texts("files")
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise fleet.error("files", f"{name!r}: must be a path below the study's directory")
        if Path(name) == Path():
            raise fleet.error("files", f"{name!r}: name the files; the whole directory may contain the fleet's results")
    if values["release"] and not values["allocate"]:
        raise fleet.error("release", "needs `allocate`, because only an allocation is released")
    fleet.end()
    begin = _begin(path, text, fleet, words)
    return FleetConfig(path.absolute(), begin, files, **values)


def _begin(path: Path, text: str, fleet: TomlTable, words: tuple[str, ...]) -> tuple[str, ...]:
    """The cbench arguments that start the measurement. `words`: the value of `command`, empty without one."""
    whole = study_config.whole_of(text, str(path))
    if words and (whole.has("screen") or whole.has("study")):
        raise fleet.error("command", "takes the place of a study; remove it, or [study] and [screen]")
    if words:
        if words[:1] == ("cbench",):
            words = words[1:]
        end = words.index("--") if "--" in words else len(words)
        if not words or words[0] not in KINDS or any(map(_taken, words[:end])):
            raise fleet.error("command", "must be `cbench run ...` or `cbench ab ...`, without -o and --detach")
        return (*words[:end], "-o", "data.db", *words[end:])
    if whole.has("screen"):
        screen_file.parse(text, str(path), str(path.absolute().parent), check=False)
        return ("screen", "run", path.name, "-o", "data.db")
    if whole.has("study"):
        study_config.parse(text, str(path), str(path.absolute().parent), check=False)
        return ("order", "run", path.name, "-o", "data.db")
    raise UsageError(f"{path}: has neither [study], nor [screen], nor fleet.command; write one of them")


def _taken(word: str) -> bool:
    """Whether this is an option that `cbench fleet` adds itself."""
    return word.startswith(("-o", "--output", "--detach"))


def _texts(value: object) -> Iterator[str]:
    """All texts in a TOML value, except names."""
    if isinstance(value, str):
        yield value
    inner = [each for key, each in value.items() if key != "name"] if isinstance(value, dict) else value
    for each in inner if isinstance(inner, list) else ():
        yield from _texts(each)


def _words(text: str) -> list[str]:
    """The words of a shell command; for any other text, the words between blanks."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
