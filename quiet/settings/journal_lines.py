"""Read and write the lines of a journal, each with a number and a checksum; damage is reported, never skipped.

Format 2: every line is a JSON object that ends with `line`, its number starting at 1, and `crc`, the CRC-32 of the text
before it in the line. The first line is `begin`. It contains the format number, and ends with `lines`, the number of
lines in the file, which is updated in place after each write, so that the loss of the last lines is detected. An
unterminated last line is not damage: its writer was killed. Format 1 had none of the three fields. A reader of either
format can read lines of the other.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

FORMAT = 2
_SEALED = re.compile(rb'(.*),"crc":"([0-9a-f]{8})"(?:,"lines":"([0-9]{8})")?\}', re.DOTALL)
_SEAL = b'"crc":"'
COUNT_AT = -len('00000000"}\n')  # relative to the end of the first line

Item = Mapping[str, Any]


class Damage(NamedTuple):
    """The damage of a line (0: of the whole file), or of all lines from it to `last`."""

    line: int
    reason: str
    last: int = 0

    def __str__(self) -> str:
        lines = f"lines {self.line}-{self.last}" if self.last else f"line {self.line}"
        return f"{lines}: {self.reason}" if self.line else self.reason


def merged(damage: Iterable[Damage]) -> list[Damage]:
    """The damage, with consecutive lines that have the same fault merged."""
    result: list[Damage] = []
    for each in damage:
        before = result[-1] if result else Damage(-1, "")
        if each.reason == before.reason and each.line == max(before.line, before.last) + 1:
            result[-1] = before._replace(last=each.line)
        else:
            result.append(each)
    return result


class Lines(NamedTuple):
    """The readable lines by number, in order, and the damage."""

    items: tuple[tuple[int, Item], ...]
    damage: tuple[Damage, ...]


class Tail(NamedTuple):
    """The data that a writer needs to continue an undamaged journal."""

    end: int  # offset of the end of the last whole line, in bytes
    lines: int
    sealed: bool  # format 2
    count_at: int  # offset of `lines`


def line(item: Item, number: int) -> bytes:
    """Format a line of format 2."""
    head = json.dumps({**item, "line": number}, separators=(",", ":")).encode()[:-1]
    count = ',"lines":"00000000"' if number == 1 else ""
    return head + f',"crc":"{zlib.crc32(head):08x}"{count}}}\n'.encode()


def old_line(item: Item) -> bytes:
    """Format a line of format 1."""
    return json.dumps(item, separators=(",", ":")).encode() + b"\n"


def count(lines: int) -> bytes:
    """Format the value of `lines` in the first line."""
    return b"%08d" % lines


def tail(data: bytes) -> Tail:
    """Determine where a writer continues an undamaged journal."""
    first = data.find(b"\n") + 1
    return Tail(data.rfind(b"\n") + 1, data.count(b"\n"), _SEAL in data[:first], first + COUNT_AT)


def read(data: bytes) -> Lines:
    """Check every line of a journal, and return the readable lines and the damage."""
    sealed = _SEAL in data
    items: dict[int, Item] = {}
    damage: list[Damage] = []
    written = number = 0
    for row in data.split(b"\n")[:-1]:
        number += 1
        try:
            item, counted = _item(row, sealed)
        except ValueError as error:
            damage.append(Damage(number, str(error)))
            continue
        written = max(written, counted)
        found = item["line"] if sealed else number
        if found > number:
            damage.append(Damage(number, "missing" if found == number + 1 else f"missing, up to line {found - 1}"))
            number = found
        elif found < number:
            number -= 1
            damage.append(Damage(found, "out of order"))
        items.setdefault(found, item)
    if written > number:
        damage.append(Damage(number + 1, f"missing: {written} lines were written"))
    if 1 not in items and not damage:
        damage.append(Damage(0, "it has no complete line" if data else "it is empty"))
    return Lines(tuple(sorted(items.items())), tuple(damage))


def _item(row: bytes, sealed: bool) -> tuple[Item, int]:
    """Parse a line: its object, and the number of lines that it states.

    Raises ValueError, which describes the fault.
    """
    match = _SEALED.fullmatch(row) if sealed else None
    if sealed and (match is None or zlib.crc32(match[1]) != int(match[2], 16)):
        raise ValueError("damaged (wrong checksum)")
    try:
        item = json.loads(row)
    except (ValueError, RecursionError):
        raise ValueError("not readable") from None
    if not isinstance(item, dict) or not isinstance(item.get("op"), str):
        raise ValueError("not a line of a journal")
    if match is None:
        return item, 0
    if not isinstance(item.get("line"), int) or (match[3] is None) != (item["line"] != 1):
        raise ValueError("not a line of a journal")
    return item, int(match[3] or 0)
