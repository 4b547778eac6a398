"""What a boot loader is to the rest: where the line stands, which files change and which commands follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quiet.boot.loaders.atomic_files import Disk
from quiet.boot.parameters.cmdline import CommandLine, parse
from quiet.boot.parameters.merge import Merged, merge
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine.facts import Facts

OWN, BLOCK, WORDS = "own file", "marked block", "words"
BEGIN, END = "# begin of what quiet added; `quiet boot remove` takes it out", "# end of what quiet added"
LONGEST = 2047  # COMMAND_LINE_SIZE of x86 and arm64, less the closing zero byte
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """A file's content to be. `how` says what in it is ours: the file, the block between the marks, or words."""

    path: str
    data: bytes
    how: str


@dataclass(frozen=True, slots=True)
class Steps:
    """What makes a merged line the next boot's, and what takes it back once the files are as they were."""

    edits: tuple[Edit, ...] = ()
    commands: tuple[Command, ...] = ()
    undo: tuple[Command, ...] = ()
    generated: tuple[str, ...] = ()  # files that the commands write anew
    add: tuple[str, ...] = ()  # the words in all the edits together, where lines differ
    drop: tuple[str, ...] = ()


class Known(Protocol):
    """What is known of an earlier apply (record.BootRecord)."""

    add: tuple[str, ...]
    drop: tuple[str, ...]

    def cleaned(self, path: str, data: bytes | None) -> bytes | None:
        """A file's content without what was done to it."""


class BootFiles(Disk):
    """The boot configuration's files as text, an earlier apply's changes taken out of them."""

    def __init__(self, reader: Reader, known: Known | None = None) -> None:
        super().__init__(reader)
        self._known = known

    def text(self, path: str) -> str | None:
        """A file's content; None when it is not there, or was not before an apply."""
        self.reader.text(path)  # a recording remembers it so; what is wanted here are the very bytes
        saved = self.load(path)
        data = saved.data if saved else None
        if self._known:
            data = self._known.cleaned(path, data)
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def running(self) -> CommandLine:
        """The running kernel's line, without what an earlier apply added and what the boot loader says of itself."""
        line = parse(self.reader.text("/proc/cmdline") or "")
        if self._known and set(self._known.add) <= set(line.words):
            line = line.changed(self._known.add, self._known.drop)
        return line.changed([*line.of("BOOT_IMAGE"), *line.of("initrd")], ())


@dataclass(frozen=True, slots=True)
class LoaderContext:
    """What a loader's functions are given."""

    files: BootFiles
    facts: Facts
    wanted: Sequence[str] = ()

    def merged(self, line: str) -> Merged:
        """A line with the wanted words merged into it."""
        return merge(parse(line), self.wanted, self.facts)


@dataclass(frozen=True, slots=True)
class Loader:
    """A kind of boot loader: how it is recognised ("" when it is not here), the line it holds, and what changes it."""

    name: str
    title: str
    found: Callable[[BootFiles], str]
    line: Callable[[LoaderContext], CommandLine]
    steps: Callable[[LoaderContext], Steps]
    marked: tuple[str, ...] = ()  # where a block between our marks can stand
    anew: Callable[[BootFiles], Command] | None = None  # the command that reads these files
    entries: Callable[[BootFiles], list[str]] | None = None  # files of which later kernels bring more, with our words
    again: Callable[[BootFiles], tuple[Command, ...]] | None = (
        None  # what `remove` runs, where that changes with kernels
    )


def by_hand(reason: str, merged: Merged) -> Refused:
    """What cannot be done rightly here, and the words with which somebody can do it."""
    away = f", take out: {' '.join(merged.drop)}" if merged.drop else ""
    return Refused(f"{reason}; add by hand: {' '.join(merged.add) or 'nothing'}{away}")


def encode(text: str) -> bytes:
    """Text as the bytes it came from."""
    return text.encode("utf-8", "surrogateescape")


def without_block(text: str) -> str:
    """A file without our marked block, if it has one."""
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 or end < start:
        return text
    return text[:start] + text[end + len(END) :].removeprefix("\n")


def first(files: BootFiles, *paths: str) -> str:
    """The first of these files that is there, or ""."""
    return first_of(files.reader, *paths)


def first_of(reader: Reader, *paths: str) -> str:
    """The first of these files that is there, or ""."""
    return next((path for path in paths if reader.exists(path)), "")
