"""Define a boot loader: the location of its command line, the files to change, and the commands to run afterwards.

The functions at the end change command lines in files; the group "line" of a pattern matches the command line.
"""

from __future__ import annotations

import re
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
BEGIN, END = "# BEGIN: added by quiet; `quiet boot remove` removes this block", "# END: added by quiet"
LONGEST = 2047  # COMMAND_LINE_SIZE of x86 and arm64, minus the closing zero byte
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """The new content of a file. `how` names quiet's part of it: the whole file, the marked block, or parameters."""

    path: str
    data: bytes
    how: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The edits and commands that give the next boot the merged line; `undo`: the commands to run after a restore."""

    edits: tuple[Edit, ...] = ()
    commands: tuple[Command, ...] = ()
    undo: tuple[Command, ...] = ()
    generated: tuple[str, ...] = ()  # files that the commands regenerate
    add: tuple[str, ...] = ()  # the parameters that the edits add in total, if the lines differ
    drop: tuple[str, ...] = ()


class Known(Protocol):
    """The record of an earlier apply (record.BootRecord)."""

    add: tuple[str, ...]
    drop: tuple[str, ...]

    def cleaned(self, path: str, data: bytes | None) -> bytes | None:
        """A file's content without our changes; None if no file would remain."""


class BootFiles(Disk):
    """The boot configuration's files as text, without the changes of an earlier apply."""

    def __init__(self, reader: Reader, known: Known | None = None) -> None:
        super().__init__(reader)
        self._known = known

    def text(self, path: str) -> str | None:
        """A file's content without our changes; None if it does not exist, or did not exist before the apply."""
        self.reader.text(path)  # a recording reader remembers the requested paths; the bytes are read separately
        saved = self.load(path)
        data = saved.data if saved else None
        if self._known:
            data = self._known.cleaned(path, data)
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def running(self) -> CommandLine:
        """The running kernel's line, without the parameters that an earlier apply or the boot loader added."""
        line = parse(self.reader.text("/proc/cmdline") or "")
        if self._known and set(self._known.add) <= set(line.words):
            line = line.changed(self._known.add, self._known.drop)
        return line.changed([*line.of("BOOT_IMAGE"), *line.of("initrd")], ())


@dataclass(frozen=True, slots=True)
class LoaderContext:
    """The argument of a loader's functions `line` and `steps`."""

    files: BootFiles
    facts: Facts
    wanted: Sequence[str] = ()

    def merged(self, line: str) -> Merged:
        """A line with the wanted parameters merged into it."""
        return merge(parse(line), self.wanted, self.facts)


@dataclass(frozen=True, slots=True)
class Loader:
    """A type of boot loader: functions that detect it ("" if absent), read its line, and plan the change."""

    name: str
    title: str
    found: Callable[[BootFiles], str]
    line: Callable[[LoaderContext], CommandLine]
    steps: Callable[[LoaderContext], Steps]
    marked: tuple[str, ...] = ()  # files that may contain our marked block
    regenerate: Callable[[BootFiles], Command] | None = None  # the command that reads these files
    entries: Callable[[BootFiles], list[str]] | None = None  # files, one per kernel, that repeat quiet's parameters
    # the command that `remove` runs, if it depends on the kernel
    again: Callable[[BootFiles], tuple[Command, ...]] | None = None


def by_hand(reason: str, merged: Merged) -> Refused:
    """The error for a change that is unsafe here; its message contains the parameters to add by hand."""
    away = f", remove: {' '.join(merged.drop)}" if merged.drop else ""
    return Refused(f"{reason}; add by hand: {' '.join(merged.add) or 'nothing'}{away}")


def encode(text: str) -> bytes:
    """Encode text that was decoded with surrogate escapes, so that the original bytes are restored."""
    return text.encode("utf-8", "surrogateescape")


