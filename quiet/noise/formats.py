"""What an event's bytes mean: the kernel's own `format` files, so that no layout is taken for granted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

_FIELD = re.compile(
    r"field:(?P<type>[^;]*?)(?P<name>\w+)(?P<array>\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);"
)
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
Value = int | str | bytes | None


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where it lies, and whether it is text (kept at an offset that the field holds, or in place)."""

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
    """Parse a format file. Raises ValueError when it is none."""
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    if number is None:
        raise ValueError("no ID line")
    fields = {}
    for found in _FIELD.finditer(text):
        offset, size, signed = (int(found[group]) for group in (4, 5, 6))
        fields[found["name"]] = Field(
            found["name"],
            offset,
            size,
            bool(signed),
            dynamic="__data_loc" in found["type"],
            array=bool(found["array"]),
            char="char" in found["type"],
        )
    return Format(int(number[1]), fields)


class Decoder:
    """Takes some fields of one event out of its bytes: numbers as int, text as str, other arrays as bytes."""

    def __init__(self, layout: Format, names: Sequence[str]) -> None:
        """`names` that the kernel's event does not have give None."""
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
        """The fields' values, in the order asked for."""
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
