"""Where the keys of a TOML file are: tomllib keeps no lines.

For tables and keys as people write them (a header in brackets, a key at the beginning of a line); what is written
otherwise, such as a table within braces, is found at the line of what holds it.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=""")
Path = tuple[str | int, ...]


def lines(text: str) -> dict[Path, int]:
    """The line, from 1, of each table and key; members of an array of tables by number, from 0."""
    found: dict[Path, int] = {}
    here: Path = ()
    counts: dict[Path, int] = {}
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in line else fence
            continue
        header = _HEADER.match(line)
        if header:
            here = _place(_names(header[2]), header[1] == "[[", counts)
            found.setdefault(here, number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault((*here, *_names(key[1])), number)
            rest = line[key.end() :]
            fence = next((each for each in ('"""', "'''") if rest.count(each) == 1), "")
    return found


def line_of(found: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of the nearest thing that it is in."""
    while path:
        if path in found:
            return found[path]
        path = path[:-1]
    return None


def _names(text: str) -> Path:
    parts = re.findall(r""""[^"]*"|'[^']*'|[A-Za-z0-9_-]+""", text)
    return tuple(part.strip("\"'") for part in parts)


def _place(names: Path, many: bool, counts: dict[Path, int]) -> Path:
    """A header's path, with the numbers of the arrays of tables that it lies in."""
    path: Path = ()
    for depth, name in enumerate(names):
        path = (*path, name)
        last = depth == len(names) - 1
        if last and many:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