def with_block(files: BootFiles, path: str, block: str) -> Edit:
    """An edit that puts our marked block at the end of a file."""
    text = files.text(path) or ""
    return Edit(path, encode(text + ("" if not text or text.endswith("\n") else "\n") + block), BLOCK)


def without_block(text: str) -> str:
    """A file without our marked block, if it has one."""
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 or end < start:
        return text
    return text[:start] + text[end + len(END) :].removeprefix("\n")


def first(reader: Reader, *paths: str) -> str:
    """The first of these files that exists; "" if none does."""
    return next((path for path in paths if reader.exists(path)), "")


def rewritten(text: str, merged: Merged) -> str:
    """A line without the parameters to drop, and with the new ones before init's words; other text stays unchanged."""
    for word in merged.drop:
        text = re.sub(rf"[ \t]*(?<!\S){re.escape(word)}(?!\S)", "", text)
    if not merged.add:
        return text
    body, init = text, ""
    end = re.search(r"(^|\s)--(\s|$)", text)
    if end and parse(text).init:
        body, init = text[: end.start()], text[end.start() :]
    tail = body[len(body.rstrip()) :]
    return f"{body.rstrip()} {' '.join(merged.add)}".lstrip() + (init or tail)


def appended(line: CommandLine, merged: Merged, tool: str) -> None:
    """Raise Refused if init, not the kernel, would get the parameters, because the tool only appends to the line."""
    if line.init and merged.add:
        raise by_hand(
            f"{tool} appends parameters at the end, after `{' '.join(line.init)}`, where they go to init", merged
        )


def edit(
    context: LoaderContext,
    path: str,
    pattern: re.Pattern[str],
    together: bool = False,
    skip: Callable[[str], bool] | None = None,
) -> tuple[Edit | None, Merged | None]:
    """An edit of every line of a file that matches the pattern, and the merged line.

    Lines that need no change stay as they are; the edit is None if there are only such lines, and both are None if no
    line matches. With `together`, the lines are parts of one command line: parameters go to the last part, or to the
    first part that has init's words.
    `skip` gets the text around a line and returns whether to skip the line.
    """
    text = context.files.text(path) or ""
    matches = [match for match in pattern.finditer(text) if skip is None or not skip(_label(text, match))]
    if not matches:
        return None, None
    whole = context.merged(" ".join(match["line"] for match in matches))
    merges = [whole] * len(matches) if together else [context.merged(match["line"]) for match in matches]
    init = [number for number, match in enumerate(matches) if parse(match["line"]).init]
    place = (init or [len(matches) - 1])[0]
    parts, end = [], 0
    for number, (match, merged) in enumerate(zip(matches, merges, strict=True)):
        part = merged._replace(add=()) if together and number != place else merged
        parts += [text[end : match.start("line")], rewritten(match["line"], part)]
        end = match.end("line")
    after = "".join(parts) + text[end:]
    add = tuple(dict.fromkeys(word for merged in merges for word in merged.add))
    drop = tuple(dict.fromkeys(word for merged in merges for word in merged.drop))
    return (Edit(path, encode(after), WORDS) if after != text else None), whole._replace(add=add, drop=drop)


def _label(text: str, match: re.Match[str]) -> str:
    """The lines of an extlinux.conf under the same label as a match."""
    starts = [0, *(head.start() for head in re.finditer(r"^[ \t]*label[ \t]", text, re.MULTILINE | re.I)), len(text)]
    start = max(place for place in starts if place <= match.start())
    return text[start : min(place for place in starts if place > match.start())]


def first_line(files: BootFiles, paths: list[str], pattern: re.Pattern[str], together: bool = False) -> CommandLine:
    """The first line in the files that matches the pattern; if none does, the running line without quiet's parameters.

    With `together`, all matches in a file are parts of one line.
    """
    for path in paths:
        lines = [match["line"] for match in pattern.finditer(files.text(path) or "")]
        if lines:
            return parse(" ".join(lines) if together else lines[0])
    return files.running()
