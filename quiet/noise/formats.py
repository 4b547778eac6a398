"""Decode the bytes of a trace: pages of trace_pipe_raw, and events according to the kernel's `format` files.

Source: include/linux/ring_buffer.h (enum ring_buffer_type), kernel/trace/ring_buffer.c (rb_event_length,
RB_MISSED_EVENTS), and events/header_page, which every kernel provides. Raw pages are used because the text of `trace`
is slow to generate, and its times are rounded to microseconds, except with the time stamp counter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

_FIELD = re.compile(
    r"field:(?P<type>[^;]*?)(?P<name>\w+)(?P<array>\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);"
)
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_HEADER = Struct("=QQ")  # time stamp, commit; 64-bit kernels
_WORD = Struct("=I")
_FLAGS = 3 << 30
_LITTLE = sys.byteorder == "little"
_PADDING, _TIME_STAMP = 29, 31
_TOP_BITS = 0xF8 << 56
Value = int | str | bytes | None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event: its position, and whether it is text.

    Text is stored in place, or at an offset that the field contains.
    """

    name: str
    offset: int
    size: int
    signed: bool
    dynamic: bool
    array: bool
    char: bool


@dataclass(frozen=True, slots=True)
class Format:
    """An event's number and fields."""

    number: int
    fields: dict[str, Field]


def parse(text: str) -> Format:
    """Parse a format file. Raises ValueError if the text has no ID line."""
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    if number is None:
        raise ValueError("no ID line")
    fields = {}
    for match in _FIELD.finditer(text):
        offset, size, signed = (int(match[group]) for group in (4, 5, 6))
        fields[match["name"]] = Field(
            match["name"],
            offset,
            size,
            bool(signed),
            dynamic="__data_loc" in match["type"],
            array=bool(match["array"]),
            char="char" in match["type"],
        )
    return Format(int(number[1]), fields)


class Decoder:
    """Extract the fields of one event from its bytes: numbers as int, text as str, other arrays as bytes."""

    def __init__(self, layout: Format, names: Sequence[str]) -> None:
        """`names`: the fields to extract; the value is None for a field that the kernel's event lacks."""
        self._plan: list[tuple[int, Field | None]] = []  # position in the unpacked tuple, and the field
        code, at, place = "=", 0, {}
        have = sorted((layout.fields[name] for name in names if name in layout.fields), key=lambda field: field.offset)
        for position, field in enumerate(have):
            in_place = field.array and not field.dynamic
            letter = f"{field.size}s" if in_place else _CODES[field.size]
            if not in_place and (not field.signed or field.dynamic):
                letter = letter.upper()
            code += f"{field.offset - at}x{letter}"
            at = field.offset + field.size
            place[field.name] = position
        self._struct = Struct(code)
        for name in names:
            self._plan.append((place.get(name, -1), layout.fields.get(name)))
        self.simple = [position for position, _ in self._plan] == list(range(len(names))) and not any(
            item and (item.array or item.dynamic) for _, item in self._plan
        )

    def take(self, page: bytes, start: int) -> tuple[Value, ...]:
        """The values of the fields, in the requested order."""
        raw = self._struct.unpack_from(page, start)
        if self.simple:
            return raw
        return tuple(
            None if item is None else _value(raw[position], item, page, start) for position, item in self._plan
        )


def _value(raw: int | bytes, item: Field, page: bytes, start: int) -> Value:
    if item.dynamic and isinstance(raw, int):  # length << 16 | offset
        begin = start + (raw & 0xFFFF)
        raw = page[begin : begin + (raw >> 16)]
    if isinstance(raw, bytes) and item.char:
        return raw.partition(b"\0")[0].decode(errors="replace")
    return raw


def used(page: bytes) -> int:
    """The number of used bytes in a page, including its header."""
    return _HEADER.size + int(_HEADER.unpack_from(page)[1] & ~_FLAGS & 0xFFFFFFFF)


def stamp(page: bytes) -> int:
    """The time stamp at which a page begins."""
    return int(_HEADER.unpack_from(page)[0])


def records(page: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the time stamp, offset and length of the data of each event in a page."""
    stamp, commit = _HEADER.unpack_from(page)
    base, at = stamp & _TOP_BITS, _HEADER.size
    end = at + (commit & ~_FLAGS & 0xFFFFFFFF)
    while at + 4 <= end:
        (word,) = _WORD.unpack_from(page, at)
        kind, delta = (word & 31, word >> 5) if _LITTLE else (word >> 27, word & 0x7FFFFFF)
        if kind < _PADDING:
            if kind:
                start, length = at + 4, kind * 4
            else:
                start, length = at + 8, _WORD.unpack_from(page, at + 4)[0] - 4
            stamp += delta
            yield stamp, start, length
            at = start + length
        elif kind == _PADDING:
            if not delta:
                return  # the rest of the page is empty
            at += 4 + _WORD.unpack_from(page, at + 4)[0]
        else:
            (high,) = _WORD.unpack_from(page, at + 4)
            delta += high << 27
            stamp = base | delta if kind == _TIME_STAMP else stamp + delta
            at += 8
