"""Damage bytes: the damage that a bad disk, an editor or a stranger does to a file. Every draw is from the caller's
generator.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

NASTY = (
    *(
        b"\x1b]0;title\x07",
        b"\x9b31m",
        b"\x00",
        b"\xff\xfe",
        b"\xc2\x9b31m",
        b"\xe2\x80\xaegnp",
        b"\r",
        b"\n\n",
        b"%s%n",
    ),
    *(b"nan", b"inf", b"-1", b"0", b"1e999", b"9" * 400, b"9" * 5000, b"18446744073709551616", b"\xef\xbc\x91"),
    *(b"[" * 3000, b"{" * 3000, b"{a=" * 1500, b"(" * 300, b'"', b"'", b"]", b"}", b",", b"=", b"\\", b"null", b"true"),
    *(b"<script>alert(1)</script>", b"]]>", b"../../../../etc/passwd", b"/dev/zero", b"=1+1", b"x" * 20_000, b""),
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    0.5,
    1e308,
    10**30,
    float("nan"),
    "",
    "x",
    "1",
    [],
    {},
    [[]],
    [1, "x"],
    {"x": 1},
)


def flip(data: bytes, draw: random.Random) -> bytes:
    """One bit, or a few."""
    new = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 8, 64))):
        if new:
            new[draw.randrange(len(new))] ^= 1 << draw.randrange(8)
    return bytes(new)


def cut(data: bytes, draw: random.Random) -> bytes:
    """The beginning, or the end."""
    at = draw.randrange(len(data) + 1)
    return data[:at] if draw.random() < 0.7 else data[at:]


def drop(data: bytes, draw: random.Random) -> bytes:
    """Without some bytes in the middle."""
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.choice((1, 2, 10, 100, 5000)) :]


def insert(data: bytes, draw: random.Random) -> bytes:
    """With something nasty somewhere."""
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(NASTY) + data[at:]


def replace(data: bytes, draw: random.Random) -> bytes:
    """With something nasty in place of a word or a number."""
    words = list(re.finditer(rb"[\w.+-]+", data[:200_000]))
    if not words:
        return insert(data, draw)
    start, end = draw.choice(words).span()
    return data[:start] + draw.choice(NASTY) + data[end:]


def lines(data: bytes, draw: random.Random) -> bytes:
    """Lines that are missing, twice, or in another order."""
    parts = data.splitlines(keepends=True)
    if len(parts) < 2:
        return cut(data, draw)
    at, other = draw.randrange(len(parts)), draw.randrange(len(parts))
    kind = draw.randrange(4)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts.insert(other, parts[at])
    elif kind == 2:
        parts[at], parts[other] = parts[other], parts[at]
    else:
        parts[at:at] = [parts[at]] * draw.choice((2, 50))
    return b"".join(parts)


def value(data: bytes, draw: random.Random) -> bytes:
    """A JSON document in which a value is another one or missing; of anything else a word is replaced."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return replace(data, draw)
    holder: list[Any] = [document]
    inside: list[Any] | dict[str, Any] = holder
    key: Any = 0
    while isinstance(inside[key], list | dict) and inside[key] and draw.random() < 0.75:
        inside = inside[key]
        key = draw.choice(list(inside)) if isinstance(inside, dict) else draw.randrange(len(inside))
    if inside is not holder and draw.random() < 0.25:
        del inside[key]
    else:
        inside[key] = draw.choice(VALUES)
    return json.dumps(holder[0]).encode()


def noise(data: bytes, draw: random.Random) -> bytes:
    """Something else altogether."""
    return draw.choice((b"", b"\n", draw.randbytes(draw.choice((1, 100, 4096))), draw.choice(NASTY)))


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(flip, cut, drop, insert, replace, lines),
    *(flip, insert, replace, replace, lines, noise),
    *(value, value, value),
)


def damage(data: bytes, draw: random.Random) -> bytes:
    """The data, damaged once, sometimes twice."""
    for _ in range(draw.choice((1, 1, 1, 2))):
        data = draw.choice(KINDS)(data, draw)
    return data
