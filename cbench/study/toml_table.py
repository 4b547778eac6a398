"""Check values of a TOML file; an error names the file, the line if known, the key and the reason."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from quiet import UsageError, printable

Path = tuple[str | int, ...]
KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
MOST_BYTES = 32 * os.sysconf("SC_PAGE_SIZE")
"""The maximum size in bytes of an environment variable with its name, "=" and the null character: MAX_ARG_STRLEN, 128
KiB with 4 KiB pages.
"""


_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=""")


class TomlTable:
    """One table of the file. Reading a key marks the key as known; end() rejects unknown keys.

    The methods that read a key raise UsageError for an invalid value, and for a missing key whose default is None.
    """

    def __init__(self, file: str, lines: dict[Path, int], path: Path, values: Mapping[str, Any]) -> None:
        self._file, self._lines, self._path = file, lines, path
        self._values = dict(values)
        self._known: list[str] = []

    def error(self, key: str, why: str) -> UsageError:
        """The error to raise, such as "study.toml:7: test[1].unit: ..." for the first test.

        The line is that of the key or, if the key is missing, of its table.
        """
        return self.error_at((*self._path, key) if key else self._path, why)

    def error_at(self, path: Path, why: str) -> UsageError:
        """An error at a location in the whole file."""
        line = line_of(self._lines, path)
        name = ""
        for part in path:
            name += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if name else part
        return UsageError(f"{self._file}{'' if line is None else f':{line}'}: {name}: {why}")

    def has(self, key: str) -> bool:
        """Whether the key exists. Marks the key as known."""
        self._known.append(key)
        return key in self._values

    def given(self, key: str) -> Any:
        """The value, without marking the key as known; None if the key is absent."""
        return self._values.get(key)

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        value = self._take(key, (str,), default)
        if choices and value not in choices:
            raise self.error(key, f"{value!r}: must be one of {', '.join(choices)}")
        if "\0" in value:
            raise self.error(key, "contains a null character")
        return str(value)

    def label(self, key: str, default: str | None = None) -> str:
        """A value that is a name or a unit: a string of one line without control characters."""
        value = self.text(key, default)
        if printable(value) != value or "\n" in value or "\t" in value:
            raise self.error(key, f"{value!r}: contains a control character")
        return value

    def number(self, key: str, default: float | None, least: float, most: float) -> float:
        value = self._take(key, (int, float), default)
        if not least <= value <= most:  # also rejects nan
            raise self.error(key, f"{value}: must be from {least:g} to {most:g}")
        return float(value)

    def whole(self, key: str, default: int | None, least: int, most: int) -> int:
        value = self._take(key, (int,), default)
        if not least <= value <= most:
            raise self.error(key, f"{value}: must be from {least:,} to {most:,}")
        return int(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        return bool(self._take(key, (bool,), default))

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings of a value that is a list of strings or a single string."""
        content = self._take(key, (list, str), [])
        items = [content] if isinstance(content, str) else content
        if wrong := [item for item in items if not isinstance(item, str)]:
            raise self.error(key, f"{wrong[0]!r} is not a string")
        if any("\0" in item for item in items):
            raise self.error(key, "contains a null character")
        return tuple(items)

    def table(self, key: str) -> TomlTable:
        """The table at this key; an empty table if there is none."""
        return TomlTable(self._file, self._lines, (*self._path, key), self._take(key, (dict,), {}))

    def tables(self, key: str) -> list[TomlTable]:
        """The tables in the array at this key; [] if there is none."""
        content = self._take(key, (list, dict), [])
        if isinstance(content, dict):
            raise self.error(key, f"is a single table: write [[{key}]], because there may be several")
        if wrong := [item for item in content if not isinstance(item, dict)]:
            raise self.error(key, f"{wrong[0]!r}: write it as a table, [[{key}]]")
        return [
            TomlTable(self._file, self._lines, (*self._path, key, number), item) for number, item in enumerate(content)
        ]

    def only_tables(self, *known: str) -> None:
        """Raise UsageError for a key, other than the keys `known`, whose value is not a table. Such a key is above the
        first table's header.
        """
        for key, value in self._values.items():
            items = value if isinstance(value, list) and value else [value]
            if key not in known and not all(isinstance(item, dict) for item in items):
                raise self.error(
                    key, "is above every table: move it into the table to which it belongs, such as [study]"
                )

    def pairs(self, key: str, kind: type, refused: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The names and values of a table whose values have one type, `kind`. `refused`: names that are not allowed,
        with the reasons.
        """
        content = self._take(key, (dict,), {})
        for name, value in content.items():
            path = (*self._path, key, name)
            if name in (refused or {}):
                raise self.error_at(path, f"cannot be set here: {(refused or {})[name]}")
            if not isinstance(value, kind) or isinstance(value, bool):
                raise self.error_at(path, f"must be {KINDS[kind]}")
        return dict(content)

    def variables(self, key: str, refused: Mapping[str, str] | None = None, fitting: bool = True) -> dict[str, str]:
        """The environment variables in the table at this key; `fitting`: whether to reject a variable that
        exceeds the kernel's size limit.
        """
        content: dict[str, str] = self.pairs(key, str, refused)
        for name, value in content.items():
            path = (*self._path, key, name)
            if not name or "=" in name or "\0" in name:
                raise self.error_at((*self._path, key), f"{name!r} is not the name of an environment variable")
            if "\0" in value:
                raise self.error_at(path, "contains a null character")
            size = len(os.fsencode(f"{name}={value}")) + 1
            if fitting and size > MOST_BYTES:
                raise self.error_at(path, f"{size:,} bytes with its name: the kernel allows at most {MOST_BYTES:,}")
        return content

    def end(self) -> None:
        """Raise UsageError for the first unknown key, if there is one."""
        for key in self._values:
            raise self.error(key, f"unknown; valid here: {', '.join(dict.fromkeys(self._known))}")

    def refuse_misspelled(self, key: str) -> None:
        """Raise UsageError if an unknown key resembles `key`, which is missing."""
        unknown = [name for name in self._values if name not in self._known]
        for found in get_close_matches(key, unknown, 1, 0.8):
            raise self.error(found, f"unknown; did you mean {key}?")

    def _take(self, key: str, kinds: tuple[type, ...], default: Any) -> Any:
        self._known.append(key)
        if key not in self._values:
            if default is None:
                self.refuse_misspelled(key)
                raise self.error(key, "is missing")
            return default
        content = self._values.pop(key)
        if not isinstance(content, kinds) or (isinstance(content, bool) and bool not in kinds):
            wanted = [KINDS[kind] for kind in kinds if kind is not int or float not in kinds]
            raise self.error(key, f"{content!r}: must be {' or '.join(wanted)}")
        return content


def lines(text: str) -> dict[Path, int]:
    """The line (from 1) of each table and key, which tomllib does not provide. Members of an array of tables are
    numbered from 0.

    This works for tables and keys in their usual form: a header in brackets, or a key at the beginning of a line. Other
    forms, such as an inline table, get the line of the enclosing key.
    """
    numbers: dict[Path, int] = {}
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
            numbers.setdefault(here, number)
            continue
        key = _KEY.match(line)
        if key:
            numbers.setdefault((*here, *_names(key[1])), number)
            rest = line[key.end() :]
            fence = next((each for each in ('"""', "'''") if rest.count(each) == 1), "")
    return numbers


def line_of(numbers: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of the nearest enclosing table."""
    while path:
        if path in numbers:
            return numbers[path]
        path = path[:-1]
    return None


def _names(text: str) -> Path:
    parts = re.findall(r""""[^"]*"|'[^']*'|[A-Za-z0-9_-]+""", text)
    return tuple(part.strip("\"'") for part in parts)


def _place(names: Path, many: bool, counts: dict[Path, int]) -> Path:
    """The path of a table header, with the indices in the enclosing arrays of tables."""
    path: Path = ()
    for depth, name in enumerate(names):
        path = (*path, name)
        last = depth == len(names) - 1
        if last and many:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
