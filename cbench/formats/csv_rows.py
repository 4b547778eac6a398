"""Read a CSV file as rows of strings in pure Python, so that its readers need neither numpy nor pyarrow."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence

from cbench.formats.content import Content
from cbench.formats.json_value import MOST, DamagedError, Number

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>")


def columns(content: Content) -> list[str]:
    """The column names in the first line; [] if this line is empty or not CSV."""
    try:
        first = content.head.decode("utf-8-sig", errors="replace").split("\n", 1)[0]
        return next(csv.reader([first.rstrip("\r")]), [])
    except csv.Error:
        return []


def rows(content: Content) -> list[tuple[str, dict[str, str]]]:
    """Each row's place (`line 3`) and its fields by column name. Raises DamagedError for a malformed row."""
    reader = csv.reader(io.StringIO(content.text, newline=""))
    try:
        names = next(reader, [])
        check_unique("line 1", names)
        found = []
        for row in reader:
            place = f"line {reader.line_num}"
            if row and len(row) != len(names):
                raise DamagedError(place, f"{len(row)} columns, not {len(names)}")
            if row:
                found.append((place, dict(zip(names, row, strict=True))))
    except csv.Error as error:
        raise DamagedError(f"line {reader.line_num + 1}", str(error)) from None
    return found


def check_unique(place: str, names: Sequence[str]) -> None:
    """Raises DamagedError if two columns have the same name."""
    twice = next((name for name, often in Counter(names).items() if name and often > 1), None)
    if twice is not None:
        raise DamagedError(place, f"two columns are named {twice[:40]!r}")


def number(place: str, column: str, text: str) -> Number | None:
    """The finite number in a field, None if the text is one of MISSING. Integers stay exact. Raises DamagedError for
    any other text.
    """
    if text.strip() in MISSING:
        return None
    try:
        value: Number = int(text) if text.isascii() and text.strip().isdecimal() else float(text)
    except ValueError:
        value = math.nan
    if "_" in text or (isinstance(value, float) and not math.isfinite(value)):  # Python reads 1_0 as 10
        raise DamagedError(place, f"column {column}: {text[:40]!r} is not a finite number")
    if isinstance(value, int) and value >= MOST:
        raise DamagedError(place, f"column {column}: an integer of more than 64 bits")
    return value
