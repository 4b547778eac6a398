"""Command lines inside other files: found by what stands before them, changed by as few letters as possible."""

from __future__ import annotations

import re
from collections.abc import Callable

from quiet.boot.loaders.loader import WORDS, BootFiles, Edit, LoaderContext, by_hand, encode
from quiet.boot.parameters.cmdline import CommandLine, parse
from quiet.boot.parameters.merge import Merged


def rewritten(text: str, merged: Merged) -> str:
    """A line with the words to drop taken out and the new ones at the end, ahead of init's own; blanks stay."""
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
    """Raises Refused where a tool that can only append would give init the words."""
    if line.init and merged.add:
        raise by_hand(f"{tool} puts words at the end, after `{' '.join(line.init)}`, where they are init's", merged)


def edit(
    scene: LoaderContext,
    path: str,
    pattern: re.Pattern[str],
    together: bool = False,
    skip: Callable[[str], bool] | None = None,
) -> tuple[Edit | None, Merged | None]:
    """An edit of every line of a file that the pattern finds: its group "line" is the command line.

    Lines that need nothing stay; (None, ...) when none needs anything. With `together` they are parts of one line: the
    last of them gets the words, or the first one with init's own. `skip` says of the text around a line: not this one.
    """
    text = scene.files.text(path) or ""
    found = [match for match in pattern.finditer(text) if skip is None or not skip(_label(text, match))]
    if not found:
        return None, None
    whole = scene.merged(" ".join(match["line"] for match in found))
    made = [whole] * len(found) if together else [scene.merged(match["line"]) for match in found]
    init = [number for number, match in enumerate(found) if parse(match["line"]).init]
    place = (init or [len(found) - 1])[0]
    parts, end = [], 0
    for number, (match, merged) in enumerate(zip(found, made, strict=True)):
        part = merged._replace(add=()) if together and number != place else merged
        parts += [text[end : match.start("line")], rewritten(match["line"], part)]
        end = match.end("line")
    after = "".join(parts) + text[end:]
    add = tuple(dict.fromkeys(word for merged in made for word in merged.add))
    drop = tuple(dict.fromkeys(word for merged in made for word in merged.drop))
    return (Edit(path, encode(after), WORDS) if after != text else None), whole._replace(add=add, drop=drop)


def _label(text: str, match: re.Match[str]) -> str:
    """What belongs to the same label of an extlinux.conf."""
    starts = [0, *(head.start() for head in re.finditer(r"^[ \t]*label[ \t]", text, re.MULTILINE | re.I)), len(text)]
    start = max(place for place in starts if place <= match.start())
    return text[start : min(place for place in starts if place > match.start())]


def first_line(files: BootFiles, paths: list[str], pattern: re.Pattern[str], together: bool = False) -> CommandLine:
    """The first line that the pattern finds in the files; the running one without ours when there is none.

    With `together` all that it finds in a file are parts of one line.
    """
    for path in paths:
        found = [match["line"] for match in pattern.finditer(files.text(path) or "")]
        if found:
            return parse(" ".join(found) if together else found[0])
    return files.running()
